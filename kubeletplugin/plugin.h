// The whole plugin, put together: agent client, claims, slices, sockets, probes.
#ifndef ASCEND_DRA_KUBELETPLUGIN_PLUGIN_H_
#define ASCEND_DRA_KUBELETPLUGIN_PLUGIN_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kubeletplugin/kube/client.h"
#include "kubeletplugin/metrics/metrics.h"
#include "kubeletplugin/options.h"

namespace ascend::kubeletplugin {

class Plugin {
 public:
  // Starts everything and returns as soon as the sockets are served: neither the agent nor the API
  // server needs to be there yet. An error is fatal for the process and says what to change.
  // `metrics` must outlive the plugin.
  static absl::StatusOr<std::unique_ptr<Plugin>> Start(const PluginOptions& options,
                                                       const DriverConfig& config,
                                                       std::unique_ptr<kube::Client> client,
                                                       Metrics& metrics);
  // Orderly end: no new calls, running ones finish within a bound, own sockets removed. Slices and
  // prepared claims stay, so a restart is invisible to pods and scheduler.
  ~Plugin();

  // OK when registered with the kubelet and the slices on the server are current.
  absl::Status ready() const;
  int health_port() const;  // 0 if off

 private:
  class Impl;
  explicit Plugin(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_PLUGIN_H_
