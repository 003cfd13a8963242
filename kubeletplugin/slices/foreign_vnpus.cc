#include "kubeletplugin/slices/foreign_vnpus.h"

#include <algorithm>
#include <set>

namespace ascend::kubeletplugin {
namespace {

// Whether the vNPU may be what a claim has begun to make, and nobody knows the id yet.
bool MadeForIntent(const RecordedVnpu& intent, const vnpu::Vnpu& vnpu) {
  const std::vector<int>& before = intent.ids_before;
  return intent.begun && intent.template_name == vnpu.template_name &&
         std::find(before.begin(), before.end(), vnpu.id) == before.end();
}

}  // namespace

std::map<int, std::vector<vnpu::Vnpu>> ForeignVnpus::Update(
    const vnpu::Inventory* inventory,
    const std::vector<std::shared_ptr<const ClaimRecord>>& records, absl::Duration now) {
  next_change_.reset();
  if (inventory == nullptr) return {};
  std::map<int, std::vector<const RecordedVnpu*>> ours;  // by chip
  for (const auto& record : records) {
    if (record->boot_id != boot_id_) continue;
    for (const RecordedDevice& device : record->devices) {
      if (device.vnpu && !device.chips.empty()) {
        ours[device.chips.front().physical_id].push_back(&*device.vnpu);
      }
    }
  }
  std::map<int, std::vector<vnpu::Vnpu>> foreign;
  std::map<std::pair<int, int>, absl::Duration> since;
  for (const vnpu::Chip& chip : inventory->chips) {
    if (!chip.partitioning) {
      if (const auto before = last_.find(chip.physical_id);
          before != last_.end() && !chip.partitioning_error.empty()) {
        foreign.insert(*before);
        for (const vnpu::Vnpu& vnpu : before->second) {
          since[{chip.physical_id, vnpu.id}] = now - kSettle;
        }
      }
      continue;
    }
    for (const vnpu::Vnpu& vnpu : chip.partitioning->vnpus) {
      const auto& known = ours[chip.physical_id];
      if (std::any_of(known.begin(), known.end(), [&](const RecordedVnpu* own) {
            return own->id == vnpu.id || MadeForIntent(*own, vnpu);
          })) {
        continue;
      }
      const std::pair<int, int> key(chip.physical_id, vnpu.id);
      const auto before = since_.find(key);
      const absl::Duration start = before != since_.end() ? before->second
                                   : first_               ? now - kSettle
                                                          : now;
      since[key] = start;
      const absl::Duration left = start + kSettle - now;
      if (left <= absl::ZeroDuration()) {
        foreign[chip.physical_id].push_back(vnpu);
      } else {
        next_change_ = std::min(next_change_.value_or(left), left);
      }
    }
  }
  // A chip that is away for a moment comes back as it was.
  for (const auto& [chip, vnpus] : last_) {
    const bool present = std::any_of(inventory->chips.begin(), inventory->chips.end(),
                                     [&](const auto& c) { return c.physical_id == chip; });
    if (present) continue;
    foreign[chip] = vnpus;
    for (const vnpu::Vnpu& vnpu : vnpus) since[{chip, vnpu.id}] = now - kSettle;
  }
  first_ = false;
  since_ = std::move(since);
  last_ = foreign;
  return foreign;
}

}  // namespace ascend::kubeletplugin
