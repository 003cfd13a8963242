// Says by Events which vNPUs of ended claims stay on their chips: the kubelet makes none when an
// Unprepare fails, and the pod is gone.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_RELEASE_EVENTS_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_RELEASE_EVENTS_H_

#include <map>
#include <set>
#include <string>

#include "base/core/mutex.h"
#include "kubeletplugin/claims/record.h"
#include "kubeletplugin/claims/vnpu_release.h"
#include "kubeletplugin/kube/event_recorder.h"

namespace ascend::kubeletplugin {

// Thread-safe; never waits for the API server.
class ReleaseEvents {
 public:
  static constexpr char kReason[] = "VnpuNotDestroyed";

  // `events` must outlive it.
  explicit ReleaseEvents(kube::EventRecorder& events) : events_(events) {}

  // A warning on the claim, or on the Node if the claim is gone: which vNPU, why, what to do. Once
  // per claim and kind of cause, however often it is tried again.
  void Kept(const ClaimRecord& record, const KeptVnpus& kept);
  // Nothing of the claim is left: another cause later is news.
  void Gone(const ClaimRecord& record);

 private:
  kube::EventRecorder& events_;
  Mutex mutex_;
  std::map<std::string, std::set<std::string>> told_ ABSL_GUARDED_BY(mutex_);  // UID -> causes
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_RELEASE_EVENTS_H_
