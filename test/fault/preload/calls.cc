// The C library's functions that touch files, replaced by ones that ask the harness first.
#include <dirent.h>
#include <dlfcn.h>
#include <sys/file.h>
#include <sys/inotify.h>

#include <cerrno>
#include <cstdarg>
#include <mutex>
#include <string>
#include <type_traits>

#include "test/fault/preload/harness.h"
#include "test/fault/preload/raw.h"

#define ASCEND_FAULT_EXPORT extern "C" __attribute__((visibility("default")))

namespace ascend::fault {
namespace {

thread_local bool inside = false;  // a call of the harness itself

// Leaves errno as it is, as a successful call does.
class KeepErrno {
 public:
  ~KeepErrno() { errno = error_; }

 private:
  const int error_ = errno;
};

std::string PathOfFd(int fd) {
  const KeepErrno keep;
  const std::string path = RawReadLink(("/proc/self/fd/" + std::to_string(fd)).c_str());
  static constexpr char kDeleted[] = " (deleted)";
  constexpr size_t kLength = sizeof(kDeleted) - 1;
  if (path.size() > kLength && path.compare(path.size() - kLength, kLength, kDeleted) == 0) {
    return path.substr(0, path.size() - kLength);
  }
  return path;
}

std::string PathAt(int dir_fd, const char* path) {
  if (path == nullptr) return PathOfFd(dir_fd);
  if (path[0] == '/') return path;
  std::string directory = dir_fd == AT_FDCWD ? RawReadLink("/proc/self/cwd") : PathOfFd(dir_fd);
  if (path[0] == '\0' || (path[0] == '.' && path[1] == '\0')) return directory;
  return directory + "/" + path;
}

template <typename Result>
Result Failed() {
  if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else {
    return -1;
  }
}

// Makes the call unless something else is to happen to it. `track` tells the durable state of a
// success.
template <typename Real, typename Track>
auto Make(const Call& call, Real real, Track track) -> decltype(real()) {
  Harness* const harness = inside ? nullptr : Harness::Get();
  if (harness == nullptr || !harness->Watches(call.path)) return real();
  inside = true;
  // Held during the call: a power cut by another thread comes before or after it.
  std::unique_lock lock(harness->mutex());
  auto result = Failed<decltype(real())>();
  const Harm harm = harness->Next(call);
  if (harm == Harm::kFail) {
    const int error = errno;
    if (call.happens_anyway) real();
    errno = error;
  } else {
    result = real();
    const int error = errno;
    if (result != Failed<decltype(real())>() && harness->durable() != nullptr) {
      track(*harness->durable(), result);
    }
    if (harm == Harm::kKillAfter) Harness::Die();
    errno = error;
  }
  lock.unlock();
  inside = false;
  return result;
}

template <typename Real>
auto Make(const Call& call, Real real) {
  return Make(call, real, [](DurableState&, auto) {});
}

bool Exists(int dir_fd, const char* path) {
  const KeepErrno keep;
  struct stat info;
  return RawStatAt(dir_fd, path, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

int Open(const char* name, int dir_fd, const char* path, int flags, mode_t mode) {
  const bool creates = (flags & O_CREAT) != 0 && !Exists(dir_fd, path);
  const bool changes = creates || (flags & O_TRUNC) != 0;
  return Make(
      {.name = name,
       .path = PathAt(dir_fd, path),
       .changes = changes,
       .needs_room = creates,
       .interruptible = true},
      [&] { return RawOpenAt(dir_fd, path, flags, mode); },
      [&](DurableState& durable, int fd) {
        if (creates) durable.Created(fd);
        if ((flags & O_TRUNC) != 0) durable.Written(fd);
      });
}

ssize_t Write(const char* name, int fd, const void* bytes, size_t size, off_t offset) {
  const auto real = [&](size_t part) -> ssize_t {
    if (offset < 0) return RawWrite(fd, bytes, part);
    return ::syscall(SYS_pwrite64, fd, bytes, part, offset);
  };
  Harness* const harness = inside ? nullptr : Harness::Get();
  const std::string path = harness == nullptr ? "" : PathOfFd(fd);
  if (harness == nullptr || !harness->Watches(path)) return real(size);
  inside = true;
  std::unique_lock lock(harness->mutex());
  ssize_t result = -1;
  const Harm harm = harness->Next({.name = name,
                                   .path = path,
                                   .changes = true,
                                   .needs_room = true,
                                   .writes = true,
                                   .interruptible = true});
  if (harm != Harm::kFail) {
    const bool half = harm == Harm::kShort || harm == Harm::kTorn;
    result = real(half ? (size + 1) / 2 : size);
    if (harness->durable() != nullptr) harness->durable()->Written(fd);
    if (harm == Harm::kTorn || harm == Harm::kKillAfter) Harness::Die();
  }
  lock.unlock();
  inside = false;
  return result;
}

// A call that may block is made without the mutex.
template <typename Real>
int MakeBlocking(const Call& call, Real real) {
  Harness* const harness = inside ? nullptr : Harness::Get();
  if (harness == nullptr || !harness->Watches(call.path)) return real();
  inside = true;
  const Harm harm = harness->Next(call);
  inside = false;
  if (harm == Harm::kFail) return -1;
  const int result = real();
  if (harm == Harm::kKillAfter) Harness::Die();
  return result;
}

int Stat(const char* name, int dir_fd, const char* path, struct stat* info, int flags) {
  return Make({.name = name, .path = PathAt(dir_fd, path)},
              [&] { return RawStatAt(dir_fd, path, info, flags); });
}

int Sync(const char* name, long number, int fd) {
  const std::string path = PathOfFd(fd);
  return Make(
      {.name = name, .path = path, .changes = true, .interruptible = true},
      [&] { return static_cast<int>(::syscall(number, fd)); },
      [&](DurableState& durable, int) { durable.Synced(fd, path); });
}

int Rename(const char* name, int old_dir, const char* old_path, int new_dir, const char* new_path,
           unsigned flags) {
  return Make({.name = name, .path = PathAt(new_dir, new_path), .changes = true},
              [&] { return RawRenameAt(old_dir, old_path, new_dir, new_path, flags); });
}

int Unlink(const char* name, int dir_fd, const char* path, int flags) {
  return Make({.name = name, .path = PathAt(dir_fd, path), .changes = true},
              [&] { return RawUnlinkAt(dir_fd, path, flags); });
}

int Mkdir(const char* name, int dir_fd, const char* path, mode_t mode) {
  return Make({.name = name, .path = PathAt(dir_fd, path), .changes = true, .needs_room = true},
              [&] { return RawMkdirAt(dir_fd, path, mode); });
}

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

mode_t ModeArgument(int flags, va_list arguments) {
  return (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace
}  // namespace ascend::fault

using namespace ascend::fault;  // NOLINT: what follows is outside every namespace

#define ASCEND_FAULT_OPEN(function)                                    \
  ASCEND_FAULT_EXPORT int function(const char* path, int flags, ...) { \
    va_list arguments;                                                 \
    va_start(arguments, flags);                                        \
    const mode_t mode = ModeArgument(flags, arguments);                \
    va_end(arguments);                                                 \
    return Open("open", AT_FDCWD, path, flags, mode);                  \
  }
ASCEND_FAULT_OPEN(open)
ASCEND_FAULT_OPEN(open64)

#define ASCEND_FAULT_OPENAT(function)                                              \
  ASCEND_FAULT_EXPORT int function(int dir_fd, const char* path, int flags, ...) { \
    va_list arguments;                                                             \
    va_start(arguments, flags);                                                    \
    const mode_t mode = ModeArgument(flags, arguments);                            \
    va_end(arguments);                                                             \
    return Open("openat", dir_fd, path, flags, mode);                              \
  }
ASCEND_FAULT_OPENAT(openat)
ASCEND_FAULT_OPENAT(openat64)

ASCEND_FAULT_EXPORT int creat(const char* path, mode_t mode) {
  return Open("creat", AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

ASCEND_FAULT_EXPORT int close(int fd) {
  return Make(
      {.name = "close", .path = PathOfFd(fd), .interruptible = true, .happens_anyway = true},
      [&] { return RawClose(fd); });
}

ASCEND_FAULT_EXPORT ssize_t read(int fd, void* buffer, size_t size) {
  return Make({.name = "read", .path = PathOfFd(fd), .interruptible = true},
              [&] { return RawRead(fd, buffer, size); });
}

ASCEND_FAULT_EXPORT ssize_t write(int fd, const void* bytes, size_t size) {
  return Write("write", fd, bytes, size, -1);
}
ASCEND_FAULT_EXPORT ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return Write("pwrite", fd, bytes, size, offset);
}
ASCEND_FAULT_EXPORT ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  return Write("pwrite", fd, bytes, size, offset);
}

ASCEND_FAULT_EXPORT int fsync(int fd) { return Sync("fsync", SYS_fsync, fd); }
ASCEND_FAULT_EXPORT int fdatasync(int fd) { return Sync("fdatasync", SYS_fdatasync, fd); }

ASCEND_FAULT_EXPORT int rename(const char* old_path, const char* new_path) noexcept {
  return Rename("rename", AT_FDCWD, old_path, AT_FDCWD, new_path, 0);
}
ASCEND_FAULT_EXPORT int renameat(int old_dir, const char* old_path, int new_dir,
                                 const char* new_path) noexcept {
  return Rename("renameat", old_dir, old_path, new_dir, new_path, 0);
}
ASCEND_FAULT_EXPORT int renameat2(int old_dir, const char* old_path, int new_dir,
                                  const char* new_path, unsigned flags) noexcept {
  return Rename("renameat2", old_dir, old_path, new_dir, new_path, flags);
}

ASCEND_FAULT_EXPORT int unlink(const char* path) noexcept {
  return Unlink("unlink", AT_FDCWD, path, 0);
}
ASCEND_FAULT_EXPORT int unlinkat(int dir_fd, const char* path, int flags) noexcept {
  return Unlink("unlinkat", dir_fd, path, flags);
}
ASCEND_FAULT_EXPORT int rmdir(const char* path) noexcept {
  return Unlink("rmdir", AT_FDCWD, path, AT_REMOVEDIR);
}

ASCEND_FAULT_EXPORT int mkdir(const char* path, mode_t mode) noexcept {
  return Mkdir("mkdir", AT_FDCWD, path, mode);
}
ASCEND_FAULT_EXPORT int mkdirat(int dir_fd, const char* path, mode_t mode) noexcept {
  return Mkdir("mkdirat", dir_fd, path, mode);
}

ASCEND_FAULT_EXPORT int linkat(int old_dir, const char* old_path, int new_dir, const char* new_path,
                               int flags) noexcept {
  return Make(
      {.name = "linkat", .path = PathAt(new_dir, new_path), .changes = true, .needs_room = true},
      [&] {
        return static_cast<int>(::syscall(SYS_linkat, old_dir, old_path, new_dir, new_path, flags));
      });
}

ASCEND_FAULT_EXPORT int fchmod(int fd, mode_t mode) noexcept {
  return Make({.name = "fchmod", .path = PathOfFd(fd), .changes = true},
              [&] { return static_cast<int>(::syscall(SYS_fchmod, fd, mode)); });
}
ASCEND_FAULT_EXPORT int fchown(int fd, uid_t user, gid_t group) noexcept {
  return Make({.name = "fchown", .path = PathOfFd(fd), .changes = true},
              [&] { return static_cast<int>(::syscall(SYS_fchown, fd, user, group)); });
}

#define ASCEND_FAULT_FTRUNCATE(function, type)                                \
  ASCEND_FAULT_EXPORT int function(int fd, type size) noexcept {              \
    return Make(                                                              \
        {.name = "ftruncate", .path = PathOfFd(fd), .changes = true},         \
        [&] { return static_cast<int>(::syscall(SYS_ftruncate, fd, size)); }, \
        [&](DurableState& durable, int) { durable.Written(fd); });            \
  }
ASCEND_FAULT_FTRUNCATE(ftruncate, off_t)
ASCEND_FAULT_FTRUNCATE(ftruncate64, off64_t)

ASCEND_FAULT_EXPORT int futimens(int fd, const timespec times[2]) noexcept {
  return Make({.name = "futimens", .path = PathOfFd(fd), .changes = true},
              [&] { return static_cast<int>(::syscall(SYS_utimensat, fd, nullptr, times, 0)); });
}

ASCEND_FAULT_EXPORT int flock(int fd, int operation) noexcept {
  return MakeBlocking({.name = "flock", .path = PathOfFd(fd), .interruptible = true},
                      [&] { return static_cast<int>(::syscall(SYS_flock, fd, operation)); });
}

// Only locks count: everything else of fcntl() is about the descriptor.
#define ASCEND_FAULT_FCNTL(function)                                                           \
  ASCEND_FAULT_EXPORT int function(int fd, int command, ...) {                                 \
    va_list arguments;                                                                         \
    va_start(arguments, command);                                                              \
    void* const argument = va_arg(arguments, void*);                                           \
    va_end(arguments);                                                                         \
    const auto real = [&] {                                                                    \
      return static_cast<int>(::syscall(SYS_fcntl, fd, command, argument));                    \
    };                                                                                         \
    if (command != F_SETLK && command != F_SETLKW && command != F_OFD_SETLK &&                 \
        command != F_OFD_SETLKW) {                                                             \
      return real();                                                                           \
    }                                                                                          \
    return MakeBlocking({.name = "fcntl", .path = PathOfFd(fd), .interruptible = true}, real); \
  }
ASCEND_FAULT_FCNTL(fcntl)
ASCEND_FAULT_FCNTL(fcntl64)

ASCEND_FAULT_EXPORT int stat(const char* __restrict path, struct stat* __restrict info) noexcept {
  return Stat("stat", AT_FDCWD, path, info, 0);
}
ASCEND_FAULT_EXPORT int lstat(const char* __restrict path, struct stat* __restrict info) noexcept {
  return Stat("lstat", AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW);
}
ASCEND_FAULT_EXPORT int fstatat(int dir_fd, const char* __restrict path,
                                struct stat* __restrict info, int flags) noexcept {
  return Stat("fstatat", dir_fd, path, info, flags);
}
ASCEND_FAULT_EXPORT int fstat(int fd, struct stat* info) noexcept {
  return Make({.name = "fstat", .path = PathOfFd(fd)}, [&] { return RawFstat(fd, info); });
}

ASCEND_FAULT_EXPORT int faccessat(int dir_fd, const char* path, int mode, int flags) noexcept {
  static const auto next = Next<int (*)(int, const char*, int, int)>("faccessat");
  return Make({.name = "faccessat", .path = PathAt(dir_fd, path)},
              [&] { return next(dir_fd, path, mode, flags); });
}

ASCEND_FAULT_EXPORT DIR* opendir(const char* path) {
  static const auto next = Next<DIR* (*)(const char*)>("opendir");
  return Make({.name = "opendir", .path = PathAt(AT_FDCWD, path)}, [&] { return next(path); });
}
ASCEND_FAULT_EXPORT DIR* fdopendir(int fd) {
  static const auto next = Next<DIR* (*)(int)>("fdopendir");
  return Make({.name = "fdopendir", .path = PathOfFd(fd)}, [&] { return next(fd); });
}
ASCEND_FAULT_EXPORT dirent* readdir(DIR* directory) {
  static const auto next = Next<dirent* (*)(DIR*)>("readdir");
  return Make({.name = "readdir", .path = PathOfFd(::dirfd(directory))},
              [&] { return next(directory); });
}

// What another thread does when it is told of a change, and when, is no part of the program's
// order: while points are counted, nobody is told.
ASCEND_FAULT_EXPORT int inotify_add_watch(int fd, const char* path, uint32_t mask) noexcept {
  if (Harness::Get() != nullptr) {
    errno = ENOENT;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_inotify_add_watch, fd, path, mask));
}

// For the program that is tried (test/fault/control.h).
ASCEND_FAULT_EXPORT void ascend_fault_step(const char* step) {
  if (Harness* harness = Harness::Get()) harness->SetStep(step);
}
ASCEND_FAULT_EXPORT void ascend_fault_pause(int paused) {
  if (Harness* harness = Harness::Get()) harness->SetPaused(paused != 0);
}
ASCEND_FAULT_EXPORT void ascend_fault_heal() {
  if (Harness* harness = Harness::Get()) harness->Heal();
}
ASCEND_FAULT_EXPORT void ascend_fault_repeated() {
  if (Harness* harness = Harness::Get()) harness->Repeated();
}
ASCEND_FAULT_EXPORT void ascend_fault_background(int background) { SetBackground(background != 0); }
