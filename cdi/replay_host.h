// The host that a recorded case was recorded on. See replay.h.
#ifndef ASCEND_DRA_CDI_REPLAY_HOST_H_
#define ASCEND_DRA_CDI_REPLAY_HOST_H_

#include <sys/stat.h>

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace ascend::cdi {

using Lstat = std::function<int(const std::string& path, struct stat* info)>;

// `host` is the member of that name, or null if the case has none.
absl::StatusOr<Lstat> ReplayHost(const nlohmann::json* host);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_REPLAY_HOST_H_
