// The plugin's two unix sockets, registration and DRA service, served by one gRPC server.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SERVICE_PLUGIN_SERVER_H_
#define ASCEND_DRA_KUBELETPLUGIN_SERVICE_PLUGIN_SERVER_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kubeletplugin/paths.h"

namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace ascend::kubeletplugin {

class PluginServer {
 public:
  // Makes the directories of both sockets, replaces what an earlier run of this same pod left at
  // their paths (never another pod's), and serves. The registration socket appears last: the
  // kubelet calls as soon as it sees it. Sockets are accessible to this user only (0600).
  static absl::StatusOr<std::unique_ptr<PluginServer>> Start(
      const Paths& paths, std::vector<std::unique_ptr<grpc::Service>> services);
  ~PluginServer();

  // Takes the registration back by removing its socket, waits for running calls and removes the
  // service socket. Slices and prepared claims stay. Work that has begun is never abandoned, even
  // if its client is gone: after `grace`, `hurry` is called to make it end.
  void Stop(absl::Duration grace, const std::function<void()>& hurry = nullptr);

 private:
  PluginServer(const Paths& paths, std::vector<std::unique_ptr<grpc::Service>> services);
  const Paths paths_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> server_;
};

// Whether both sockets answer: GetInfo on the one, an empty Prepare on the other. Blocks up to
// `timeout`. What a liveness probe wants to know; touches no hardware.
absl::Status CheckSockets(const Paths& paths, absl::Duration timeout);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SERVICE_PLUGIN_SERVER_H_
