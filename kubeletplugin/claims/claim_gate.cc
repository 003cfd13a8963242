#include "kubeletplugin/claims/claim_gate.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "base/runtime/clock.h"

namespace ascend::kubeletplugin {

absl::StatusOr<ClaimGate> ClaimGate::Open(std::string path) {
  ASCEND_ASSIGN_OR_RETURN(UniqueFd file, OpenLockFile(path));
  // The file's age is the time since anybody came to the gate. Best effort: only clean-up asks.
  (void)::futimens(file.get(), nullptr);
  return ClaimGate(std::move(path), std::move(file));
}

absl::StatusOr<ClaimGate> ClaimGate::OpenExisting(std::string path) {
  while (true) {
    UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (file.valid()) return ClaimGate(std::move(path), std::move(file));
    const int error = errno;
    if (error != EINTR) return ErrnoToStatus(error, absl::StrCat("open lock file ", path));
  }
}

absl::Status ClaimGate::Enter(absl::Duration timeout) {
  ASCEND_ASSIGN_OR_RETURN(lock_, FileLock::AcquireOpen(std::move(file_), path_, timeout));
  struct stat info;
  if (::fstat(lock_.fd(), &info) != 0) {
    const int error = errno;
    lock_.Release();
    return ErrnoToStatus(error, absl::StrCat("lock file ", path_));
  }
  if (info.st_nlink > 0) return absl::OkStatus();
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
  const absl::Duration deadline = Clock::Real().Monotonic() + timeout;
  while (true) {
    ASCEND_ASSIGN_OR_RETURN(ClaimGate gate, ClaimGate::Open(path));
    const absl::Status entered = gate.Enter(deadline - Clock::Real().Monotonic());
    if (entered.ok()) return gate;
    if (!absl::IsAborted(entered)) return entered;
  }
}

}  // namespace ascend::kubeletplugin
