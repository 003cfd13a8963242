// How a mock node's chips are reset: which go down together, and how far each has started again.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_RESET_RULES_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_RESET_RULES_H_

#include <cstdint>
#include <vector>

#include "vnpu/dcmi/mock/fault_state.h"
#include "vnpu/dcmi/mock/node.h"

namespace ascend::dcmi::mock {

// The chips that go down with `chip`, itself among them: node.json's reset.unit, else the
// product's.
std::vector<const Chip*> ResetGroup(const Node& node, const Chip& chip);

// The boot status (of abi.h) that a reset has reached at `now_ms` of CLOCK_BOOTTIME.
int BootStatusAt(const ResetRun& reset, int64_t now_ms);

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_RESET_RULES_H_
