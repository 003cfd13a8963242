// A host's file tree as an Ascend driver leaves it, made from a node description.
//
//   dev/davinci<N>, davinci_manager, hisi_hdc, ...   character devices of a major without a driver
//   usr/local/Ascend/driver/{lib64/{common,driver},include,tools,version.info}
//   usr/local/Ascend/firmware/version.info
//   usr/local/dcmi, usr/local/bin/npu-smi
//   etc/hccn.conf, etc/ascend_install.info
//   sys/devices/pci.../<bdf>/{numa_node,vendor,device,class}, sys/bus/pci/devices/<bdf>
//   proc/devices, and the same text in etc/ascend-dra/mock-proc-devices
//
// The libraries are text files that only have the right names: nothing can be run on a mock chip.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_TREE_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_TREE_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "vnpu/dcmi/mock/node.h"

namespace ascend::dcmi::mock {

struct TreeOptions {
  std::string root;
  // Where the sysfs part goes. Empty: <root>/sys, or, as nobody can write to a real /sys,
  // /etc/ascend-dra/mock-sys for the root "/".
  std::string sysfs_directory;
  unsigned major = 236;      // of every node; without a driver in most kernels
  bool device_nodes = true;  // making them takes CAP_MKNOD
};

// Can be repeated; nodes that an earlier run made for other chips go. Refuses to replace a device
// node of another major: that is real hardware.
absl::Status CreateTree(const Node& node, const TreeOptions& options);

// One device node, of mode 0660 and the driver's user, with its parent directories. Replaces one of
// the same major only.
absl::Status MakeDeviceNode(const std::string& path, dev_t device);

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_TREE_H_
