#include "kubeletplugin/health/lost_chips.h"

#include <algorithm>
#include <utility>

namespace ascend::kubeletplugin {
namespace {

constexpr char kLost[] = "the chip is lost: the library does not list it any more";

// Whether `chip` is the lost one or stands in its place.
bool Replaces(const vnpu::Chip& chip, const vnpu::Chip& lost) {
  if (chip.physical_id == lost.physical_id) return true;
  return !chip.uuid.empty() && chip.uuid == lost.uuid;
}

vnpu::Chip Lost(vnpu::Chip chip) {
  chip.health = vnpu::Health::kAbsent;
  chip.busy.reset();
  chip.faults.reset();
  chip.faults_error = kLost;
  chip.network = vnpu::NetworkHealth::kUnknown;
  chip.partitioning_error = kLost;
  chip.stuck.clear();
  return chip;
}

}  // namespace

vnpu::Inventory WithLostChips(vnpu::Inventory now, const vnpu::Inventory* before) {
  if (before == nullptr || now.library != vnpu::LibraryState::kReady) return now;
  const size_t there = now.chips.size();
  for (const vnpu::Chip& chip : before->chips) {
    const auto end = now.chips.begin() + static_cast<std::ptrdiff_t>(there);
    const bool found = std::any_of(now.chips.begin(), end, [&](const vnpu::Chip& candidate) {
      return Replaces(candidate, chip);
    });
    if (!found) now.chips.push_back(Lost(chip));
  }
  std::sort(now.chips.begin(), now.chips.end(),
            [](const vnpu::Chip& a, const vnpu::Chip& b) { return a.physical_id < b.physical_id; });
  return now;
}

}  // namespace ascend::kubeletplugin
