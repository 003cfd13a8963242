// What an administrator (npu-smi), a workload or a boot does to the vNPUs of a mock node behind the
// back of the library's clients. The rules of the hardware hold here as well.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_VNPU_EDIT_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_VNPU_EDIT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vnpu/dcmi/mock/vnpu_state.h"

namespace ascend::dcmi::mock {

absl::StatusOr<VnpuState> VnpusOf(const std::string& node_directory);

// Of the state: {"recovery": true, "vdeviceMode": "container", "vnpus": [{"id": 100, ...}]}.
std::string ToJsonText(const VnpuState& state);

// Returns the id. kInvalidArgument: no such template or id; kResourceExhausted: no room;
// kAlreadyExists: the id is taken; kNotFound: no such chip; kUnimplemented: no such product.
absl::StatusOr<int> AddVnpu(const std::string& node_directory, int physical_id,
                            const VnpuWish& wish);

// Also a busy one: it is the state that is edited, not the library asked. kNotFound: no such vNPU.
absl::Status RemoveVnpu(const std::string& node_directory, int id);

// Assignments such as busy=true, status=1, containerUsed=true.
absl::Status SetOnVnpu(const std::string& node_directory, int id,
                       const std::vector<std::string>& assignments);

// Both also while there are vNPUs.
absl::Status SetVnpuModes(const std::string& node_directory, std::optional<bool> recovery,
                          std::optional<int> vdevice_mode);

absl::Status Reboot(const std::string& node_directory, bool permute_ids);

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_VNPU_EDIT_H_
