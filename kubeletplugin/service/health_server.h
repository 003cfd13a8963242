// grpc.health.v1 on a TCP port, for the probes of the pod. A server of its own, so that nothing but
// health can be asked over the network.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SERVICE_HEALTH_SERVER_H_
#define ASCEND_DRA_KUBELETPLUGIN_SERVICE_HEALTH_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ascend::kubeletplugin {

class HealthServer {
 public:
  // "" and "liveness" answer `live`, "readiness" answers `ready`; why they are not OK is logged.
  // Both may block a while: they run on threads of their own, so that claims which wait do not fail
  // the probes. Port 0 takes any free one.
  static absl::StatusOr<std::unique_ptr<HealthServer>> Start(int port,
                                                             std::function<absl::Status()> live,
                                                             std::function<absl::Status()> ready);
  ~HealthServer();
  int port() const;

 private:
  class Impl;
  explicit HealthServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SERVICE_HEALTH_SERVER_H_
