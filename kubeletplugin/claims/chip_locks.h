// The lock files of chips: whoever changes what is on a chip, or who has it, holds its lock.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CHIP_LOCKS_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CHIP_LOCKS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/core/file_lock.h"
#include "kubeletplugin/paths.h"

namespace ascend::kubeletplugin {

// The locks of these chips, which must ascend so that no two callers deadlock; each is waited for
// at most `wait`, all at most until `deadline` (of SteadyNow()). Thread-safe.
absl::StatusOr<std::vector<FileLock>> LockChips(const Paths& paths,
                                                const std::vector<int>& physical_ids,
                                                absl::Duration wait, absl::Time deadline);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CHIP_LOCKS_H_
