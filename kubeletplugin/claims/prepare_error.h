// Why a Prepare failed, as one word of a fixed set: for the metric, where texts would have no
// bound.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_PREPARE_ERROR_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_PREPARE_ERROR_H_

#include <array>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ascend::kubeletplugin {

enum class PrepareError {
  kClaimNotFound,     // the API server does not know the claim (any more)
  kClaimRejected,     // the claim, its allocation or its configuration cannot be served
  kChipHeld,          // another claim still holds a chip
  kLock,              // the lock of a chip cannot be had: another operation took too long
  kVnpu,              // the library does not make the vNPU
  kDeviceNode,        // a device node is missing on the host, or not what it should be
  kCdiFile,           // the CDI file could not be written
  kRecordWrite,       // the claim record could not be written
  kRecordUnreadable,  // a record is damaged, or of a newer format
  kUnavailable,       // the API server or the agent does not answer
  kDeadline,          // the time for the call ran out
  kPermission,        // not allowed: RBAC, token or file mode
  kNoSpace,           // disk full, or a limit of the kernel
  kSuperseded,        // an Unprepare came meanwhile, or the plugin is stopping
  kInternal,          // everything else
};
inline constexpr std::array kPrepareErrors = {
    PrepareError::kClaimNotFound, PrepareError::kClaimRejected, PrepareError::kChipHeld,
    PrepareError::kLock,          PrepareError::kVnpu,          PrepareError::kDeviceNode,
    PrepareError::kCdiFile,       PrepareError::kRecordWrite,   PrepareError::kRecordUnreadable,
    PrepareError::kUnavailable,   PrepareError::kDeadline,      PrepareError::kPermission,
    PrepareError::kNoSpace,       PrepareError::kSuperseded,    PrepareError::kInternal,
};

// "chip_held"; the metric's label value, so never changed.
const char* Name(PrepareError error);

// The status with `error` as its reason, unless it is OK or has one already. Annotate() keeps it.
absl::Status WithReason(absl::Status status, PrepareError error);
template <typename T>
absl::StatusOr<T> WithReason(absl::StatusOr<T> result, PrepareError error) {
  if (result.ok()) return result;
  return WithReason(std::move(result).status(), error);
}

// The reason that WithReason() gave, else the one that its code stands for. `status` is not OK.
PrepareError ReasonOf(const absl::Status& status);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_PREPARE_ERROR_H_
