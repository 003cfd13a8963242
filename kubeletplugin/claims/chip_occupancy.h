// Who else has, or uses, the chips that a claim is to get.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CHIP_OCCUPANCY_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CHIP_OCCUPANCY_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kubeletplugin/claims/inventory_source.h"
#include "kubeletplugin/claims/plan.h"
#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/paths.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

// Asks the agent who uses these chips now.
using ProcessSource =
    std::function<absl::StatusOr<std::vector<vnpu::ChipProcesses>>(const std::vector<int>&)>;
// Asks the agent which vNPUs are on a chip now.
using VnpuSource =
    std::function<absl::StatusOr<std::vector<vnpu::Vnpu>>(int physical_id, absl::Duration timeout)>;

// Of every method: the caller holds the locks of the plan's chips. Thread-safe once the sources are
// set.
class ChipOccupancy {
 public:
  // References must outlive it.
  ChipOccupancy(const Paths& paths, RecordStore& records, InventorySource inventory)
      : paths_(paths), records_(records), inventory_(std::move(inventory)) {}

  // Without these, or where they cannot tell, chips count as unused by others.
  void SetProcessSource(ProcessSource processes) { processes_ = std::move(processes); }
  void SetVnpuSource(VnpuSource vnpus) { vnpus_ = std::move(vnpus); }

  // Which other claim holds a chip of the plan, or withholds one by a record that cannot be read:
  // in words, with what frees it. Empty if none.
  absl::StatusOr<std::string> FindHolder(const std::string& claim_uid, const ClaimPlan& plan) const;

  // What uses one of the chips that the claim is to have alone, although no claim accounts for it:
  // a process, or a vNPU on it. Empty if nothing is known of such.
  std::string FindStray(const ClaimPlan& plan) const;

  // Whether the damaged record of the claim may be replaced by `record`: only if that is about the
  // very chips that the old one held, for a pod may still run on them.
  absl::Status CheckReplacesDamaged(const ClaimRecord& record, const absl::Status& damage) const;

 private:
  std::string FindStrayProcess(const ClaimPlan& plan) const;
  std::string FindForeignVnpu(const ClaimPlan& plan) const;

  const Paths& paths_;
  RecordStore& records_;
  const InventorySource inventory_;
  ProcessSource processes_;
  VnpuSource vnpus_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CHIP_OCCUPANCY_H_
