// Warns pods that share chips. A chip belongs to the first container that opens it; without
// device-share a second one that runs at the same time fails (EBUSY inside, -8005 or -8020 from the
// library). The claim is prepared as asked; the pods get a warning Event that says so, unless the
// claim says that it is meant (NpuConfig sharedUse).
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_SHARED_USE_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_SHARED_USE_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/kube/client.h"
#include "kubeletplugin/kube/event_recorder.h"

namespace ascend::kubeletplugin {

struct UsedDevice {
  std::string pool;
  std::string device;
  std::string share_id;  // empty = none
};

// One container that references a claim, as the kubelet's PodResources service tells. It lists
// containers that run side by side: init containers that end first are not among them.
struct ContainerUse {
  std::string pod_namespace;
  std::string pod_name;
  std::string container;
  std::string claim_name;           // in the pod's namespace
  std::vector<UsedDevice> devices;  // ours; all of the claim, whatever the container asked for
};

// Whether the container uses the claim of this record. It has to list one of its devices too:
// PodResources has no UIDs, and a claim of the same name may have been there before.
bool UsesClaimOf(const ContainerUse& use, const ClaimRecord& record);

// Asks the kubelet; at most 16 MiB, within `timeout`.
absl::StatusOr<std::vector<ContainerUse>> ListContainerUses(const std::string& socket,
                                                            const std::string& driver,
                                                            absl::Duration timeout);

// The claims whose chips several containers use at the same time, each with those containers.
// Claims with several requests are reported only if several pods use them: PodResources does not
// tell which container uses which request.
std::vector<std::pair<std::shared_ptr<const ClaimRecord>, std::vector<ContainerUse>>> FindSharedUse(
    const std::vector<std::shared_ptr<const ClaimRecord>>& records,
    const std::vector<ContainerUse>& uses);

class SharedUseMonitor {
 public:
  struct Options {
    absl::Duration period = absl::Seconds(5);  // only while claims are prepared
  };
  using ListUses = std::function<absl::StatusOr<std::vector<ContainerUse>>()>;

  SharedUseMonitor(Options options, RecordStore& records, kube::Client& client,
                   kube::EventRecorder& events, ListUses list_uses);
  ~SharedUseMonitor();
  // Records changed: look soon.
  void Wake();

 private:
  void Run();
  // Whether there is anything to watch.
  bool Check();
  // Whether that is done with; false if a request failed.
  bool Warn(const ClaimRecord& record, const std::vector<ContainerUse>& uses);

  const Options options_;
  RecordStore& records_;
  kube::Client& client_;
  kube::EventRecorder& events_;
  const ListUses list_uses_;

  Mutex mutex_;
  CondVar changed_;
  bool wake_ ABSL_GUARDED_BY(mutex_) = true;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;

  // The thread's own. Claim UID and pod UID of every warning; and the pods that were warned, by
  // claim UID, of claims that need no further look while the same pods use them.
  std::set<std::pair<std::string, std::string>> warned_;
  std::map<std::string, std::set<std::string>> settled_;
  std::thread thread_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_SHARED_USE_H_
