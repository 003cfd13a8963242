#include "kubeletplugin/slices/builder.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kubeletplugin/slices/limits.h"

namespace ascend::kubeletplugin {
namespace {

// Worst first. Unknown and busy are no faults: they only keep new pods away.
std::optional<std::string> TaintLevel(const NpuDevice& device, bool health_known,
                                      const std::set<int>& busy_chips) {
  std::optional<std::string> level;
  int worst = 0;
  const auto consider = [&](int rank, const char* name) {
    if (rank > worst) {
      worst = rank;
      level = name;
    }
  };
  for (const vnpu::Chip& chip : device.chips) {
    switch (chip.health) {
      case vnpu::Health::kOk:
      case vnpu::Health::kMinor:
        break;
      case vnpu::Health::kUnknown:
        consider(1, "unknown");
        break;
      case vnpu::Health::kMajor:
        consider(3, "major");
        break;
      case vnpu::Health::kCritical:
        consider(4, "critical");
        break;
      case vnpu::Health::kAbsent:
        consider(5, "absent");
        break;
    }
    if (busy_chips.count(chip.physical_id) != 0) consider(2, "busy");
    // A chip that does not tell its memory is not well, and what it has must not be guessed.
    if (chip.memory_mib <= 0) consider(1, "unknown");
  }
  if (!health_known) consider(1, "unknown");
  return level;
}

kube::DeviceTaint Taint(const std::string& level) {
  return {.key = kUnhealthyTaint, .value = level, .effect = "NoSchedule", .time_added = ""};
}

// For a held device that the node does not offer (any more).
std::string LevelOfWithdrawn(const RecordedDevice& device, const vnpu::Inventory* inventory,
                             bool health_known) {
  if (inventory == nullptr) return "unknown";
  NpuDevice found;
  for (const RecordedChip& recorded : device.chips) {
    const auto chip =
        std::find_if(inventory->chips.begin(), inventory->chips.end(),
                     [&](const auto& c) { return c.physical_id == recorded.physical_id; });
    if (chip == inventory->chips.end()) return "lost";
    found.chips.push_back(*chip);
  }
  return TaintLevel(found, health_known, {}).value_or("withdrawn");
}

// The API takes 253 characters.
std::string SliceName(size_t index, absl::string_view driver, absl::string_view node_name) {
  std::string name = absl::StrCat(absl::StrFormat("%05x", index), "-", driver, "-", node_name);
  if (name.size() <= kMaxObjectName) return name;
  // Nodes whose names differ only behind the cut must not share a slice.
  const std::string hash = absl::StrFormat("%08x", Crc32c(name));
  name.resize(kMaxObjectName - 1 - hash.size());
  while (!absl::ascii_isalnum(name.back())) name.pop_back();
  return absl::StrCat(name, "-", hash);
}

}  // namespace

std::set<int> BusyChips::Update(const vnpu::Inventory* inventory, const ClaimRecords& records,
                                absl::Duration now) {
  std::set<int> held;
  for (const auto& record : records) {
    for (const RecordedDevice& device : record->devices) {
      // Admin access too: a monitoring pod may have a process on any of its chips.
      for (const RecordedChip& chip : device.chips) held.insert(chip.physical_id);
    }
  }
  std::map<int, absl::Duration> since;
  std::set<int> counting;
  next_change_.reset();
  if (inventory != nullptr) {
    for (const vnpu::Chip& chip : inventory->chips) {
      const bool in_use = chip.busy.has_value() && !chip.busy->empty();
      if (!in_use || held.count(chip.physical_id) != 0) continue;
      const auto before = since_.find(chip.physical_id);
      const absl::Duration start = before == since_.end() ? now : before->second;
      since[chip.physical_id] = start;
      const absl::Duration left = start + kSettle - now;
      if (left <= absl::ZeroDuration()) {
        counting.insert(chip.physical_id);
      } else {
        next_change_ = std::min(next_change_.value_or(left), left);
      }
    }
  }
  since_ = std::move(since);
  return counting;
}

SlicePlan BuildSlices(const SliceInputs& inputs) {
  // Admin access holds nothing: such a device may change and leave with its chip.
  std::map<std::string, const RecordedDevice*> held;
  std::map<int, std::string> holder_of_chip;  // physical id -> name of the device that holds it
  for (const auto& record : inputs.records) {
    for (const RecordedDevice& device : record->devices) {
      if (device.admin_access) continue;
      held.try_emplace(device.device, &device);
      for (const RecordedChip& chip : device.chips) {
        holder_of_chip[chip.physical_id] = device.device;
      }
    }
  }

  SlicePlan plan;
  // By physical ids, the order published; by name what has none in it.
  std::map<std::pair<std::vector<int>, std::string>, kube::SliceDevice> devices;
  const auto add = [&](const std::string& name, kube::SliceDevice device,
                       const std::optional<std::string>& level) {
    device.name = name;
    device.taints.clear();
    if (level) device.taints.push_back(Taint(*level));
    devices[{PhysicalIdsOf(name), name}] = std::move(device);
  };
  std::set<std::string> offered;
  if (inputs.inventory != nullptr) {
    for (const NpuDevice& device : DevicesOf(*inputs.inventory, inputs.devices)) {
      // A chip that a claim holds under another device name (the multi-die policy was changed)
      // must not be offered a second time.
      const bool held_otherwise =
          std::any_of(device.chips.begin(), device.chips.end(), [&](const vnpu::Chip& chip) {
            const auto holder = holder_of_chip.find(chip.physical_id);
            return holder != holder_of_chip.end() && holder->second != device.name;
          });
      if (held_otherwise) continue;
      const auto holder = held.find(device.name);
      std::optional<std::string> level = TaintLevel(
          device, inputs.health_known, holder == held.end() ? inputs.busy_chips : std::set<int>());
      if (holder == held.end() && !level) {
        const bool quarantined =
            std::any_of(device.chips.begin(), device.chips.end(), [&](const vnpu::Chip& chip) {
              return inputs.quarantined_chips.count(chip.physical_id) != 0;
            });
        if (quarantined) level = "withheld";
        if (!inputs.withhold_free.empty()) level = inputs.withhold_free;
      }
      if (holder == held.end() && level && !inputs.server_keeps_taints) continue;
      offered.insert(device.name);
      add(device.name,
          holder == held.end() ? ToSliceDevice(device, *inputs.inventory)
                               : holder->second->published,
          level);
    }
  }
  for (const auto& [name, device] : held) {
    if (offered.count(name) != 0) continue;
    add(name, device->published,
        LevelOfWithdrawn(*device, inputs.inventory.get(), inputs.health_known));
  }

  std::vector<kube::SliceDevice> publishable;
  for (auto& [key, device] : devices) {
    if (absl::Status status = CheckDevice(device); !status.ok()) {
      plan.problems.push_back(std::string(status.message()));
      continue;
    }
    publishable.push_back(std::move(device));
  }

  const size_t count =
      std::max<size_t>(1, (publishable.size() + kMaxDevicesPerSlice - 1) / kMaxDevicesPerSlice);
  for (size_t index = 0; index < count; ++index) {
    kube::ResourceSlice slice;
    slice.name = SliceName(index, inputs.driver, inputs.node_name);
    slice.owner_node.name = inputs.node_name;
    slice.owner_node.uid = inputs.node_uid;
    slice.driver = inputs.driver;
    slice.node_name = inputs.node_name;
    slice.pool_name = inputs.node_name;
    slice.pool_slice_count = static_cast<int64_t>(count);
    const auto begin = publishable.begin() + index * kMaxDevicesPerSlice;
    const auto end =
        publishable.begin() + std::min(publishable.size(), (index + 1) * kMaxDevicesPerSlice);
    slice.devices.assign(begin, end);
    plan.slices.push_back(std::move(slice));
  }
  return plan;
}

}  // namespace ascend::kubeletplugin
