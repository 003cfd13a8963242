// Runs the health policy: from what the agent tells and an operator orders to a verdict on each
// chip, kept over restarts.
#ifndef ASCEND_DRA_KUBELETPLUGIN_HEALTH_HEALTH_MONITOR_H_
#define ASCEND_DRA_KUBELETPLUGIN_HEALTH_HEALTH_MONITOR_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "kubeletplugin/health/chip_orders.h"
#include "kubeletplugin/health/health_file.h"
#include "vnpu/chip.h"
#include "vnpu/health/health_policy.h"

namespace ascend::kubeletplugin {

// Thread-safe. Several instances of the plugin may run one each during an upgrade: they see the
// same and come to the same verdicts.
class HealthMonitor {
 public:
  struct Options {
    std::string file;              // see health_file.h; one that is damaged is set aside
    std::string orders_directory;  // see chip_orders.h; the owner says Wake() when it changes
    std::string boot_id;
    vnpu::FaultTable table = vnpu::FaultTable::BuiltIn();
    // Of this boot, from before the agent answers; used if nothing is remembered. May be null.
    std::shared_ptr<const vnpu::Inventory> last_inventory = nullptr;
  };
  struct Input {
    std::shared_ptr<const vnpu::Inventory> inventory;  // as the agent told it last; null: not yet
    bool agent_known = true;  // false: it has been away for so long that this says nothing of now
    std::optional<absl::Duration> ask_again_after;  // when `agent_known` will change by itself
  };
  using Ask = std::function<Input()>;
  // Runs after each look at another inventory, be it to the same verdicts, and after on_change. On
  // the monitor's thread; may be null.
  using OnLook = std::function<void(const vnpu::Inventory&)>;
  // `before`: what the instance before this one knew, at the start. Runs on the monitor's thread.
  using OnChange = std::function<void(const ChipVerdicts& before, const ChipVerdicts& now)>;

  // Has its first verdicts when it returns, and starts a thread.
  HealthMonitor(Options options, Ask ask, OnChange on_change, OnLook on_look = nullptr);
  ~HealthMonitor();
  HealthMonitor(const HealthMonitor&) = delete;
  HealthMonitor& operator=(const HealthMonitor&) = delete;

  // Ends the thread, and `ask` and `on_change` with it; Current() stays as it is.
  void Stop();

  // Something may have changed: look soon.
  void Wake();
  // Looks now, and returns when that is done; after Stop() at once. Not from a callback.
  void Refresh();
  // The inventory that the last look went by; null: none yet.
  std::shared_ptr<const vnpu::Inventory> judged() const;
  // Never null, immutable; the verdicts are without their causes, which are in the messages.
  std::shared_ptr<const ChipVerdicts> Current() const;
  // The same with their causes, of whose changes nobody is told.
  std::shared_ptr<const ChipVerdicts> WithCauses() const;

 private:
  void Run();
  void Restore();
  // One look. Returns when the next is due at the latest.
  absl::Duration Look();
  // Whether there were any that were not carried out before.
  bool CarryOutOrders(absl::Time now);
  bool CarryOut(const ChipOrder& order, absl::Time now);
  // If there is something new, or orders were carried out.
  void Save(const ChipVerdicts& verdicts, bool ordered);

  const Options options_;
  const Ask ask_;
  const OnChange on_change_;
  const OnLook on_look_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool wake_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t looks_begun_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t looks_done_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<const ChipVerdicts> current_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const ChipVerdicts> with_causes_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const vnpu::Inventory> judged_ ABSL_GUARDED_BY(mutex_);

  // The thread's own from here, once it runs.
  vnpu::HealthPolicy policy_;
  bool remembers_ = false;  // the policy knows chips
  ChipVerdicts told_;       // to on_change
  std::string saved_;       // the policy's memory in the file
  std::map<int, absl::Time> orders_done_;
  std::string logged_problems_;  // of orders
  absl::Status save_error_;
  std::thread thread_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_HEALTH_HEALTH_MONITOR_H_
