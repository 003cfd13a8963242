// Tells people of changes in the chips' health: an Event on the Node, and one on each pod that has
// the chip. The kubelet shows health in the status of pods too, but not of those that ask for an
// extended resource, nor for init containers.
#ifndef ASCEND_DRA_KUBELETPLUGIN_HEALTH_HEALTH_EVENTS_H_
#define ASCEND_DRA_KUBELETPLUGIN_HEALTH_HEALTH_EVENTS_H_

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/health/health_file.h"
#include "kubeletplugin/kube/client.h"
#include "kubeletplugin/kube/event_recorder.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

// A change that is worth an Event.
struct HealthNews {
  std::vector<int> chips;  // the same news of all of them
  bool warning = true;
  std::string reason;   // "NpuUnhealthy", "NpuDegraded", "NpuHealthUnknown", "NpuHealthy"
  std::string message;  // without the chips
};

// By reason and message. A chip that nobody knew before is news only if it is not well.
std::vector<HealthNews> NewsOf(const ChipVerdicts& before, const ChipVerdicts& now);

// Thread-safe.
class HealthEvents {
 public:
  // All must outlive it.
  HealthEvents(RecordStore& records, kube::Client& client, kube::EventRecorder& events);
  // Waits for a request under way: shut the client down before.
  ~HealthEvents();
  HealthEvents(const HealthEvents&) = delete;
  HealthEvents& operator=(const HealthEvents&) = delete;

  // Never waits. Of a claim whose pods cannot be asked for at the moment, the latest news is told
  // when they can.
  void Changed(const ChipVerdicts& before, const ChipVerdicts& now);

  // Never waits. A driver that does not fit its packages is told once, on the Node. One caller at a
  // time.
  void Versions(const vnpu::Inventory& inventory);

 private:
  void Run();
  // Whether that is done with.
  bool TellPods(const std::string& claim_uid, const kube::Event& event);

  RecordStore& records_;
  kube::Client& client_;
  kube::EventRecorder& events_;

  std::string version_problem_;  // that was told

  Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  // For the pods of a claim, by its UID and the device's name.
  std::map<std::pair<std::string, std::string>, kube::Event> waiting_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_HEALTH_HEALTH_EVENTS_H_
