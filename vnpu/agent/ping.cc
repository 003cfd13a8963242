#include "vnpu/agent/ping.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "agent.grpc.pb.h"
#include "base/core/status_macros.h"
#include "grpcpp/client_context.h"
#include "vnpu/agent/channel.h"
#include "vnpu/agent/unix_target.h"

namespace ascend::agent {

absl::StatusOr<PingReply> Ping(const std::string& socket_path, absl::Duration timeout) {
  ASCEND_RETURN_IF_ERROR(CheckSocketPath(socket_path));
  const std::unique_ptr<v1alpha1::NpuAgent::Stub> stub = v1alpha1::NpuAgent::NewStub(
      NewChannel(socket_path, absl::InfiniteDuration(), absl::InfiniteDuration()));
  grpc::ClientContext context;
  context.set_deadline(MonotonicIn(timeout));
  v1alpha1::PingResponse response;
  const grpc::Status status = stub->Ping(&context, v1alpha1::PingRequest(), &response);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::DeadlineExceededError(absl::StrCat(
        "agent on ", socket_path, " does not answer within ", absl::FormatDuration(timeout)));
  }
  if (!status.ok()) {
    return absl::UnavailableError(
        absl::StrCat("no agent on ", socket_path, ": ", status.error_message()));
  }
  return PingReply{.version = response.version(), .instance = response.instance()};
}

}  // namespace ascend::agent
