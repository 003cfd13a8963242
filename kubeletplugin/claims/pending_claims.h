// What claims were allocated that could not be prepared (yet): the scheduler counts it, no record
// does.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_PENDING_CLAIMS_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_PENDING_CLAIMS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "kubeletplugin/claims/record.h"
#include "kubeletplugin/kube/resource_slice.h"

namespace ascend::kubeletplugin {

// Thread-safe.
class PendingClaims {
 public:
  // A Prepare of the claim begins. Whole chips without counters need no account.
  void Set(const ClaimRecord& record);
  // The claim is prepared, or unprepared.
  void Forget(const std::string& claim_uid);
  // Of all of them, apart from claims that nobody has asked for in the last ten minutes.
  std::vector<kube::SliceDevice> Devices();

 private:
  struct Pending {
    std::vector<kube::SliceDevice> devices;
    absl::Time asked;
  };
  Mutex mutex_;
  std::map<std::string, Pending> pending_ ABSL_GUARDED_BY(mutex_);  // by claim UID
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_PENDING_CLAIMS_H_
