#include "kubeletplugin/slices/publisher_role.h"

#include <time.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"

namespace ascend::kubeletplugin {
namespace {

constexpr char kCurrent[] = "current";
constexpr char kNext[] = "next";
constexpr char kNextStart[] = "next-start";

// The lock, or one that is not held if somebody else has it.
absl::StatusOr<FileLock> TryLock(const std::string& path) {
  absl::StatusOr<FileLock> lock = FileLock::Acquire(path, absl::ZeroDuration());
  if (!lock.ok() && absl::IsDeadlineExceeded(lock.status())) return FileLock();
  return lock;
}

}  // namespace

int64_t BootTimeNanos() {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

PublisherRole::PublisherRole(std::string directory, int64_t start)
    : directory_(std::move(directory)), start_(start) {}

absl::StatusOr<bool> PublisherRole::YoungerIsWaiting() const {
  ASCEND_ASSIGN_OR_RETURN(const FileLock nobody, TryLock(JoinPath(directory_, kNext)));
  if (nobody.held()) return false;
  const absl::StatusOr<std::string> text = ReadFile(JoinPath(directory_, kNextStart));
  int64_t start = 0;
  // Without a readable time it has only just taken its place and will write one.
  return text.ok() && absl::SimpleAtoi(*text, &start) && start > start_;
}

absl::StatusOr<bool> PublisherRole::Update() {
  if (current_.held()) {
    ASCEND_ASSIGN_OR_RETURN(const bool younger, YoungerIsWaiting());
    if (younger) current_.Release();
    return !younger;
  }
  if (!next_.held()) {
    ASCEND_ASSIGN_OR_RETURN(next_, TryLock(JoinPath(directory_, kNext)));
    if (!next_.held()) return false;
    ASCEND_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(directory_, kNextStart),
                                               absl::StrCat(start_), {.durable = false}));
  }
  ASCEND_ASSIGN_OR_RETURN(current_, TryLock(JoinPath(directory_, kCurrent)));
  if (current_.held()) next_.Release();
  return current_.held();
}

}  // namespace ascend::kubeletplugin
