#include "kubeletplugin/claims/host_files.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <deque>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/core/file.h"

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

std::optional<std::string> HostFiles::Resolve(const std::string& host_path, bool follow) const {
  std::deque<std::string> rest = absl::StrSplit(host_path, '/', absl::SkipEmpty());
  std::vector<std::string> done;
  int links = 0;
  const auto joined = [&](const std::string& last) {
    std::string path = root_ == "/" ? "" : root_;
    for (const std::string& component : done) absl::StrAppend(&path, "/", component);
    if (!last.empty()) absl::StrAppend(&path, "/", last);
    return path.empty() ? std::string("/") : path;
  };
  while (!rest.empty()) {
    const std::string component = std::move(rest.front());
    rest.pop_front();
    if (component == ".") continue;
    if (component == "..") {
      if (!done.empty()) done.pop_back();
      continue;
    }
    const std::string path = joined(component);
    struct stat info;
    if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
    if (S_ISLNK(info.st_mode) && (follow || !rest.empty())) {
      char target[PATH_MAX];
      const ssize_t length = ::readlink(path.c_str(), target, sizeof(target));
      if (length <= 0 || ++links > kMaxLinks) return std::nullopt;
      const absl::string_view text(target, length);
      if (text.front() == '/') done.clear();
      std::vector<std::string> parts = absl::StrSplit(text, '/', absl::SkipEmpty());
      rest.insert(rest.begin(), parts.begin(), parts.end());
      continue;
    }
    done.push_back(component);
  }
  return joined("");
}

HostFiles::Entry HostFiles::Look(const std::string& host_path) const {
  const std::optional<std::string> path = Resolve(host_path, /*follow=*/false);
  struct stat info;
  if (!path || ::lstat(path->c_str(), &info) != 0) return {};
  return EntryOf(info);
}

HostFiles::Entry HostFiles::Follow(const std::string& host_path) const {
  const std::optional<std::string> path = Resolve(host_path, /*follow=*/true);
  struct stat info;
  if (!path || ::lstat(path->c_str(), &info) != 0) return {};
  return EntryOf(info);
}

std::vector<std::string> HostFiles::List(const std::string& host_path) const {
  const std::optional<std::string> path = Resolve(host_path, /*follow=*/true);
  if (!path) return {};
  absl::StatusOr<std::vector<std::string>> names = ListDirectory(*path);
  return names.ok() ? *std::move(names) : std::vector<std::string>();
}

absl::StatusOr<std::string> HostFiles::Read(const std::string& host_path) const {
  const std::optional<std::string> path = Resolve(host_path, /*follow=*/true);
  if (!path) return absl::NotFoundError(absl::StrCat("host file ", host_path, " is missing"));
  return ReadFile(*path);
}

}  // namespace ascend::kubeletplugin
