// Asks once whether an agent lives.
#ifndef ASCEND_DRA_VNPU_AGENT_PING_H_
#define ASCEND_DRA_VNPU_AGENT_PING_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace ascend::agent {

struct PingReply {
  std::string version;
  std::string instance;
};

// Blocks for at most `timeout`. The error names the socket and says what was found there.
absl::StatusOr<PingReply> Ping(const std::string& socket_path, absl::Duration timeout);

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_PING_H_
