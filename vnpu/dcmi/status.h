// libdcmi's return codes as absl::Status: the one place that knows what each code means to us.
#ifndef ASCEND_DRA_VNPU_DCMI_STATUS_H_
#define ASCEND_DRA_VNPU_DCMI_STATUS_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ascend::dcmi {

// "NOT_READY" for -8012; "UNKNOWN" for a code that is not in the table.
absl::string_view ReturnCodeName(int code);

// OK for 0. Otherwise a status whose message reads "dcmi_get_device_health returned -8012
// (NOT_READY)", which ReturnCodeOf() can take apart again. The codes that callers branch on:
//   kUnimplemented    the product, the caller's kind of container or this version of the library
//                     does not have it (-8255, -8013, -99998): absent, never a fault
//   kUnavailable      the chip or the driver may answer later (-8009 .. -8012, -8017)
//   kDeadlineExceeded the library's own time-out (-8006)
//   kNotFound         no such chip (-8007, -8008)
//   kFailedPrecondition  somebody else uses it (-8020; from create, destroy and reset also -8013),
//                     or the library is invalid (-99997)
absl::Status StatusFromCode(int code, absl::string_view function);

// The return code behind a status made by StatusFromCode(), also after Annotate().
std::optional<int> ReturnCodeOf(const absl::Status& status);

}  // namespace ascend::dcmi

#endif  // ASCEND_DRA_VNPU_DCMI_STATUS_H_
