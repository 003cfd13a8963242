#include "vnpu/dcmi/status.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "vnpu/dcmi/abi.h"

namespace ascend::dcmi {
namespace {

constexpr absl::string_view kCodePayload = "ascend.dcmi/return-code";

// To these, the driver's "device busy" comes as "not in a container".
bool SaysBusyInOtherWords(absl::string_view function) {
  return function == "dcmi_create_vdevice" || function == "dcmi_set_destroy_vdevice" ||
         function == "dcmi_set_device_reset" || function == "dcmiv2_reset_device";
}

absl::StatusCode StatusCodeOf(int code, absl::string_view function) {
  if (code == DCMI_NOT_SUPPORT_IN_CONTAINER && SaysBusyInOtherWords(function)) {
    return absl::StatusCode::kFailedPrecondition;
  }
  switch (code) {
    case DCMI_INVALID_PARAMETER:
    case DCMI_PARTITION_NOT_RIGHT:
      return absl::StatusCode::kInvalidArgument;
    case DCMI_OPER_NOT_PERMITTED:
      return absl::StatusCode::kPermissionDenied;
    case DCMI_TIME_OUT:
      return absl::StatusCode::kDeadlineExceeded;
    case DCMI_INVALID_DEVICE_ID:
    case DCMI_DEVICE_NOT_EXIST:
    case DCMI_CONFIG_INFO_NOT_EXIST:
      return absl::StatusCode::kNotFound;
    case DCMI_IOCTL_FAIL:
    case DCMI_SEND_MSG_FAIL:
    case DCMI_RECV_MSG_FAIL:
    case DCMI_NOT_READY:
    case DCMI_IS_UPGRADING:
      return absl::StatusCode::kUnavailable;
    case DCMI_NOT_SUPPORT:
    case DCMI_NOT_SUPPORT_IN_CONTAINER:
    case DCMI_FUNCTION_NOT_FOUND:
      return absl::StatusCode::kUnimplemented;
    case DCMI_ABORT:
      return absl::StatusCode::kAborted;
    case DCMI_RESOURCE_OCCUPIED:
    case DCMI_LIBRARY_INVALID:
      return absl::StatusCode::kFailedPrecondition;
    case DCMI_INNER_ERR:
    case DCMI_MEM_OPERATE_FAIL:
    case DCMI_SECURE_FUN_FAIL:
    case DCMI_FILE_OPERATE_FAIL:
    case DCMI_RESET_FAIL:
      return absl::StatusCode::kInternal;
    default:
      return absl::StatusCode::kUnknown;
  }
}

}  // namespace

absl::string_view ReturnCodeName(int code) {
  switch (code) {
#define ASCEND_NAME_CASE(value, name) \
  case value:                         \
    return #name;
    ASCEND_DCMI_RETURN_CODES(ASCEND_NAME_CASE)
#undef ASCEND_NAME_CASE
    default:
      break;
  }
  return "UNKNOWN";
}

absl::Status StatusFromCode(int code, absl::string_view function) {
  if (code == DCMI_OK) return absl::OkStatus();
  absl::Status status(StatusCodeOf(code, function),
                      absl::StrCat(function, " returned ", code, " (", ReturnCodeName(code), ")"));
  // Through a view: gcc and clang mangle Cord's constructor from a string differently.
  const std::string text = absl::StrCat(code);
  status.SetPayload(kCodePayload, absl::Cord(absl::string_view(text)));
  return status;
}

std::optional<int> ReturnCodeOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kCodePayload);
  int code = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &code)) return std::nullopt;
  return code;
}

}  // namespace ascend::dcmi
