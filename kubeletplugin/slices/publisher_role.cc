#include "kubeletplugin/slices/publisher_role.h"

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "base/core/unique_fd.h"

namespace ascend::kubeletplugin {
namespace {

constexpr char kCurrent[] = "current";
constexpr absl::string_view kInstancePrefix = "instance-";

std::string InstanceName(int64_t start) { return absl::StrCat(kInstancePrefix, start); }

// The start time in an instance's file name; negative for other names.
int64_t StartOf(absl::string_view name) {
  int64_t start = -1;
  return absl::ConsumePrefix(&name, kInstancePrefix) && absl::SimpleAtoi(name, &start) ? start : -1;
}

// The lock, or one that is not held if somebody else has it.
absl::StatusOr<FileLock> TryLock(const std::string& path) {
  absl::StatusOr<FileLock> lock = FileLock::Acquire(path, absl::ZeroDuration());
  if (!lock.ok() && absl::IsDeadlineExceeded(lock.status())) return FileLock();
  return lock;
}

// Whether the instance that owns the file lives; removes the file of one that does not.
absl::StatusOr<bool> IsAlive(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) {
    if (errno == ENOENT) return false;
    return ErrnoToStatus(errno, absl::StrCat("open lock file ", path));
  }
  // Shared, so that several who look at once do not take each other for the owner.
  if (::flock(file.get(), LOCK_SH | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return true;
    return ErrnoToStatus(errno, absl::StrCat("lock ", path));
  }
  ::unlink(path.c_str());
  return false;
}

}  // namespace

int64_t BootTimeNanos() {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

PublisherRole::PublisherRole(std::string directory, int64_t start)
    : directory_(std::move(directory)), start_(start) {}

PublisherRole::~PublisherRole() {
  if (own_.StillLinked()) ::unlink(JoinPath(directory_, InstanceName(start_)).c_str());
}

absl::Status PublisherRole::Enlist() {
  ASCEND_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory_));
  for (const std::string& name : names) {
    if (StartOf(name) < 0) continue;
    ASCEND_RETURN_IF_ERROR(IsAlive(JoinPath(directory_, name)).status());  // removes leftovers
  }
  while (true) {
    const std::string path = JoinPath(directory_, InstanceName(start_));
    // Locked under another name first: a file that appears without its lock would look dead.
    const std::string hidden = JoinPath(directory_, absl::StrCat(".", InstanceName(start_)));
    ASCEND_ASSIGN_OR_RETURN(FileLock lock, TryLock(hidden));
    if (lock.held()) {
      const int error = ::link(hidden.c_str(), path.c_str()) == 0 ? 0 : errno;
      ::unlink(hidden.c_str());
      if (error == 0) {
        own_ = std::move(lock);
        return absl::OkStatus();
      }
      if (error != EEXIST) return ErrnoToStatus(error, absl::StrCat("create ", path));
    }
    ++start_;  // another instance began in the same nanosecond
  }
}

absl::StatusOr<bool> PublisherRole::NewerIsAlive() const {
  ASCEND_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory_));
  for (const std::string& name : names) {
    if (StartOf(name) <= start_) continue;
    ASCEND_ASSIGN_OR_RETURN(const bool alive, IsAlive(JoinPath(directory_, name)));
    if (alive) return true;
  }
  return false;
}

absl::StatusOr<bool> PublisherRole::Update() {
  // Somebody may have emptied the directory: a lock on a file without a name keeps nobody out.
  if (!own_.StillLinked()) {
    own_.Release();
    ASCEND_RETURN_IF_ERROR(Enlist());
  }
  if (!current_.StillLinked()) current_.Release();
  ASCEND_ASSIGN_OR_RETURN(const bool newer, NewerIsAlive());
  newest_ = !newer;
  if (newer) {
    current_.Release();
  } else if (!current_.held()) {
    ASCEND_ASSIGN_OR_RETURN(current_, TryLock(JoinPath(directory_, kCurrent)));
  }
  return current_.held();
}

}  // namespace ascend::kubeletplugin
