// The vNPUs of the fault harness' node, as files: they outlive the process that made them, and not
// a boot. What is done here is no point of the scenario: hardware does not fail in it.
#ifndef ASCEND_DRA_TEST_FAULT_HARDWARE_H_
#define ASCEND_DRA_TEST_FAULT_HARDWARE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kubeletplugin/claims/claim_vnpus.h"
#include "vnpu/chip.h"

namespace ascend::fault {

class Hardware {
 public:
  // `directory` is made if it is missing, and emptied if it is of another boot.
  Hardware(std::string directory, const std::string& boot_id);

  kubeletplugin::VnpuCalls calls();
  // "5:vir05_1c_8g:180", in the order of the ids.
  std::vector<std::string> Listed() const;

 private:
  absl::StatusOr<std::vector<vnpu::Vnpu>> On(int physical_id) const;
  absl::StatusOr<vnpu::Vnpu> Create(const agent::VnpuRequest& request);
  absl::Status Destroy(const agent::VnpuReference& vnpu);

  const std::string directory_;
};

}  // namespace ascend::fault

#endif  // ASCEND_DRA_TEST_FAULT_HARDWARE_H_
