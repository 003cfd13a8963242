#include "kubeletplugin/claims/prepare_error.h"

#include <utility>

#include "absl/strings/cord.h"

namespace ascend::kubeletplugin {
namespace {

constexpr char kPayload[] = "npu.huawei.com/prepare-error";

}  // namespace

const char* Name(PrepareError error) {
  switch (error) {
    case PrepareError::kClaimNotFound:
      return "claim_not_found";
    case PrepareError::kClaimRejected:
      return "claim_rejected";
    case PrepareError::kChipHeld:
      return "chip_held";
    case PrepareError::kLock:
      return "lock";
    case PrepareError::kVnpu:
      return "vnpu";
    case PrepareError::kDeviceNode:
      return "device_node";
    case PrepareError::kCdiFile:
      return "cdi_file";
    case PrepareError::kRecordWrite:
      return "record_write";
    case PrepareError::kRecordUnreadable:
      return "record_unreadable";
    case PrepareError::kUnavailable:
      return "unavailable";
    case PrepareError::kDeadline:
      return "deadline";
    case PrepareError::kPermission:
      return "permission";
    case PrepareError::kNoSpace:
      return "no_space";
    case PrepareError::kSuperseded:
      return "superseded";
    case PrepareError::kInternal:
      break;
  }
  return "internal";
}

absl::Status WithReason(absl::Status status, PrepareError error) {
  if (!status.ok() && !status.GetPayload(kPayload)) {
    status.SetPayload(kPayload, absl::Cord(Name(error)));
  }
  return status;
}

PrepareError ReasonOf(const absl::Status& status) {
  if (const auto given = status.GetPayload(kPayload)) {
    for (const PrepareError error : kPrepareErrors) {
      if (*given == Name(error)) return error;
    }
  }
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return PrepareError::kClaimNotFound;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kAlreadyExists:
      return PrepareError::kClaimRejected;
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnimplemented:
      return PrepareError::kRecordUnreadable;
    case absl::StatusCode::kUnavailable:
      return PrepareError::kUnavailable;
    case absl::StatusCode::kDeadlineExceeded:
      return PrepareError::kDeadline;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return PrepareError::kPermission;
    case absl::StatusCode::kResourceExhausted:
      return PrepareError::kNoSpace;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
      return PrepareError::kSuperseded;
    default:
      return PrepareError::kInternal;
  }
}

}  // namespace ascend::kubeletplugin
