// Device nodes of edits, completed by what the host says. Not for users of the library.
#ifndef ASCEND_DRA_CDI_HOST_DEVICE_H_
#define ASCEND_DRA_CDI_HOST_DEVICE_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cdi/injector.h"
#include "cdi/spec.h"

namespace ascend::cdi {

struct CompleteNode {
  const DeviceNode* node;  // borrowed
  absl::string_view type;  // never empty; borrowed from `node` or static
  int64_t major;
  int64_t minor;
  std::optional<uint32_t> file_mode;
};

// Looks the node up by lstat, so a symbolic link is no device. What the host says is needed, and
// kFailedPrecondition if it cannot be had, unless the node gives its type and, if that has numbers,
// a major number. It only fills in what the node leaves open.
absl::StatusOr<CompleteNode> CompleteFromHost(const DeviceNode& node,
                                              const InjectionOptions& options);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_HOST_DEVICE_H_
