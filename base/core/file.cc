#include "base/core/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/core/status_macros.h"

namespace ascend {
namespace {

constexpr absl::string_view kTempSuffix = ".tmp";
constexpr size_t kRandomLength = 16;  // hex digits in the name of a temporary

// A system call that is repeated when a signal interrupts it.
template <typename Call>
auto Retry(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

// The path for an error message. Messages are all that /proc is needed for.
std::string DescribeAt(int dir_fd, absl::string_view name) {
  if (dir_fd == AT_FDCWD) return std::string(name);
  char target[4096];
  const ssize_t length =
      ::readlink(absl::StrCat("/proc/self/fd/", dir_fd).c_str(), target, sizeof(target));
  if (length <= 0) return std::string(name);
  const std::string directory(target, static_cast<size_t>(length));
  return name.empty() ? directory : JoinPath(directory, name);
}

// The *At functions act inside their directory and nowhere else.
absl::Status CheckName(int dir_fd, const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(DescribeAt(dir_fd, ""), ": not a file name: \"", name, "\""));
  }
  return absl::OkStatus();
}

absl::Status NotRegular(const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": not a regular file"));
}

absl::StatusOr<std::string> ReadRelative(int dir_fd, const std::string& name, size_t max_size,
                                         struct stat* file_info) {
  struct stat& info = *file_info;
  // Looking before opening: opening a device node may already have an effect on the device.
  if (::fstatat(dir_fd, name.c_str(), &info, 0) != 0) {
    const int error = errno;
    return ErrnoToStatus(error, DescribeAt(dir_fd, name));
  }
  if (!S_ISREG(info.st_mode)) return NotRegular(DescribeAt(dir_fd, name));
  // O_NONBLOCK: the entry may have become a FIFO since.
  const UniqueFd fd(Retry([&] {
    return ::openat(dir_fd, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  }));
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
    const int error = errno;
    return ErrnoToStatus(error, DescribeAt(dir_fd, name));
  }
  if (!S_ISREG(info.st_mode)) return NotRegular(DescribeAt(dir_fd, name));

  // st_size says nothing in sysfs and procfs.
  std::string content;
  char buffer[16384];
  while (true) {
    const ssize_t got = Retry([&] { return ::read(fd.get(), buffer, sizeof(buffer)); });
    if (got < 0) {
      const int error = errno;
      return ErrnoToStatus(error, absl::StrCat("read ", DescribeAt(dir_fd, name)));
    }
    if (got == 0) return content;
    if (static_cast<size_t>(got) > max_size - content.size()) {
      return absl::OutOfRangeError(
          absl::StrCat(DescribeAt(dir_fd, name), ": larger than ", max_size, " bytes"));
    }
    content.append(buffer, static_cast<size_t>(got));
  }
}

absl::StatusOr<std::string> RandomHex() {
  uint64_t value;
  if (Retry([&] { return ::getrandom(&value, sizeof(value), 0); }) != sizeof(value)) {
    const int error = errno;
    return ErrnoToStatus(error, "getrandom");
  }
  return absl::StrFormat("%016x", value);
}

bool IsTempFileName(absl::string_view entry, absl::string_view name_prefix) {
  if (!absl::ConsumePrefix(&entry, ".") || !absl::ConsumeSuffix(&entry, kTempSuffix) ||
      entry.size() < kRandomLength + 2) {
    return false;
  }
  const absl::string_view random = entry.substr(entry.size() - kRandomLength);
  const absl::string_view name = entry.substr(0, entry.size() - kRandomLength - 1);
  return entry[name.size()] == '.' && absl::StartsWith(name, name_prefix) &&
         random.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

absl::Status WriteAll(int fd, absl::string_view content) {
  while (!content.empty()) {
    const ssize_t written = Retry([&] { return ::write(fd, content.data(), content.size()); });
    if (written < 0) {
      const int error = errno;
      return ErrnoToStatus(error, "write");
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

// `same_file`, if not null, becomes another descriptor of it.
absl::Status FillTempFile(UniqueFd fd, absl::string_view content, const AtomicWriteOptions& options,
                          UniqueFd* same_file) {
  ASCEND_RETURN_IF_ERROR(WriteAll(fd.get(), content));
  if (::fchmod(fd.get(), options.mode) != 0) {
    const int error = errno;
    return ErrnoToStatus(error, "fchmod");
  }
  if (options.durable && Retry([&] { return ::fsync(fd.get()); }) != 0) {
    const int error = errno;
    return ErrnoToStatus(error, "fsync");
  }
  if (same_file != nullptr) *same_file = UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  // Some file systems report a full quota only here.
  if (::close(fd.Release()) != 0 && errno != EINTR) {
    const int error = errno;
    return ErrnoToStatus(error, "close");
  }
  return absl::OkStatus();
}

absl::Status SyncDirectory(int dir_fd) {
  if (Retry([&] { return ::fsync(dir_fd); }) != 0) {
    const int error = errno;
    return ErrnoToStatus(error, absl::StrCat("fsync ", DescribeAt(dir_fd, "")));
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> OpenDirectoryFollowing(const std::string& path) {
  UniqueFd fd(
      Retry([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOCTTY); }));
  if (!fd.valid()) {
    const int error = errno;
    return ErrnoToStatus(error, path);
  }
  return fd;
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::Status MakeDirectory(const std::string& path, mode_t mode, bool durable) {
  if (::mkdir(path.c_str(), mode) != 0) {
    const int error = errno;
    if (IsDirectory(path)) return absl::OkStatus();
    if (error == EEXIST) {
      return absl::FailedPreconditionError(absl::StrCat(path, ": not a directory"));
    }
    return ErrnoToStatus(error, absl::StrCat("mkdir ", path));
  }
  ASCEND_ASSIGN_OR_RETURN(const UniqueFd fd, OpenDirectory(path));
  if (::fchmod(fd.get(), mode) != 0) {  // mkdir applied the umask
    const int error = errno;
    return ErrnoToStatus(error, absl::StrCat("chmod ", path));
  }
  if (!durable) return absl::OkStatus();
  ASCEND_ASSIGN_OR_RETURN(const UniqueFd parent, OpenDirectoryFollowing(ParentOf(path)));
  return SyncDirectory(parent.get());
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_size) {
  struct stat info;
  return ReadRelative(AT_FDCWD, path, max_size, &info);
}

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_size, struct stat* info) {
  return ReadRelative(AT_FDCWD, path, max_size, info);
}

absl::StatusOr<std::string> ReadFileAt(int dir_fd, const std::string& name, size_t max_size) {
  ASCEND_RETURN_IF_ERROR(CheckName(dir_fd, name));
  struct stat info;
  return ReadRelative(dir_fd, name, max_size, &info);
}

absl::StatusOr<UniqueFd> OpenDirectory(const std::string& path) {
  // A trailing slash would make the kernel follow a symlink in spite of O_NOFOLLOW.
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  UniqueFd fd(Retry([&] {
    return ::open(trimmed.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
  }));
  if (fd.valid()) return fd;
  const int error = errno;
  struct stat info;
  if ((error == ENOTDIR || error == ELOOP) && ::lstat(trimmed.c_str(), &info) == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        trimmed, S_ISLNK(info.st_mode) ? ": is a symbolic link" : ": not a directory"));
  }
  return ErrnoToStatus(error, trimmed);
}

absl::Status WriteFileAtomicallyAt(int dir_fd, const std::string& name, absl::string_view content,
                                   const AtomicWriteOptions& options) {
  ASCEND_RETURN_IF_ERROR(CheckName(dir_fd, name));
  std::string temp;
  UniqueFd fd;
  do {
    ASCEND_ASSIGN_OR_RETURN(const std::string random, RandomHex());
    temp = absl::StrCat(".", name, ".", random, kTempSuffix);
    fd = UniqueFd(Retry([&] {
      return ::openat(dir_fd, temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                      0600);
    }));
  } while (!fd.valid() && errno == EEXIST);
  if (!fd.valid()) {
    const int error = errno;
    return ErrnoToStatus(error, absl::StrCat("create ", DescribeAt(dir_fd, temp)));
  }
  UniqueFd written;
  absl::Status status =
      FillTempFile(std::move(fd), content, options, options.info == nullptr ? nullptr : &written);
  if (status.ok() && ::renameat(dir_fd, temp.c_str(), dir_fd, name.c_str()) != 0) {
    const int error = errno;
    status = ErrnoToStatus(error, "rename");
  }
  if (!status.ok()) {
    ::unlinkat(dir_fd, temp.c_str(), 0);
    return Annotate(status, absl::StrCat("write ", DescribeAt(dir_fd, name)));
  }
  // After the rename, which is a change of the inode; by descriptor, for the name may be another
  // file's already.
  if (options.info != nullptr && (!written.valid() || ::fstat(written.get(), options.info) != 0)) {
    *options.info = {};
  }
  return options.durable ? SyncDirectory(dir_fd) : absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content,
                                 const AtomicWriteOptions& options) {
  const size_t slash = path.rfind('/');
  ASCEND_ASSIGN_OR_RETURN(const UniqueFd fd, OpenDirectoryFollowing(ParentOf(path)), "write ",
                          path);
  return WriteFileAtomicallyAt(fd.get(), slash == std::string::npos ? path : path.substr(slash + 1),
                               content, options);
}

absl::Status RemoveStaleTempFiles(int dir_fd, absl::string_view name_prefix,
                                  absl::Duration min_age) {
  ASCEND_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(dir_fd));
  absl::Status first_error;
  for (const std::string& name : names) {
    struct stat info;
    if (!IsTempFileName(name, name_prefix) ||
        ::fstatat(dir_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode) || absl::Now() - absl::TimeFromTimespec(info.st_mtim) < min_age) {
      continue;
    }
    first_error.Update(RemoveFileAt(dir_fd, name, /*durable=*/false));
  }
  return first_error;
}

absl::Status RemoveFileAt(int dir_fd, const std::string& name, bool durable) {
  ASCEND_RETURN_IF_ERROR(CheckName(dir_fd, name));
  if (::unlinkat(dir_fd, name.c_str(), 0) != 0 && errno != ENOENT) {
    const int error = errno;
    return ErrnoToStatus(error, absl::StrCat("remove ", DescribeAt(dir_fd, name)));
  }
  // Also when it was gone already: the removal before us may not have been synced.
  return durable ? SyncDirectory(dir_fd) : absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ListDirectory(int dir_fd) {
  // Not a dup: that would share the read position with `dir_fd` and with other threads.
  UniqueFd own(Retry([&] { return ::openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!own.valid()) {
    const int error = errno;
    return ErrnoToStatus(error, absl::StrCat("list ", DescribeAt(dir_fd, "")));
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(own.get()), ::closedir);
  if (dir == nullptr) {
    const int error = errno;
    return ErrnoToStatus(error, absl::StrCat("list ", DescribeAt(dir_fd, "")));
  }
  own.Release();
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) break;
    const absl::string_view name(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) {
    const int error = errno;
    return ErrnoToStatus(error, absl::StrCat("list ", DescribeAt(dir_fd, "")));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  ASCEND_ASSIGN_OR_RETURN(const UniqueFd fd, OpenDirectoryFollowing(path));
  return ListDirectory(fd.get());
}

absl::Status MakeDirectories(const std::string& path, mode_t mode, bool durable) {
  if (path.empty()) return absl::InvalidArgumentError("no directory name");
  if (IsDirectory(path)) return absl::OkStatus();
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    ASCEND_RETURN_IF_ERROR(MakeDirectory(path.substr(0, slash), mode, durable));
  }
  return MakeDirectory(path, mode, durable);
}

std::string JoinPath(absl::string_view directory, absl::string_view name) {
  while (absl::ConsumeSuffix(&directory, "/")) {
  }
  while (absl::ConsumePrefix(&name, "/")) {
  }
  return absl::StrCat(directory, "/", name);
}

}  // namespace ascend
