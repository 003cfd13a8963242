#include "kubeletplugin/health/group_use.h"

#include "absl/strings/str_cat.h"
#include "kubeletplugin/devices.h"

namespace ascend::kubeletplugin {
namespace {

std::string UseByClaims(const std::set<int>& group, const ChipUse& use) {
  for (const auto& record : use.contents.records) {
    for (const RecordedDevice& device : record->devices) {
      for (const RecordedChip& chip : device.chips) {
        if (group.count(chip.physical_id) == 0) continue;
        return absl::StrCat("chip ", chip.physical_id, " is held by claim ", record->claim());
      }
    }
  }
  for (const auto& [id, record] : use.quarantine.chips) {
    if (group.count(id) == 0) continue;
    return absl::StrCat("chip ", id, " may be held by the claim with UID ", record.claim_uid,
                        ", whose record cannot be read");
  }
  if (!use.quarantine.unknown.empty()) {
    return absl::StrCat("any chip may be held by the claim with UID ",
                        use.quarantine.unknown.front().claim_uid, ", whose record cannot be read");
  }
  for (const kube::SliceDevice& device : use.pending) {
    for (const int id : PhysicalIdsOf(device.name)) {
      if (group.count(id) == 0) continue;
      return absl::StrCat("chip ", id, " is allocated to a claim that is being prepared");
    }
  }
  return "";
}

std::string UseOfChip(const vnpu::Chip& chip) {
  const std::string noun = absl::StrCat("chip ", chip.physical_id);
  if (chip.partitioning && !chip.partitioning->vnpus.empty()) {
    return absl::StrCat(noun, " has vNPU ", chip.partitioning->vnpus.front().id);
  }
  if (chip.health == vnpu::Health::kAbsent) return "";
  if (!chip.stuck.empty()) return absl::StrCat(noun, " cannot be asked: ", chip.stuck);
  if (!chip.partitioning_error.empty()) {
    return absl::StrCat(noun, ": nobody knows its vNPUs: ", chip.partitioning_error);
  }
  if (!chip.busy) return absl::StrCat(noun, ": nobody knows which processes use it");
  if (!chip.busy->empty()) {
    return absl::StrCat(noun, " is used by process ", chip.busy->front());
  }
  return "";
}

}  // namespace

std::string WhyInUse(const std::set<int>& group, const ChipUse& use) {
  if (std::string reason = UseByClaims(group, use); !reason.empty()) return reason;
  for (const vnpu::Chip& chip : use.inventory.chips) {
    if (group.count(chip.physical_id) == 0) continue;
    if (std::string reason = UseOfChip(chip); !reason.empty()) return reason;
  }
  return "";
}

}  // namespace ascend::kubeletplugin
