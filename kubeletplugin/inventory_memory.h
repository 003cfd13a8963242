// What the agent has told of the node's chips, over its restarts, and the plugin's on this boot.
#ifndef ASCEND_DRA_KUBELETPLUGIN_INVENTORY_MEMORY_H_
#define ASCEND_DRA_KUBELETPLUGIN_INVENTORY_MEMORY_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "base/runtime/clock.h"
#include "kubeletplugin/health/health_monitor.h"
#include "vnpu/agent/client.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

// Thread-safe.
class InventoryMemory {
 public:
  struct Options {
    std::string file;  // see inventory_file.h
    std::string boot_id;
    // An agent that is away, or that has not enumerated its chips, for so long does not know them
    // any more.
    absl::Duration grace = absl::Seconds(60);
  };
  // Reads the file; one that is of no use is logged.
  explicit InventoryMemory(Options options, const Clock& clock = Clock::Real());

  // What is known of the chips, with `view` taken in: the agent's last inventory and the chips that
  // are lost (health/lost_chips.h). Before the agent has answered, that of the file; null if there
  // is none. Saves what is new.
  std::shared_ptr<const vnpu::Inventory> Known(const agent::View& view);

  // The file's inventory; null if there is none of this boot.
  std::shared_ptr<const vnpu::Inventory> of_file() const { return of_file_; }

  // What the health policy is to judge by. An agent that has just started and has not enumerated
  // its chips says as little as one that is away.
  HealthMonitor::Input ForHealth(const agent::View& view);

 private:
  const Options options_;
  const Clock& clock_;
  std::shared_ptr<const vnpu::Inventory> of_file_;

  Mutex mutex_;
  std::shared_ptr<const vnpu::Inventory> told_ ABSL_GUARDED_BY(mutex_);   // the agent's, as it is
  std::shared_ptr<const vnpu::Inventory> known_ ABSL_GUARDED_BY(mutex_);  // with lost chips
  std::optional<absl::Duration> starting_since_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_INVENTORY_MEMORY_H_
