#include "vnpu/hccs_check.h"

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace ascend::vnpu {
namespace {

enum class Link { kHccs, kOther, kUnknown };

Link LinkOf(dcmi::TopologyType type) {
  switch (type) {
    case dcmi::TopologyType::kHccs:
    case dcmi::TopologyType::kHccsSwitch:
    case dcmi::TopologyType::kSio:  // the two dies of a module
      return Link::kHccs;
    case dcmi::TopologyType::kSys:
    case dcmi::TopologyType::kPhb:
    case dcmi::TopologyType::kPxb:
    case dcmi::TopologyType::kPix:
      return Link::kOther;
    case dcmi::TopologyType::kSelf:
    case dcmi::TopologyType::kUb:
    case dcmi::TopologyType::kUnknown:
      break;
  }
  return Link::kUnknown;
}

}  // namespace

std::string HccsContradiction(dcmi::Dcmi& dcmi, const Inventory& inventory) {
  const Chip* before = nullptr;          // in the order of physical ids
  const Chip* first_of_group = nullptr;  // of the group that `before` is in
  for (const Chip& chip : inventory.chips) {
    if (chip.hccs_group.empty() || chip.health == Health::kAbsent || !chip.stuck.empty()) continue;
    const bool same_group = before != nullptr && before->hccs_group == chip.hccs_group;
    const Chip* const other = same_group ? before : first_of_group;
    before = &chip;
    if (!same_group) first_of_group = &chip;
    if (other == nullptr) continue;
    const absl::StatusOr<dcmi::TopologyType> type =
        dcmi.Topology({other->card_id, other->device_id}, {chip.card_id, chip.device_id});
    if (!type.ok()) continue;
    const Link link = LinkOf(*type);
    if (link == Link::kUnknown || (link == Link::kHccs) == same_group) continue;
    return absl::StrCat("the library says that chips ", other->physical_id, " and ",
                        chip.physical_id, same_group ? " are not" : " are",
                        " joined by HCCS, their groups are ", other->hccs_group, " and ",
                        chip.hccs_group);
  }
  return "";
}

}  // namespace ascend::vnpu
