// Names of runtime releases as people write them, and ranges of releases as cdi/compatibility.h has
// them.
#ifndef ASCEND_DRA_CDI_CMD_RELEASES_H_
#define ASCEND_DRA_CDI_CMD_RELEASES_H_

#include "absl/strings/string_view.h"

namespace ascend::cdi::cmd {

// Whether `range`, such as "1.7.0-1.7.11", "2.1.x", "29.3+" or "1.24", has a release that `version`
// means: "1.7.5" is one, "1.7" any of them, and "" all. A leading "v" counts for nothing.
bool InRange(absl::string_view range, absl::string_view version);

// The same for "containerd 2.1" and "containerd 2.1.x". Names are equal in any case of letters.
bool IsRelease(absl::string_view runtime_range, absl::string_view runtime);

}  // namespace ascend::cdi::cmd

#endif  // ASCEND_DRA_CDI_CMD_RELEASES_H_
