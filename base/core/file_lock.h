// An exclusive lock on a file, between threads and between processes. The file stays; the lock goes
// with its holder, also when that crashes.
#ifndef ASCEND_DRA_BASE_CORE_FILE_LOCK_H_
#define ASCEND_DRA_BASE_CORE_FILE_LOCK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/core/unique_fd.h"

namespace ascend {

// Holds a lock; gives it back when destroyed. Movable.
class FileLock {
 public:
  FileLock() = default;
  FileLock(FileLock&&) noexcept = default;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

  // Creates the file (0600) if it is missing and waits at most `timeout` for the lock.
  // kDeadlineExceeded, naming the path, if somebody else still holds it then.
  static absl::StatusOr<FileLock> Acquire(const std::string& path, absl::Duration timeout);

  // The same on a file that is open already, whether or not it still has a name. `path` is for
  // messages only.
  static absl::StatusOr<FileLock> AcquireOpen(UniqueFd file, const std::string& path,
                                              absl::Duration timeout);

  bool held() const { return file_.valid(); }
  int fd() const { return file_.get(); }
  // Whether the locked file is still the one that `path` names (it may have been unlinked).
  bool StillLinked() const;
  void Release();

 private:
  explicit FileLock(UniqueFd file) : file_(std::move(file)) {}
  UniqueFd file_;
};

// Opens a lock file for AcquireOpen, creating it (0600) if it is missing.
absl::StatusOr<UniqueFd> OpenLockFile(const std::string& path);

}  // namespace ascend

#endif  // ASCEND_DRA_BASE_CORE_FILE_LOCK_H_
