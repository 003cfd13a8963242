// The channel that everything on the client's side of the agent's socket uses.
#ifndef ASCEND_DRA_VNPU_AGENT_CHANNEL_H_
#define ASCEND_DRA_VNPU_AGENT_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "grpc/support/time.h"
#include "grpcpp/channel.h"

namespace ascend::agent {

// A channel of its own connection, so that nothing of an earlier attempt (a back-off, a connection
// to a socket that was replaced) is inherited. An infinite keepalive_time means none.
std::shared_ptr<grpc::Channel> NewChannel(const std::string& socket_path,
                                          absl::Duration keepalive_time,
                                          absl::Duration keepalive_timeout);

// For deadlines: a point of the monotonic clock, which a changed wall clock does not move.
gpr_timespec MonotonicIn(absl::Duration timeout);

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_CHANNEL_H_
