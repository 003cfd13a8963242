// Tells operators of chips that somebody uses past Kubernetes: processes on a chip that no claim
// holds, and vNPUs that no claim has.
#ifndef ASCEND_DRA_KUBELETPLUGIN_HEALTH_UNCLAIMED_USE_H_
#define ASCEND_DRA_KUBELETPLUGIN_HEALTH_UNCLAIMED_USE_H_

#include <map>
#include <set>
#include <vector>

#include "kubeletplugin/kube/event_recorder.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

// Says each thing once, when it begins and when it ends; a beginning also as an Event on the Node.
// Not thread-safe; never waits.
class UnclaimedUse {
 public:
  explicit UnclaimedUse(kube::EventRecorder& events) : events_(events) {}

  // Physical ids, all of the moment. `inventory` tells the processes; may be null.
  void Busy(const std::set<int>& chips, const vnpu::Inventory* inventory);
  // By physical id, all of the moment.
  void ForeignVnpus(const std::map<int, std::vector<vnpu::Vnpu>>& vnpus);

 private:
  kube::EventRecorder& events_;
  std::set<int> busy_;
  std::map<int, std::vector<vnpu::Vnpu>> foreign_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_HEALTH_UNCLAIMED_USE_H_
