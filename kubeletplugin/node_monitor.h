// Looks at the Node object for what makes claims fail although the driver is well: a container
// runtime that does not inject CDI devices, and the classic device plugin, which would hand out the
// same chips again.
#ifndef ASCEND_DRA_KUBELETPLUGIN_NODE_MONITOR_H_
#define ASCEND_DRA_KUBELETPLUGIN_NODE_MONITOR_H_

#include <functional>
#include <map>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "kubeletplugin/kube/client.h"
#include "kubeletplugin/kube/event_recorder.h"

namespace ascend::kubeletplugin {

// Problems of a node, by the reason of their Event; empty = none. Pure.
//   CdiUnsupported     the runtime has no CDI (docker, containerd before 1.7, CRI-O before 1.23)
//   CdiMaybeOff        containerd 1.7 has it, switched off by default; the Node object does not
//   tell DevicePluginActive huawei.com/Ascend* is allocatable on the node
std::map<std::string, std::string> NodeProblems(const kube::Node& node);

class NodeMonitor {
 public:
  struct Options {
    std::string node_name;
    absl::Duration period = absl::Minutes(1);
  };
  // Looks at once and then each period, on a thread of its own; every problem that was not there at
  // the look before becomes a line in the log and an Event on the Node, tried again at the next
  // looks until it is written. Both are warnings unless the driver only cannot tell (CdiMaybeOff).
  // `on_change` runs on that thread when device_plugin_active() changed. References must
  // outlive it.
  NodeMonitor(Options options, kube::Client& client, kube::EventRecorder& events,
              std::function<void()> on_change);
  // Waits for a request under way: shut the client down before.
  ~NodeMonitor();

  // At the last look that succeeded. Thread-safe.
  bool device_plugin_active() const;

 private:
  void Run();
  void Look();

  const Options options_;
  kube::Client& client_;
  kube::EventRecorder& events_;
  const std::function<void()> on_change_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool device_plugin_active_ ABSL_GUARDED_BY(mutex_) = false;

  // The thread's own: the problems of the last look, and whether their Event was written.
  std::map<std::string, bool> reported_;
  std::thread thread_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_NODE_MONITOR_H_
