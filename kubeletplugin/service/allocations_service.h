// ascend.allocations.v1alpha1.Allocations: metrics and allocations for readers on the node.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SERVICE_ALLOCATIONS_SERVICE_H_
#define ASCEND_DRA_KUBELETPLUGIN_SERVICE_ALLOCATIONS_SERVICE_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kubeletplugin/metrics/metrics.h"
#include "kubeletplugin/service/allocations_feed.h"

namespace ascend::kubeletplugin {

// The service on a unix socket and a server of its own: who may read this must not reach the DRA
// service.
class AllocationsServer {
 public:
  struct Options {
    std::string socket;   // absolute; its directory must exist
    gid_t group = 65532;  // that may read, as the metrics sidecar does
  };

  // Serves from the moment it returns. The socket has mode 0660 and is `group`'s; where that may
  // not be given away it keeps its group, and a warning says so.
  //
  // The path belongs to one instance at a time, by a lock on `<socket>.lock`: kFailedPrecondition
  // if another one has it, or if something else than a socket is there. A socket left by a dead
  // instance is replaced. `metrics` and `feed` must outlive the server.
  static absl::StatusOr<std::unique_ptr<AllocationsServer>> Start(const Options& options,
                                                                  const Metrics& metrics,
                                                                  AllocationsFeed& feed);
  // Ends all streams with UNAVAILABLE, and removes the socket.
  ~AllocationsServer();
  AllocationsServer(const AllocationsServer&) = delete;
  AllocationsServer& operator=(const AllocationsServer&) = delete;

 private:
  class Impl;
  explicit AllocationsServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SERVICE_ALLOCATIONS_SERVICE_H_
