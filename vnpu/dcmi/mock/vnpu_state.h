// The vNPUs that there are on a mock node, and the node's modes: what the library itself changes.
//
//   state/vnpus.json  the vNPUs and the mode
//   state/vnpu.cfg    stands for the host's /etc/vnpu.cfg: whether vNPUs are made again at boot,
//                     and which; missing: they are
//   state/.lock       held by whoever changes either
//
// Any number of processes may read and change them at once. Like the library, this depends on
// nothing but the C++ library; exceptions are std::runtime_error and name the file.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_VNPU_STATE_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_VNPU_STATE_H_

#include <functional>
#include <string>
#include <vector>

#include "vnpu/dcmi/mock/node.h"
#include "vnpu/dcmi/mock/state_file.h"
#include "vnpu/dcmi/mock/vnpu_rules.h"

namespace ascend::dcmi::mock {

struct VnpuState {
  int vdevice_mode = 0;  // of abi.h
  bool recovery = true;
  std::vector<Vnpu> vnpus;  // by id

  Vnpu* Find(int id);
  bool HasVnpusOn(int physical_id) const;
};

// Also while somebody changes it. Throws if a file is wrong.
VnpuState ReadVnpuState(const std::string& node_directory);

// Runs `change` alone and keeps what it made of the state if it returns 0 (a code of abi.h, which
// is handed on). While recovery is on, vnpu.cfg follows. -8014 if a file cannot be written: then
// nothing has changed. Throws as above.
int ChangeVnpuState(const std::string& node_directory, const Node& node,
                    const std::function<int(VnpuState&)>& change);

// What a boot makes of the state: every vNPU is gone; with recovery on those of vnpu.cfg are made
// again, with `permute_ids` under other ids.
void RebootVnpus(const std::string& node_directory, const Node& node, bool permute_ids);

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_VNPU_STATE_H_
