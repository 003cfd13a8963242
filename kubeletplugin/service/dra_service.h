// The kubelet's DRA calls, in both versions it may speak, in front of the claim engine.
//
// One answer entry per claim of a call, also for errors: one bad claim never fails its neighbours.
// A call that the kubelet gives up on (45 s) goes on, and its repetition gets the finished result.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SERVICE_DRA_SERVICE_H_
#define ASCEND_DRA_KUBELETPLUGIN_SERVICE_DRA_SERVICE_H_

#include <memory>

#include "base/runtime/task_pool.h"
#include "kubeletplugin/claims/engine.h"

namespace grpc {
class Service;
}

namespace ascend::kubeletplugin {

// `engine` and `pool` must outlive the server that serves the service.
std::unique_ptr<grpc::Service> MakeDraServiceV1(ClaimEngine& engine, TaskPool& pool);
std::unique_ptr<grpc::Service> MakeDraServiceV1beta1(ClaimEngine& engine, TaskPool& pool);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SERVICE_DRA_SERVICE_H_
