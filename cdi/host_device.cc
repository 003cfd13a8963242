#include "cdi/host_device.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "cdi/document_path.h"

namespace ascend::cdi {
namespace {

int LstatOf(const InjectionOptions& options, const std::string& path, struct stat* info) {
  if (options.lstat) return options.lstat(path, info);
  return ::lstat(path.c_str(), info) == 0 ? 0 : errno;
}

// Empty if it is no device node.
absl::string_view TypeOf(mode_t mode) {
  if (S_ISCHR(mode)) return "c";
  if (S_ISBLK(mode)) return "b";
  if (S_ISFIFO(mode)) return "p";
  return "";
}

absl::Status HostError(const DeviceNode& node, const std::string& host_path,
                       absl::string_view problem) {
  std::string message = absl::StrCat("device node ", Quote(node.path), ": ");
  if (host_path != node.path) absl::StrAppend(&message, "host path ", Quote(host_path), ": ");
  return absl::FailedPreconditionError(absl::StrCat(message, problem));
}

}  // namespace

absl::StatusOr<CompleteNode> CompleteFromHost(const DeviceNode& node,
                                              const InjectionOptions& options) {
  CompleteNode complete{&node, node.type, node.major, node.minor, node.file_mode};
  const bool needs_host = node.type.empty() || (node.major == 0 && node.type != "p");

  const std::string& host_path = node.host_path.empty() ? node.path : node.host_path;
  struct stat info = {};
  const int error = LstatOf(options, host_path, &info);
  if (error != 0) {
    if (!needs_host) return complete;
    // Whatever the errno: it is the host that is not as the edits need it.
    return HostError(node, host_path, ErrnoToStatus(error, "lstat").message());
  }
  const absl::string_view host_type = TypeOf(info.st_mode);
  if (host_type.empty()) {
    if (!needs_host) return complete;
    return HostError(node, host_path, "not a device node");
  }
  if (!complete.file_mode.has_value() && !options.compatibility.no_file_mode_from_host) {
    complete.file_mode = info.st_mode & ~static_cast<mode_t>(S_IFMT);
  }
  if (!needs_host) return complete;

  if (complete.type.empty()) complete.type = host_type;
  if (complete.type != host_type) {
    return HostError(
        node, host_path,
        absl::StrCat("the host's is of type ", host_type, ", type ", node.type, " is asked for"));
  }
  if (host_type != "p" && node.major == 0) {
    complete.major = static_cast<int64_t>(major(info.st_rdev));
    complete.minor = static_cast<int64_t>(minor(info.st_rdev));
  }
  return complete;
}

}  // namespace ascend::cdi
