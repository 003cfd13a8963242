// What the agent's call about a reset does with the library.
#ifndef ASCEND_DRA_VNPU_AGENT_RESET_OPERATIONS_H_
#define ASCEND_DRA_VNPU_AGENT_RESET_OPERATIONS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "vnpu/agent/client.h"
#include "vnpu/agent/vnpu_operations.h"
#include "vnpu/chip.h"
#include "vnpu/dcmi/dcmi.h"

namespace ascend::agent {

// A chip as the inventory has it, which must be the one of `uuid` (empty = any).
struct ResetMember {
  vnpu::Chip chip;
  std::string uuid;
};

// Nobody else may talk to the library about the chips meanwhile.

// kFailedPrecondition, naming the chip: it is not the one that is meant; a process uses it or a
// vNPU is on it; or nobody can tell. A chip that is absent is not asked who uses it.
absl::Status CheckIdle(dcmi::Dcmi& dcmi, const std::vector<ResetMember>& members, Calling calling);

// Out of band where the chip has such a way, else in band. Out of band `pause` is waited out before
// the chips are looked for again, which happens also after a failure. kFailedPrecondition: one of
// the chips is in use, and nothing was reset; else kAborted.
absl::Status StartReset(dcmi::Dcmi& dcmi, const vnpu::Chip& chip, absl::FunctionRef<void()> pause,
                        Calling calling);

// How far the chip has come.
ChipReset LookAtBoot(dcmi::Dcmi& dcmi, const vnpu::Chip& chip, Calling calling);

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_RESET_OPERATIONS_H_
