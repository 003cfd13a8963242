#include "vnpu/health/reset_group.h"

#include "absl/algorithm/container.h"

namespace ascend::vnpu {
namespace {

constexpr int kRing = 4;
constexpr int kMesh = 8;
constexpr int kModulePair = 4;  // dies of two A3 modules

// The places of the block of `size` that has this one.
void AddBlock(int physical_id, int size, std::set<int>* group) {
  const int first = physical_id / size * size;
  for (int i = 0; i < size; ++i) group->insert(first + i);
}

const Chip* Find(const Inventory& inventory, int physical_id) {
  const auto chip =
      absl::c_find_if(inventory.chips, [=](const Chip& c) { return c.physical_id == physical_id; });
  return chip == inventory.chips.end() ? nullptr : &*chip;
}

bool Same(const std::string& one, const std::string& other) { return !one.empty() && one == other; }

void AddCard(const Inventory& inventory, const Chip& chip, std::set<int>* group) {
  for (const Chip& other : inventory.chips) {
    if (Same(other.module, chip.module) || Same(other.pci_bus_id, chip.pci_bus_id) ||
        (chip.card_id >= 0 && other.card_id == chip.card_id)) {
      group->insert(other.physical_id);
    }
  }
  // A lone chip may be one of a Duo whose other chip is gone.
  const int neighbour = chip.physical_id ^ 1;
  if (group->size() == 1 && Find(inventory, neighbour) == nullptr) group->insert(neighbour);
}

}  // namespace

std::set<int> ResetGroup(const Inventory& inventory, int physical_id) {
  const Chip* const chip = Find(inventory, physical_id);
  if (chip == nullptr) return {};
  std::set<int> group = {physical_id};
  bool whole_node = false;
  switch (chip->family) {
    case Family::k310:
    case Family::k310B:
    case Family::k950:
      return group;
    case Family::k310P:
      AddCard(inventory, *chip, &group);
      return group;
    case Family::k910A:
      AddBlock(physical_id, kRing, &group);
      break;
    case Family::k910B:
      AddBlock(physical_id, kMesh, &group);
      whole_node = chip->hccs_group.empty();
      break;
    case Family::kA3:
      AddBlock(physical_id, kModulePair, &group);
      if (chip->module_peer_physical_id) group.insert(*chip->module_peer_physical_id);
      break;
    case Family::kUnknown:
      whole_node = true;
      break;
  }
  for (const Chip& other : inventory.chips) {
    // All dies of an A3 node have one HCCS group.
    const bool same_group = chip->family != Family::kA3 && Same(other.hccs_group, chip->hccs_group);
    if (whole_node || same_group || Same(other.module, chip->module)) {
      group.insert(other.physical_id);
    }
  }
  return group;
}

absl::Duration BootWait(Family family) {
  switch (family) {
    case Family::k310:
    case Family::k310B:
    case Family::k310P:
    case Family::k910A:
    case Family::k910B:
      return absl::Seconds(150);
    case Family::kA3:
      return absl::Seconds(360);
    case Family::k950:
    case Family::kUnknown:
      break;
  }
  return absl::Seconds(600);
}

}  // namespace ascend::vnpu
