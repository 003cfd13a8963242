#include "test/bench/machine.h"

#include <linux/magic.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <sys/utsname.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"

namespace ascend::bench {
namespace {

constexpr uint32_t kZfsMagic = 0x2fc12fc1;  // not in the kernel's header

}  // namespace

int CoreCount() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return ::sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

double LoadAverage() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

std::string KernelName() {
  utsname name;
  if (::uname(&name) != 0) return "unknown";
  return absl::StrCat(name.sysname, " ", name.release, " ", name.machine);
}

absl::StatusOr<std::string> FileSystemType(const std::string& path) {
  struct statfs info;
  if (::statfs(path.c_str(), &info) != 0) {
    const int error = errno;
    return ErrnoToStatus(error, path);
  }
  const auto magic = static_cast<uint32_t>(info.f_type);
  switch (magic) {
    case EXT4_SUPER_MAGIC:
      return std::string("ext4");
    case TMPFS_MAGIC:
      return std::string("tmpfs");
    case XFS_SUPER_MAGIC:
      return std::string("xfs");
    case BTRFS_SUPER_MAGIC:
      return std::string("btrfs");
    case OVERLAYFS_SUPER_MAGIC:
      return std::string("overlay");
    case F2FS_SUPER_MAGIC:
      return std::string("f2fs");
    case NFS_SUPER_MAGIC:
      return std::string("nfs");
    case PROC_SUPER_MAGIC:
      return std::string("proc");
    case kZfsMagic:
      return std::string("zfs");
    default:
      return absl::StrCat("0x", absl::Hex(magic));
  }
}

}  // namespace ascend::bench
