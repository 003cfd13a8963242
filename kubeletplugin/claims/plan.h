// What a claim asks of this node: its allocation, checked and in the words of a record. Pure: no
// I/O, no clock.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_PLAN_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kubeletplugin/claims/record.h"
#include "kubeletplugin/devices.h"
#include "kubeletplugin/kube/resource_claim.h"
#include "kubeletplugin/paths.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

struct ClaimReference {
  std::string namespace_name;
  std::string name;
  std::string uid;
};

struct ClaimPlan {
  ClaimRecord record;              // complete; what will be written
  std::vector<int> physical_ids;   // of all chips, ascending, unique
  std::vector<int> exclusive_ids;  // of those that nobody else may use
  std::vector<int> shared_ids;     // of those that other shares may use, but no exclusive claim
  std::vector<int> divided_ids;    // of those of which the claim has a part
};

struct PlanInputs {
  const Paths& paths;
  const std::string& node_name;  // also the name of our pool
  const std::string& boot_id;
  const DeviceOptions& devices;
  absl::Time now;
};

// Our results of the claim's allocation. kFailedPrecondition, with what to do, if the claim is not
// the one that is asked for, is not allocated, or an opaque configuration for us is wrong.
absl::StatusOr<std::vector<kube::DeviceResult>> ResultsForUs(const PlanInputs& inputs,
                                                             const ClaimReference& reference,
                                                             const kube::ResourceClaim& claim);

// Devices ascend by chip (some runtimes remap what does not), one entry per (pool, device, share)
// with all its requests. `recorded`, if not null, is what the claim was given before: that stays
// true while its chips are away. kFailedPrecondition if a device is not on this node.
absl::StatusOr<ClaimPlan> MakeClaimPlan(const PlanInputs& inputs, const ClaimReference& reference,
                                        const kube::ResourceClaim& claim,
                                        const std::vector<kube::DeviceResult>& results,
                                        const vnpu::Inventory& inventory,
                                        const ClaimRecord* recorded);

// Whether the claims may not have both at the same time: the same chip, or the same part of it.
bool Conflict(const RecordedDevice& one, const RecordedDevice& other);

bool SameAllocation(const ClaimRecord& a, const ClaimRecord& b);

// Carries over what the inventory cannot tell at the moment from the record of the same allocation.
void KeepKnownFacts(const ClaimRecord& recorded, ClaimRecord* record);

// kFailedPrecondition if a chip of the record is other hardware now.
absl::Status CheckIdentity(const ClaimRecord& record, const vnpu::Inventory& inventory);

std::vector<RecordedChip> ChipsOf(const ClaimRecord& record);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_PLAN_H_
