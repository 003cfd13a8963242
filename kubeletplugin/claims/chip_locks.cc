#include "kubeletplugin/claims/chip_locks.h"

#include <algorithm>
#include <utility>

#include "base/core/status_macros.h"
#include "kubeletplugin/claims/change_signal.h"
#include "kubeletplugin/claims/prepare_error.h"

namespace ascend::kubeletplugin {

absl::StatusOr<std::vector<FileLock>> LockChips(const Paths& paths,
                                                const std::vector<int>& physical_ids,
                                                absl::Duration wait, absl::Time deadline) {
  std::vector<FileLock> locks;
  for (const int id : physical_ids) {
    ASCEND_ASSIGN_OR_RETURN(
        FileLock lock,
        WithReason(FileLock::Acquire(paths.chip_lock(id), std::min(wait, deadline - SteadyNow())),
                   PrepareError::kLock),
        "chip ", id);
    locks.push_back(std::move(lock));
  }
  return locks;
}

}  // namespace ascend::kubeletplugin
