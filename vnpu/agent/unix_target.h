// How gRPC wants to be told the path of a unix socket.
#ifndef ASCEND_DRA_VNPU_AGENT_UNIX_TARGET_H_
#define ASCEND_DRA_VNPU_AGENT_UNIX_TARGET_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ascend::agent {

// "unix:" and the path, with what a URI may not hold percent-encoded.
std::string UnixTarget(absl::string_view path);

// kInvalidArgument unless `path` is absolute and fits into a socket address (107 bytes).
absl::Status CheckSocketPath(absl::string_view path);

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_UNIX_TARGET_H_
