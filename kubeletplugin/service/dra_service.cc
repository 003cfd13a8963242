#include "kubeletplugin/service/dra_service.h"

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/core/mutex.h"
#include "base/runtime/clock.h"
#include "cdi/text.h"
#include "dra_v1.grpc.pb.h"
#include "dra_v1beta1.grpc.pb.h"

namespace ascend::kubeletplugin {
namespace {

namespace v1 = ::k8s::io::kubelet::pkg::apis::dra::v1;
namespace v1beta1 = ::k8s::io::kubelet::pkg::apis::dra::v1beta1;

void SetShareId(const PreparedDevice& from, v1::Device* to) {
  if (!from.share_id.empty()) to->set_share_id(from.share_id);
}
void SetShareId(const PreparedDevice&, v1beta1::Device*) {}  // that version has none

// What the kubelet shows in the pod's events. Never empty, for it takes that as success; and valid
// UTF-8, or it could not decode the answers for the other claims of the call either.
std::string ErrorText(const absl::Status& status) {
  std::string text(status.message());
  if (text.empty()) text = status.ToString();
  if (!cdi::IsValidUtf8(text)) text = absl::CHexEscape(text);
  return text;
}

void FillAnswer(const absl::StatusOr<std::vector<PreparedDevice>>& result, auto* entry) {
  if (!result.ok()) {
    entry->set_error(ErrorText(result.status()));
    return;
  }
  for (const PreparedDevice& prepared : *result) {
    auto* device = entry->add_devices();
    for (const std::string& request : prepared.requests) device->add_request_names(request);
    device->set_pool_name(prepared.pool);
    device->set_device_name(prepared.device);
    for (const std::string& id : prepared.cdi_device_ids) device->add_cdi_device_ids(id);
    SetShareId(prepared, device);
  }
}

void FillAnswer(const absl::Status& status, auto* entry) {
  if (!status.ok()) entry->set_error(ErrorText(status));
}

// Runs `operation` for every claim of the request, side by side, and finishes the call when the
// last one is done. Cancellation by the client is ignored on purpose: request and response belong
// to the call until it is finished, and the work counts even if nobody waits for it.
template <typename Request, typename Response, typename Operation>
grpc::ServerUnaryReactor* ForEachClaim(
    grpc::CallbackServerContext* context, const Request* request, Response* response,
    TaskPool& pool, Operation operation,
    std::function<void(const ClaimOperations::CallReport&)> called) {
  const absl::Duration start = Clock::Real().Monotonic();
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  // By UID, so that a claim named twice is handled once and has one answer.
  std::map<std::string, ClaimReference> claims;
  for (const auto& claim : request->claims()) {
    claims[claim.uid()] = {claim.namespace_(), claim.name(), claim.uid()};
  }
  if (claims.empty()) {
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  struct Pending {
    Mutex mutex;
    size_t left ABSL_GUARDED_BY(mutex);
  };
  auto pending = std::make_shared<Pending>();
  {
    MutexLock lock(&pending->mutex);
    pending->left = claims.size();
  }
  for (auto& [uid, claim] : claims) {
    pool.Submit([=, reference = std::move(claim)] {
      const auto result = operation(reference);
      bool last = false;
      {
        MutexLock lock(&pending->mutex);
        FillAnswer(result, &(*response->mutable_claims())[reference.uid]);
        last = --pending->left == 0;
      }
      if (!last) return;
      if (called) {
        called(
            {.cancelled = context->IsCancelled(), .duration = Clock::Real().Monotonic() - start});
      }
      reactor->Finish(grpc::Status::OK);
    });
  }
  return reactor;
}

template <typename Api, typename PrepareRequest, typename PrepareResponse,
          typename UnprepareRequest, typename UnprepareResponse>
class Service final : public Api::CallbackService {
 public:
  Service(ClaimOperations operations, TaskPool& pool)
      : operations_(std::move(operations)), pool_(pool) {}

  grpc::ServerUnaryReactor* NodePrepareResources(grpc::CallbackServerContext* context,
                                                 const PrepareRequest* request,
                                                 PrepareResponse* response) override {
    return ForEachClaim(context, request, response, pool_, operations_.prepare,
                        operations_.prepare_called);
  }

  grpc::ServerUnaryReactor* NodeUnprepareResources(grpc::CallbackServerContext* context,
                                                   const UnprepareRequest* request,
                                                   UnprepareResponse* response) override {
    return ForEachClaim(context, request, response, pool_, operations_.unprepare,
                        operations_.unprepare_called);
  }

 private:
  const ClaimOperations operations_;
  TaskPool& pool_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeDraServiceV1(ClaimOperations operations, TaskPool& pool) {
  return std::make_unique<
      Service<v1::DRAPlugin, v1::NodePrepareResourcesRequest, v1::NodePrepareResourcesResponse,
              v1::NodeUnprepareResourcesRequest, v1::NodeUnprepareResourcesResponse>>(
      std::move(operations), pool);
}

std::unique_ptr<grpc::Service> MakeDraServiceV1beta1(ClaimOperations operations, TaskPool& pool) {
  return std::make_unique<
      Service<v1beta1::DRAPlugin, v1beta1::NodePrepareResourcesRequest,
              v1beta1::NodePrepareResourcesResponse, v1beta1::NodeUnprepareResourcesRequest,
              v1beta1::NodeUnprepareResourcesResponse>>(std::move(operations), pool);
}

}  // namespace ascend::kubeletplugin
