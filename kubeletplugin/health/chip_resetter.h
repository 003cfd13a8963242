// Resets chips that a fault wants reset, when they and all that go down with them are idle.
#ifndef ASCEND_DRA_KUBELETPLUGIN_HEALTH_CHIP_RESETTER_H_
#define ASCEND_DRA_KUBELETPLUGIN_HEALTH_CHIP_RESETTER_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/core/file_lock.h"
#include "base/core/mutex.h"
#include "base/runtime/clock.h"
#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/health/device_verdict.h"
#include "kubeletplugin/health/resets_file.h"
#include "kubeletplugin/kube/event_recorder.h"
#include "kubeletplugin/paths.h"
#include "vnpu/agent/client.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

// A chip is reset whose verdict is FreeRestartNPU or RestartNPU and whose fault is there now. The
// group (vnpu/health/reset_group.h) must be idle (group_use.h), which is looked at again while the
// locks of all its chips are held: no claim gets one of them until the reset has ended. The same
// faults lead to a bounded number of resets, each written down before it begins; they are counted
// anew after a fault that was not among them, when the chip has been well for as long as the time
// between two tries, and after `ascend-dra chips release`.
//
// A reset that outlives the process that began it is taken over: its chips stay locked until the
// agent shows them again, or its time is over.
class ChipResetter {
 public:
  static constexpr int kTries = 3;
  struct Options {
    bool enabled = true;                         // false: only what is under way is seen to its end
    absl::Duration between = absl::Minutes(10);  // two resets of a chip
    absl::Duration self_healing = absl::Seconds(15);  // a fault that goes by itself needs no reset
    absl::Duration rest = absl::Seconds(15);          // of the group's others: one may do for all
    absl::Duration lock_wait = absl::Seconds(2);
    absl::Duration recheck = absl::Minutes(1);  // what is in use, where nothing tells a change
    // A reset that was taken over: for so long chips that only wait for it do not show as stuck.
    absl::Duration takeover = absl::Seconds(15);
  };
  struct Sources {
    std::function<agent::View()> agent;
    std::function<std::shared_ptr<const vnpu::Inventory>()> known;  // with lost chips; may be null
    std::function<std::shared_ptr<const ChipVerdicts>()> verdicts;  // with their causes
    std::function<std::vector<kube::SliceDevice>()> pending;
    std::function<absl::StatusOr<std::vector<agent::ChipReset>>(const agent::ResetRequest&,
                                                                absl::Duration timeout)>
        reset;
    std::function<void()> resetting_changed;
  };
  // References must outlive it.
  ChipResetter(Options options, const Paths& paths, RecordStore& records,
               kube::EventRecorder& events, Sources sources, const Clock& clock = Clock::Real());

  // One look, and at most one reset, which may take many minutes. Returns when the next is due
  // unless something changes before. By one thread at a time.
  absl::Duration Look();

  // Locks the chips of a reset that is under way, as far as it can. At the start, before claims are
  // prepared.
  void TakeOver();

  // The chips that are being reset now, by physical id. Thread-safe.
  std::set<int> resetting() const;
  // Before a reset under way is cut short because the process ends: whoever comes next takes it
  // over. Thread-safe.
  void Stop() { stopping_ = true; }

 private:
  // A chip that a fault wants reset.
  struct Sick {
    int physical_id = -1;
    std::string uuid;
    std::set<uint64_t> codes;
    std::string why;   // the worst of its faults
    absl::Time since;  // of the last of its faults
  };
  // A reset that goes on without a call that waits for it.
  struct TakenOver {
    int physical_id = -1;
    absl::Duration since;  // monotonic
    std::vector<FileLock> locks;
  };

  static std::vector<Sick> FindSick(const ChipVerdicts& verdicts);
  // A fault that comes back while its verdict stays changes nothing that anybody is told of.
  absl::Duration UntilCausesMayChange(const ChipVerdicts& verdicts) const;
  void Load();
  absl::Status Save();
  // By orders, and of chips that have been well for long. Returns when the next may be forgotten.
  absl::Duration Forget(const ChipVerdicts& verdicts, absl::Time now);
  // Whether a reset that has begun keeps this from doing anything else.
  bool FollowUnfinished(absl::Time now, FileLock* node_lock);
  bool ShownAgain(const std::set<int>& group) const;
  // Until the chip's reset is due; zero or less: now.
  absl::Duration UntilDue(const Sick& chip, absl::Time now);
  // Empty if there was a reset, or why not.
  std::string TryReset(const Sick& chip, absl::Time now, FileLock* node_lock);
  std::string ResetLocked(const Sick& chip, const vnpu::Inventory& known,
                          const std::set<int>& group, std::vector<FileLock> locks, absl::Time now);
  std::string WhyInUseNow(const vnpu::Inventory& known, const std::set<int>& group) const;
  // Of those that were there, which have not started again: for people; empty if none.
  static std::string NotStarted(const std::vector<agent::ChipReset>& answer,
                                const std::set<int>& present);
  void Tell(bool warning, int physical_id, const std::string& message);
  void SetResetting(std::set<int> group);

  const Options options_;
  const Paths& paths_;
  RecordStore& records_;
  kube::EventRecorder& events_;
  const Sources sources_;
  const Clock& clock_;

  mutable Mutex mutex_;
  std::set<int> resetting_ ABSL_GUARDED_BY(mutex_);

  // The thread's own. What the file has: another instance may have changed it.
  ResetMemory memory_;
  std::map<int, absl::Time> not_before_;
  std::map<int, std::string> refusals_;  // as logged
  std::unique_ptr<TakenOver> taken_over_;
  absl::Status load_error_, save_error_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_HEALTH_CHIP_RESETTER_H_
