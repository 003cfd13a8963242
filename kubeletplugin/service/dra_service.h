// The kubelet's DRA calls, in both versions it may speak, in front of the claim engine.
//
// One answer entry per claim of a call, also for errors: one bad claim never fails its neighbours.
// A call that the kubelet gives up on (45 s) goes on, and its repetition gets the finished result.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SERVICE_DRA_SERVICE_H_
#define ASCEND_DRA_KUBELETPLUGIN_SERVICE_DRA_SERVICE_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/runtime/task_pool.h"
#include "kubeletplugin/claims/engine.h"

namespace grpc {
class Service;
}

namespace ascend::kubeletplugin {

// What the calls lead to: the claim engine's operations. Thread-safe; they may block.
struct ClaimOperations {
  std::function<absl::StatusOr<std::vector<PreparedDevice>>(const ClaimReference&)> prepare;
  std::function<absl::Status(const ClaimReference&)> unprepare;

  // What is told of every call that named claims, when its answer is there; null = nobody. Must
  // return quickly.
  struct CallReport {
    bool cancelled = false;  // the kubelet had given up
    absl::Duration duration;
  };
  std::function<void(const CallReport&)> prepare_called;
  std::function<void(const CallReport&)> unprepare_called;
};

// `pool` must outlive the server that serves the service.
std::unique_ptr<grpc::Service> MakeDraServiceV1(ClaimOperations operations, TaskPool& pool);
std::unique_ptr<grpc::Service> MakeDraServiceV1beta1(ClaimOperations operations, TaskPool& pool);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SERVICE_DRA_SERVICE_H_
