// What the agent's calls about vNPUs do with the library.
#ifndef ASCEND_DRA_VNPU_AGENT_VNPU_OPERATIONS_H_
#define ASCEND_DRA_VNPU_AGENT_VNPU_OPERATIONS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "vnpu/agent/client.h"
#include "vnpu/chip.h"
#include "vnpu/dcmi/dcmi.h"

namespace ascend::agent {

// Runs before each call into the library with the name that operators know it by.
using Calling = absl::FunctionRef<void(absl::string_view function)>;

// All of them may last as long as the library pleases, and are safe for different chips at the same
// time; nobody else may change the chip meanwhile. Errors name the chip, the library's code and
// what to do: kFailedPrecondition (the chip is another one or in use), kInvalidArgument (unknown
// template), kPermissionDenied, kUnimplemented (no vNPUs here), else the code of dcmi/status.h.

// That `chip`, as the inventory has it, still is where the inventory says, and is the one of `uuid`
// (empty = any).
absl::Status CheckChip(dcmi::Dcmi& dcmi, const vnpu::Chip& chip, absl::string_view uuid,
                       Calling calling);

// By ascending id.
absl::StatusOr<std::vector<vnpu::Vnpu>> ListVnpus(dcmi::Dcmi& dcmi, const vnpu::Chip& chip,
                                                  Calling calling);

// Succeeds when the library lists the vNPU. A wish for an id or vGroup that the library does not
// take is dropped. After a failure, what was made nevertheless is destroyed again; the error names
// what could not be.
absl::StatusOr<vnpu::Vnpu> CreateVnpu(dcmi::Dcmi& dcmi, const vnpu::Chip& chip,
                                      const VnpuRequest& request, Calling calling);

// Succeeds when the library lists it no more; also if it was not there. Of another template:
// kFailedPrecondition; of one that the library does not tell, or listed still: kUnavailable.
absl::Status DestroyVnpu(dcmi::Dcmi& dcmi, const vnpu::Chip& chip, const VnpuReference& reference,
                         Calling calling);

// Mode "container" and recovery off, each only if it is not so. What the product does not have
// needs no change; kUnimplemented if it has neither.
absl::Status PrepareVnpuModes(dcmi::Dcmi& dcmi, Calling calling);

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_VNPU_OPERATIONS_H_
