#include "vnpu/agent/unix_target.h"

#include <sys/un.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ascend::agent {

std::string UnixTarget(absl::string_view path) {
  constexpr absl::string_view kUnreserved = "/-._~";
  std::string target = "unix:";
  for (const char c : path) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
        kUnreserved.find(c) != absl::string_view::npos) {
      target.push_back(c);
    } else {
      absl::StrAppendFormat(&target, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return target;
}

absl::Status CheckSocketPath(absl::string_view path) {
  if (path.empty() || path.front() != '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("socket path \"", path, "\" is not an absolute path"));
  }
  constexpr size_t kMaxLength = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > kMaxLength) {
    return absl::InvalidArgumentError(absl::StrCat("socket path ", path, " has ", path.size(),
                                                   " bytes, the kernel allows ", kMaxLength));
  }
  return absl::OkStatus();
}

}  // namespace ascend::agent
