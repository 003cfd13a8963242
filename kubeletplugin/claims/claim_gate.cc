#include "kubeletplugin/claims/claim_gate.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/core/status_macros.h"

namespace ascend::kubeletplugin {

absl::StatusOr<ClaimGate> ClaimGate::Open(std::string path) {
  ASCEND_ASSIGN_OR_RETURN(UniqueFd file, OpenLockFile(path));
  return ClaimGate(std::move(path), std::move(file));
}

absl::Status ClaimGate::Enter(absl::Duration timeout) {
  ASCEND_ASSIGN_OR_RETURN(lock_, FileLock::AcquireOpen(std::move(file_), path_, timeout));
  if (lock_.StillLinked()) return absl::OkStatus();
  lock_.Release();
  return absl::AbortedError("the claim was unprepared while this call was under way");
}

absl::Status ClaimGate::EndGeneration() {
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) {
    return ErrnoToStatus(errno, absl::StrCat("remove lock file ", path_));
  }
  return absl::OkStatus();
}

absl::StatusOr<ClaimGate> EnterNewest(const std::string& path, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    ASCEND_ASSIGN_OR_RETURN(ClaimGate gate, ClaimGate::Open(path));
    const absl::Status entered = gate.Enter(deadline - absl::Now());
    if (entered.ok()) return gate;
    if (!absl::IsAborted(entered)) return entered;
  }
}

}  // namespace ascend::kubeletplugin
