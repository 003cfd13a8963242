// Wakes whoever waits for records or the inventory to change.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CHANGE_SIGNAL_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CHANGE_SIGNAL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/core/mutex.h"

namespace ascend::kubeletplugin {

// Never jumps, unlike absl::Now(); deadlines of the claim engine are in its terms.
absl::Time SteadyNow();

// Thread-safe.
class ChangeSignal {
 public:
  // Ends every wait: those under way and those that begin later fail. There is no way back.
  void Stop();
  void Notify();
  uint64_t count();

  // Waits until Notify() was called after count() returned `seen`, or the deadline. kUnavailable
  // after Stop().
  absl::Status Wait(uint64_t seen, absl::Time deadline);
  // Before what failed is tried again: until something changed, but not at once.
  absl::Status WaitToRetry(uint64_t seen, absl::Time deadline);
  // The whole time, whatever changes.
  absl::Status Pause(absl::Time until);

 private:
  Mutex mutex_;
  CondVar changed_;
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CHANGE_SIGNAL_H_
