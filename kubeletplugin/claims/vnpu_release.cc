#include "kubeletplugin/claims/vnpu_release.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/core/file_lock.h"
#include "base/core/status_macros.h"
#include "base/runtime/logging.h"
#include "kubeletplugin/claims/chip_locks.h"
#include "kubeletplugin/claims/plan.h"

namespace ascend::kubeletplugin {

bool VnpuRecovery(const InventorySource& inventory) {
  const std::shared_ptr<const vnpu::Inventory> known = inventory();
  return known != nullptr && known->vnpu_recovery.value_or(false);
}

VnpuRelease::VnpuRelease(Options options, const Paths& paths, RecordStore& records,
                         InventorySource inventory, ChangeSignal& changes, ClaimVnpus* vnpus)
    : options_(std::move(options)),
      paths_(paths),
      records_(records),
      inventory_(std::move(inventory)),
      changes_(changes),
      vnpus_(vnpus) {}

absl::Status VnpuRelease::Withdraw(const ClaimRecord& record, absl::Time deadline) {
  if (!record.has_managed_vnpus()) return absl::OkStatus();
  if (vnpus_ == nullptr) return absl::UnimplementedError("this driver cannot destroy vNPUs");
  // Whether those of another boot are back is not known before the agent has answered.
  if (record.boot_id != options_.boot_id && inventory_() == nullptr) {
    return absl::UnavailableError("ascend-npu-agent has not answered since the plugin started");
  }
  return vnpus_->Withdraw(record, VnpuRecovery(inventory_), deadline - SteadyNow());
}

absl::StatusOr<bool> VnpuRelease::Release(const ClaimRecord& record, absl::Time deadline,
                                          Caller caller) {
  if (vnpus_ == nullptr || !record.has_managed_vnpus()) return true;
  std::set<int> ids;
  for (const RecordedChip& chip : ChipsOf(record)) ids.insert(chip.physical_id);
  ASCEND_ASSIGN_OR_RETURN(
      const std::vector<FileLock> locks,
      LockChips(paths_, {ids.begin(), ids.end()}, options_.lock_wait, deadline));
  absl::Status marked;
  if (record.state != ClaimState::kReleased) {
    ClaimRecord released = record;
    released.state = ClaimState::kReleased;
    marked = Annotate(records_.Write(released), "claim record");
    // A full disk must not keep a claim from ending.
    if (!marked.ok() && !absl::IsResourceExhausted(marked)) return marked;
  }
  const absl::Time agent_deadline = std::min(deadline, SteadyNow() + options_.agent_wait);
  uint64_t seen = changes_.count();
  absl::Status withdrawn = Withdraw(record, deadline);
  while (absl::IsUnavailable(withdrawn) && !HasLostChip(record) && SteadyNow() < agent_deadline &&
         changes_.WaitToRetry(seen, agent_deadline).ok()) {
    seen = changes_.count();
    withdrawn = Withdraw(record, deadline);
  }
  if (withdrawn.ok()) {
    if (options_.gone) options_.gone(record);
    return true;
  }
  const bool lost = HasLostChip(record);
  if (options_.kept) options_.kept(record, {.error = withdrawn, .chip_lost = lost});
  if (!lost) return withdrawn;
  // The pod must be able to end although its chip is away; what is on it is not forgotten.
  ASCEND_RETURN_IF_ERROR(marked);
  if (caller == Caller::kKubelet) {
    LogWarning("the chip of a claim that ends is away, its vNPU is destroyed when it is back",
               {{"claim", record.claim()}, {"claimUID", record.claim_uid}, {"error", withdrawn}});
  }
  return false;
}

bool VnpuRelease::HasLostChip(const ClaimRecord& record) const {
  const std::shared_ptr<const vnpu::Inventory> inventory = inventory_();
  if (inventory == nullptr || inventory->library != vnpu::LibraryState::kReady) return false;
  const std::vector<RecordedChip> chips = ChipsOf(record);
  return std::any_of(chips.begin(), chips.end(), [&](const RecordedChip& recorded) {
    return std::none_of(
        inventory->chips.begin(), inventory->chips.end(), [&](const vnpu::Chip& chip) {
          return chip.physical_id == recorded.physical_id && chip.health != vnpu::Health::kAbsent;
        });
  });
}

}  // namespace ascend::kubeletplugin
