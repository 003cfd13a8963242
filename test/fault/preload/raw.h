// System calls past the C library's names, which this library replaces.
#ifndef ASCEND_DRA_TEST_FAULT_PRELOAD_RAW_H_
#define ASCEND_DRA_TEST_FAULT_PRELOAD_RAW_H_

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

namespace ascend::fault {

inline int RawOpenAt(int dir_fd, const char* path, int flags, mode_t mode = 0) {
  return static_cast<int>(::syscall(SYS_openat, dir_fd, path, flags, mode));
}
inline int RawClose(int fd) { return static_cast<int>(::syscall(SYS_close, fd)); }
inline ssize_t RawRead(int fd, void* buffer, size_t size) {
  return ::syscall(SYS_read, fd, buffer, size);
}
inline ssize_t RawWrite(int fd, const void* bytes, size_t size) {
  return ::syscall(SYS_write, fd, bytes, size);
}
inline int RawStatAt(int dir_fd, const char* path, struct stat* info, int flags) {
  return static_cast<int>(::syscall(SYS_newfstatat, dir_fd, path, info, flags));
}
inline int RawFstat(int fd, struct stat* info) {
  return static_cast<int>(::syscall(SYS_fstat, fd, info));
}
inline int RawUnlinkAt(int dir_fd, const char* path, int flags) {
  return static_cast<int>(::syscall(SYS_unlinkat, dir_fd, path, flags));
}
inline int RawRenameAt(int old_dir, const char* old_path, int new_dir, const char* new_path,
                       unsigned flags) {
  return static_cast<int>(::syscall(SYS_renameat2, old_dir, old_path, new_dir, new_path, flags));
}
inline int RawMkdirAt(int dir_fd, const char* path, mode_t mode) {
  return static_cast<int>(::syscall(SYS_mkdirat, dir_fd, path, mode));
}

// Where a link of /proc leads; empty if nowhere. The path of an unlinked file ends in " (deleted)".
inline std::string RawReadLink(const char* path) {
  char target[4096];
  const long length = ::syscall(SYS_readlinkat, AT_FDCWD, path, target, sizeof(target));
  return length > 0 ? std::string(target, static_cast<size_t>(length)) : std::string();
}

// The whole of a small file; empty if it cannot be read.
inline std::string RawReadFile(const std::string& path) {
  std::string text;
  const int fd = RawOpenAt(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return text;
  char buffer[4096];
  for (ssize_t got = 0; (got = RawRead(fd, buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  RawClose(fd);
  return text;
}

}  // namespace ascend::fault

#endif  // ASCEND_DRA_TEST_FAULT_PRELOAD_RAW_H_
