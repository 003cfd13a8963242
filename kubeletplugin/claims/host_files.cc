#include "kubeletplugin/claims/host_files.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <deque>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/core/directory_watch.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/runtime/clock.h"

namespace ascend::kubeletplugin {
namespace {

constexpr int kMaxLinks = 16;

HostFiles::Entry EntryOf(const struct stat& info) {
  using Kind = HostFiles::Kind;
  switch (info.st_mode & S_IFMT) {
    case S_IFREG:
      return {Kind::kFile, 0};
    case S_IFDIR:
      return {Kind::kDirectory, 0};
    case S_IFCHR:
      return {Kind::kCharacterDevice, info.st_rdev};
    case S_IFLNK:
      return {Kind::kSymlink, 0};
    default:
      return {Kind::kOther, 0};
  }
}

}  // namespace

HostFiles HostFiles::OnePass() const {
  HostFiles files(root_);
  files.memory_ = std::make_shared<Memory>();
  return files;
}

HostFiles::Seen HostFiles::See(const std::string& path) const {
  if (memory_ != nullptr) {
    if (const auto known = memory_->find(path); known != memory_->end()) return known->second;
  }
  Seen seen;
  struct stat info;
  if (::lstat(path.c_str(), &info) == 0) seen.entry = EntryOf(info);
  if (seen.entry.kind == Kind::kSymlink) {
    char target[PATH_MAX];
    const ssize_t length = ::readlink(path.c_str(), target, sizeof(target));
    if (length > 0) seen.link_target.assign(target, static_cast<size_t>(length));
  }
  if (memory_ != nullptr) memory_->emplace(path, seen);
  return seen;
}

std::optional<HostFiles::Found> HostFiles::Find(const std::string& host_path, bool follow) const {
  std::deque<std::string> rest = absl::StrSplit(host_path, '/', absl::SkipEmpty());
  const std::string root = root_ == "/" ? "" : root_;
  std::string path = root;
  std::vector<size_t> parents;  // lengths of `path` before each component
  std::optional<Entry> entry;   // of `path`, if it was just looked at
  int links = 0;
  while (!rest.empty()) {
    const std::string component = std::move(rest.front());
    rest.pop_front();
    if (component == ".") continue;
    if (component == "..") {
      if (!parents.empty()) {
        path.resize(parents.back());
        parents.pop_back();
        entry.reset();
      }
      continue;
    }
    parents.push_back(path.size());
    absl::StrAppend(&path, "/", component);
    Seen seen = See(path);
    if (seen.entry.kind == Kind::kMissing) return std::nullopt;
    if (seen.entry.kind == Kind::kSymlink && (follow || !rest.empty())) {
      const absl::string_view target = seen.link_target;
      if (target.empty() || ++links > kMaxLinks) return std::nullopt;
      entry.reset();
      path.resize(parents.back());
      parents.pop_back();
      if (target.front() == '/') {
        path = root;
        parents.clear();
      }
      std::vector<std::string> parts = absl::StrSplit(target, '/', absl::SkipEmpty());
      rest.insert(rest.begin(), parts.begin(), parts.end());
      continue;
    }
    entry = seen.entry;
  }
  if (path.empty()) path = "/";
  if (!entry) entry = See(path).entry;
  return Found{std::move(path), *entry};
}

HostFiles::Entry HostFiles::Look(const std::string& host_path) const {
  const std::optional<Found> found = Find(host_path, /*follow=*/false);
  return found ? found->entry : Entry();
}

HostFiles::Entry HostFiles::Follow(const std::string& host_path) const {
  const std::optional<Found> found = Find(host_path, /*follow=*/true);
  return found ? found->entry : Entry();
}

bool HostFiles::WaitFor(const std::string& host_path, absl::Duration timeout) const {
  const auto there = [&] { return OnePass().Look(host_path).kind != Kind::kMissing; };
  if (there()) return true;
  Mutex mutex;
  CondVar changed;
  bool change = false;
  const auto watch =
      DirectoryWatch::Start(JoinPath(root_, host_path.substr(1, host_path.rfind('/') - 1)), [&] {
        MutexLock lock(&mutex);
        change = true;
        changed.Signal();
      });
  // Without a watch (the kernel has no room for one) the directory is looked at again and again.
  const absl::Duration step = watch.ok() ? absl::InfiniteDuration() : absl::Milliseconds(100);
  const absl::Duration end = Clock::Real().Monotonic() + timeout;
  while (!there()) {
    const absl::Duration left = end - Clock::Real().Monotonic();
    if (left <= absl::ZeroDuration()) return false;
    MutexLock lock(&mutex);
    if (!change) changed.WaitFor(&mutex, std::min(left, step));
    change = false;
  }
  return true;
}

std::vector<std::string> HostFiles::List(const std::string& host_path) const {
  const std::optional<Found> found = Find(host_path, /*follow=*/true);
  if (!found) return {};
  absl::StatusOr<std::vector<std::string>> names = ListDirectory(found->path);
  return names.ok() ? *std::move(names) : std::vector<std::string>();
}

absl::StatusOr<std::string> HostFiles::Read(const std::string& host_path) const {
  const std::optional<Found> found = Find(host_path, /*follow=*/true);
  if (!found) return absl::NotFoundError(absl::StrCat("host file ", host_path, " is missing"));
  return ReadFile(found->path);
}

}  // namespace ascend::kubeletplugin
