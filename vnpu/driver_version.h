// Whether two spellings of a driver's version mean the same.
#ifndef ASCEND_DRA_VNPU_DRIVER_VERSION_H_
#define ASCEND_DRA_VNPU_DRIVER_VERSION_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ascend::vnpu {

// True also if one of them is no version ("", "NA"): nothing is known then. "24.1.RC2",
// "v24.1-rc02" and "24.1.rc2.0" are the same; so are "25.5.1" and "25.5.1 B030".
bool MayBeSameVersion(absl::string_view one, absl::string_view other);

// For Inventory::version_problem: empty if what runs may be what is installed.
std::string DriverVersionProblem(absl::string_view running, absl::string_view installed);

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_DRIVER_VERSION_H_
