#include "vnpu/dcmi/mock/reset_rules.h"

#include <algorithm>

#include "vnpu/dcmi/abi.h"

namespace ascend::dcmi::mock {
namespace {

ResetUnit UnitOf(const Node& node) {
  if (node.reset.unit.has_value()) return *node.reset.unit;
  switch (node.family) {
    case Family::k910A:
      return ResetUnit::kRing;
    case Family::k910B:
      return ResetUnit::kMesh;
    case Family::kA3:
      return ResetUnit::kModulePair;
    case Family::k310P:  // a Duo is one card with two chips
      return ResetUnit::kCard;
    case Family::k310:
    case Family::k310B:
    case Family::k950:
      break;
  }
  return ResetUnit::kChip;
}

// Chips whose physical ids lie in the same block of this size go together.
int BlockOf(ResetUnit unit) {
  switch (unit) {
    case ResetUnit::kModule:
      return 2;
    case ResetUnit::kModulePair:
    case ResetUnit::kRing:
      return 4;
    case ResetUnit::kMesh:
      return 8;
    case ResetUnit::kChip:
    case ResetUnit::kCard:
      break;
  }
  return 1;
}

}  // namespace

std::vector<const Chip*> ResetGroup(const Node& node, const Chip& chip) {
  const ResetUnit unit = UnitOf(node);
  const int block = BlockOf(unit);
  std::vector<const Chip*> group;
  for (const Chip& other : node.chips) {
    const bool same_block = chip.physical_id.has_value() && other.physical_id.has_value() &&
                            *chip.physical_id / block == *other.physical_id / block;
    if (&other == &chip || (unit == ResetUnit::kCard ? other.card == chip.card : same_block)) {
      group.push_back(&other);
    }
  }
  return group;
}

int BootStatusAt(const ResetRun& reset, int64_t now_ms) {
  if (reset.waits_for_rescan) return DCMI_BOOT_UNINIT;
  // A clock that stands before the start is that of another boot: the reset is long over.
  const int64_t elapsed = now_ms - reset.started_ms;
  int status = DCMI_BOOT_SYSTEM_START_FINISH;
  if (elapsed >= 0 && elapsed < reset.duration_ms) {
    status = static_cast<int>(elapsed * 4 / reset.duration_ms);  // 0 .. DCMI_BOOT_FINISH
  }
  return reset.stops_at.has_value() ? std::min(status, *reset.stops_at) : status;
}

}  // namespace ascend::dcmi::mock
