// Frees what claims left behind whose Unprepare never came (a node that lost power, a kubelet whose
// state was lost), and reports what must not be freed.
//
// A claim is dead only on proof, all of it at once and for several of the kubelet's reconcile
// periods: its object is gone, has another UID or another allocation; the kubelet is there, has the
// driver registered and lists no container that uses the claim; and no process uses its chips.
// After a force delete the claim is gone although the container still runs: short of proof nothing
// is touched.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_DEAD_CLAIMS_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_DEAD_CLAIMS_H_

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "kubeletplugin/claims/plan.h"
#include "kubeletplugin/claims/quarantine.h"
#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/claims/shared_use.h"
#include "kubeletplugin/kube/client.h"
#include "kubeletplugin/kube/event_recorder.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

class DeadClaimSweeper {
 public:
  struct Options {
    std::string driver;
    absl::Duration period = absl::Seconds(60);  // the kubelet's own
    int periods = 3;                            // for so long all evidence must hold
  };
  struct Sources {
    std::function<bool()> registered;  // with the kubelet, now
    std::function<absl::StatusOr<std::vector<ContainerUse>>()> container_uses;
    std::function<absl::StatusOr<std::vector<vnpu::ChipProcesses>>(const std::vector<int>&)>
        processes;
    std::function<absl::Status(const ClaimReference&)> unprepare;
    // Which chips are withheld because of a record; null = that cannot be told.
    std::function<Quarantine(const std::vector<UnreadableRecord>&)> quarantine;
  };

  // References must outlive it. Begins with a look one period after its start.
  DeadClaimSweeper(Options options, RecordStore& records, kube::Client& client,
                   kube::EventRecorder& events, Sources sources);
  // Waits for a request under way: shut the client down before.
  ~DeadClaimSweeper();

 private:
  struct Suspect {
    absl::Duration since;  // monotonic
    bool logged = false;
    bool reported = false;  // by an Event
  };

  void Run();
  void Look();
  void LookAt(const ClaimRecord& record, const std::vector<ContainerUse>& uses);
  // True: the API has this very claim with this very allocation. An error says nothing.
  absl::StatusOr<bool> ObjectExists(const ClaimRecord& record);
  // OK: nothing uses the claim's chips.
  absl::Status CheckUnused(const ClaimRecord& record);
  // For people.
  std::string WithheldBecauseOf(const UnreadableRecord& record) const;
  void ReportUnreadable(const std::vector<UnreadableRecord>& unreadable);

  const Options options_;
  RecordStore& records_;
  kube::Client& client_;
  kube::EventRecorder& events_;
  const Sources sources_;

  Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;

  // The thread's own, by claim UID.
  std::map<std::string, Suspect> suspects_;
  std::map<std::string, bool> unreadable_;  // whether it is reported by an Event
  std::thread thread_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_DEAD_CLAIMS_H_
