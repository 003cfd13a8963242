#include "vnpu/agent/channel.h"

#include <algorithm>
#include <limits>

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "vnpu/agent/unix_target.h"

namespace ascend::agent {

std::shared_ptr<grpc::Channel> NewChannel(const std::string& socket_path,
                                          absl::Duration keepalive_time,
                                          absl::Duration keepalive_timeout) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  if (keepalive_time != absl::InfiniteDuration()) {
    const auto milliseconds = [](absl::Duration duration) {
      return static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(duration), 1,
                                                  std::numeric_limits<int>::max()));
    };
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(keepalive_time));
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(keepalive_timeout));
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // 0 = any number
  }
  return grpc::CreateCustomChannel(UnixTarget(socket_path), grpc::InsecureChannelCredentials(),
                                   arguments);
}

gpr_timespec MonotonicIn(absl::Duration timeout) {
  // A year stands for "for ever": the sum has to fit into the type.
  timeout = std::clamp(timeout, absl::ZeroDuration(), absl::Hours(24 * 365));
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(absl::ToInt64Nanoseconds(timeout), GPR_TIMESPAN));
}

}  // namespace ascend::agent
