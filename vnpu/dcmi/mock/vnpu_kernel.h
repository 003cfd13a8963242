// Stands for the kernel driver: while it lives, each vNPU of a mock node has its
// <root>/dev/vdavinci<id>, and no other such node of the mock is there.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_VNPU_KERNEL_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_VNPU_KERNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace ascend::dcmi::mock {

struct VnpuKernelOptions {
  std::string node_directory;
  std::string root;
  unsigned major = 236;      // as TreeOptions
  bool device_nodes = true;  // false: regular files, for callers without CAP_MKNOD
};

// Follows the state by inotify, on threads of its own. node.json's "vnpuNodes" makes nodes come
// late or never. Errors after the start go to stderr; the next change tries again.
class VnpuKernel {
 public:
  // Returns when dev/ fits the state, apart from nodes that shall be late.
  static absl::StatusOr<std::unique_ptr<VnpuKernel>> Start(const VnpuKernelOptions& options);
  // Leaves the nodes as they are.
  ~VnpuKernel();
  VnpuKernel(const VnpuKernel&) = delete;
  VnpuKernel& operator=(const VnpuKernel&) = delete;

 private:
  class Impl;
  explicit VnpuKernel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_VNPU_KERNEL_H_
