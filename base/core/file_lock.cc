#include "base/core/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "base/core/mutex.h"
#include "base/core/status_macros.h"

namespace ascend {
namespace {

// flock() has no time-out and no queue to wait on, so a waiter tries again: at once when a holder
// in this process lets go, and every kPollInterval for a holder in another process.
constexpr absl::Duration kPollInterval = absl::Milliseconds(10);

struct Releases {
  Mutex mutex;
  CondVar changed;
};

Releases& AnyRelease() {
  static Releases* const releases = new Releases;
  return *releases;
}

absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace

absl::StatusOr<UniqueFd> OpenLockFile(const std::string& path) {
  while (true) {
    UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.valid()) return file;
    const int error = errno;
    if (error != EINTR) return ErrnoToStatus(error, absl::StrCat("open lock file ", path));
  }
}

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path, absl::Duration timeout) {
  ASCEND_ASSIGN_OR_RETURN(UniqueFd file, OpenLockFile(path));
  return AcquireOpen(std::move(file), path, timeout);
}

absl::StatusOr<FileLock> FileLock::AcquireOpen(UniqueFd file, const std::string& path,
                                               absl::Duration timeout) {
  const absl::Time deadline = SteadyNow() + timeout;
  Releases& releases = AnyRelease();
  MutexLock lock(&releases.mutex);
  while (true) {
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return FileLock(std::move(file));
    const int error = errno;
    if (error == EINTR) continue;
    if (error != EWOULDBLOCK) return ErrnoToStatus(error, absl::StrCat("lock ", path));
    const absl::Duration left = deadline - SteadyNow();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat("lock ", path,
                                                      " is still held by another operation after ",
                                                      absl::FormatDuration(timeout)));
    }
    releases.changed.WaitFor(&releases.mutex, std::min(left, kPollInterval));
  }
}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  if (this != &other) {
    Release();
    file_ = std::move(other.file_);
  }
  return *this;
}

FileLock::~FileLock() { Release(); }

void FileLock::Release() {
  if (!file_.valid()) return;
  Releases& releases = AnyRelease();
  // Under the mutex, which the next holder takes too: so what this thread wrote happens before what
  // that one reads. The kernel's lock alone is no such promise in C++.
  MutexLock lock(&releases.mutex);
  file_.Reset();  // closing the only descriptor of the open file drops the lock
  releases.changed.SignalAll();
}

bool FileLock::StillLinked() const {
  struct stat info;
  return file_.valid() && ::fstat(file_.get(), &info) == 0 && info.st_nlink > 0;
}

}  // namespace ascend
