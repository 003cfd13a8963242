#include "kubeletplugin/claims/chip_occupancy.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "kubeletplugin/claims/prepare_error.h"
#include "kubeletplugin/claims/quarantine.h"

namespace ascend::kubeletplugin {
namespace {

constexpr absl::Duration kListTimeout = absl::Seconds(1);

// What is held, of what a claim wants and what another one has: a chip, or a part of one.
std::string NameOfHeld(const RecordedDevice& wanted, const RecordedDevice& held) {
  if (wanted.vnpu && held.vnpu) return held.device;
  for (const RecordedChip& chip : held.chips) {
    for (const RecordedChip& other : wanted.chips) {
      if (chip.physical_id != other.physical_id) continue;
      return absl::StrCat(held.vnpu ? "a part of chip " : "chip ", chip.physical_id);
    }
  }
  return held.device;
}

}  // namespace

absl::StatusOr<std::string> ChipOccupancy::FindHolder(const std::string& claim_uid,
                                                      const ClaimPlan& plan) const {
  ASCEND_ASSIGN_OR_RETURN(const RecordStore::Contents contents, records_.ReadAll());
  std::set<int> held;  // by this claim or, as shares or other parts, beside it
  for (const auto& record : contents.records) {
    const bool own = record->claim_uid == claim_uid;
    for (const RecordedDevice& device : record->devices) {
      if (device.admin_access) continue;
      for (const RecordedChip& chip : device.chips) held.insert(chip.physical_id);
      if (own) continue;
      for (const RecordedDevice& wanted : plan.record.devices) {
        if (!Conflict(wanted, device)) continue;
        return absl::StrCat(
            NameOfHeld(wanted, device), " is still prepared for claim ", record->claim(), " (UID ",
            record->claim_uid,
            record->state == ClaimState::kReleased
                ? "), whose pod has ended: its vNPU still has to be destroyed"
                : "): it is released when the kubelet has stopped that claim's pod");
      }
    }
  }
  if (contents.unreadable.empty()) return std::string();
  const Quarantine quarantine = FindQuarantine(contents.unreadable, paths_);
  for (const std::vector<int>* ids : {&plan.exclusive_ids, &plan.shared_ids, &plan.divided_ids}) {
    for (const int id : *ids) {
      const UnreadableRecord* bad = quarantine.Find(id, claim_uid, held.count(id) != 0);
      if (bad == nullptr) continue;
      return absl::StrCat(
          "chip ", id, " is withheld: it may belong to the claim with UID ", bad->claim_uid,
          ", whose record cannot be read (", bad->error.message(),
          "). It is released when the kubelet unprepares that claim; if that claim's pods are gone "
          "for good, remove ",
          JoinPath(records_.directory(), bad->claim_uid));
    }
  }
  return std::string();
}

std::string ChipOccupancy::FindStray(const ClaimPlan& plan) const {
  std::string stray = FindStrayProcess(plan);
  return stray.empty() ? FindForeignVnpu(plan) : stray;
}

std::string ChipOccupancy::FindStrayProcess(const ClaimPlan& plan) const {
  const std::shared_ptr<const vnpu::Inventory> inventory = inventory_();
  if (inventory == nullptr || !processes_) return "";
  std::vector<int> suspects;
  for (const vnpu::Chip& chip : inventory->chips) {
    if (!chip.busy.has_value() || chip.busy->empty()) continue;
    const std::vector<int>& ids = plan.exclusive_ids;
    if (std::binary_search(ids.begin(), ids.end(), chip.physical_id)) {
      suspects.push_back(chip.physical_id);
    }
  }
  if (suspects.empty()) return "";
  // The inventory shows the agent's last look; what it saw may have ended with the claim before.
  const auto answer = processes_(suspects);
  if (!answer.ok()) return "";
  // A monitoring pod with admin access may have a process on any chip.
  std::set<int> monitored;
  if (const auto contents = records_.ReadAll(); contents.ok()) {
    for (const auto& record : contents->records) {
      for (const RecordedDevice& device : record->devices) {
        if (!device.admin_access) continue;
        for (const RecordedChip& chip : device.chips) monitored.insert(chip.physical_id);
      }
    }
  }
  for (const vnpu::ChipProcesses& chip : *answer) {
    if (!chip.known || chip.processes.empty() || monitored.count(chip.physical_id) != 0) continue;
    const vnpu::Process& process = chip.processes.front();
    return absl::StrCat("chip ", chip.physical_id, " is in use by process ", process.pid,
                        process.name.empty() ? "" : absl::StrCat(" (", process.name, ")"),
                        " on the node, which belongs to no prepared claim: stop it (a container "
                        "outside Kubernetes, or left over), then the pod starts by itself");
  }
  return "";
}

std::string ChipOccupancy::FindForeignVnpu(const ClaimPlan& plan) const {
  const std::shared_ptr<const vnpu::Inventory> inventory = inventory_();
  if (inventory == nullptr || !vnpus_) return "";
  for (const vnpu::Chip& chip : inventory->chips) {
    const std::vector<int>& ids = plan.exclusive_ids;
    if (!std::binary_search(ids.begin(), ids.end(), chip.physical_id)) continue;
    const bool unknown = !chip.partitioning_error.empty();
    if (!unknown && (!chip.partitioning || chip.partitioning->vnpus.empty())) continue;
    // The inventory shows the agent's last look: the claim before may just have given it back.
    const auto listed = vnpus_(chip.physical_id, kListTimeout);
    if (!listed.ok() || listed->empty()) continue;
    return absl::StrCat("chip ", chip.physical_id, " is divided: vNPU ", listed->front().id, " (",
                        listed->front().template_name,
                        ") is on it, which belongs to no claim: whoever made it has to destroy it "
                        "(npu-smi set -t destroy-vnpu) before the chip can be used whole");
  }
  return "";
}

absl::Status ChipOccupancy::CheckReplacesDamaged(const ClaimRecord& record,
                                                 const absl::Status& damage) const {
  ASCEND_ASSIGN_OR_RETURN(const RecordStore::Contents contents, records_.ReadAll());
  std::set<int> before, now;
  for (const UnreadableRecord& bad : contents.unreadable) {
    if (bad.claim_uid == record.claim_uid) before = ChipsOf(bad, paths_);
  }
  for (const RecordedDevice& device : record.devices) {
    for (const RecordedChip& chip : device.chips) now.insert(chip.physical_id);
  }
  if (before == now) return absl::OkStatus();
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "the claim was prepared before, its record is damaged (", damage.message(), ") and ",
          before.empty() ? "nothing tells which chips it held"
                         : absl::StrCat("it held chip ", absl::StrJoin(before, ", ")),
          ": delete the claim's pods; when they have stopped, the kubelet unprepares the claim, "
          "which removes the record")),
      PrepareError::kRecordUnreadable);
}

}  // namespace ascend::kubeletplugin
