#include "kubeletplugin/slices/builder.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kubeletplugin/slices/limits.h"

namespace ascend::kubeletplugin {
namespace {

// Worst first. Unknown is no fault: it only keeps new pods away.
std::optional<std::string> TaintLevel(const NpuDevice& device, bool health_known) {
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
        consider(2, "major");
        break;
      case vnpu::Health::kCritical:
        consider(3, "critical");
        break;
      case vnpu::Health::kAbsent:
        consider(4, "absent");
        break;
    }
  }
  if (!health_known) consider(1, "unknown");
  return level;
}

kube::DeviceTaint Taint(const std::string& level) {
  return {.key = kUnhealthyTaint, .value = level, .effect = "NoSchedule", .time_added = ""};
}

struct Held {
  const RecordedDevice* device;
  bool exclusive;
};

}  // namespace

SlicePlan BuildSlices(const SliceInputs& inputs) {
  std::map<std::string, Held> held;
  std::map<int, std::string> holder_of_chip;  // physical id -> name of the device that holds it
  for (const auto& record : inputs.records) {
    for (const RecordedDevice& device : record->devices) {
      Held& entry = held.try_emplace(device.device, Held{&device, false}).first->second;
      if (device.admin_access) continue;
      entry.exclusive = true;
      for (const RecordedChip& chip : device.chips) {
        holder_of_chip[chip.physical_id] = device.device;
      }
    }
  }

  SlicePlan plan;
  std::map<std::vector<int>, kube::SliceDevice> devices;  // by physical ids: the order published
  std::set<std::string> present;
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
      const bool is_held = holder != held.end();
      kube::SliceDevice slice_device =
          is_held ? holder->second.device->published : ToSliceDevice(device, *inputs.inventory);
      slice_device.name = device.name;
      slice_device.taints.clear();
      if (const std::optional<std::string> level = TaintLevel(device, inputs.health_known)) {
        if (!inputs.server_keeps_taints && !is_held) continue;
        slice_device.taints.push_back(Taint(*level));
      }
      present.insert(device.name);
      devices[PhysicalIdsOf(device.name)] = std::move(slice_device);
    }
  }
  for (const auto& [name, entry] : held) {
    // Admin access alone holds nothing: such a device may leave with its chip.
    if (present.count(name) != 0 || !entry.exclusive) continue;
    kube::SliceDevice slice_device = entry.device->published;
    slice_device.name = name;
    slice_device.taints = {Taint(inputs.inventory == nullptr ? "unknown" : "lost")};
    devices[PhysicalIdsOf(name)] = std::move(slice_device);
  }

  std::vector<kube::SliceDevice> publishable;
  for (auto& [ids, device] : devices) {
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
    slice.name =
        absl::StrCat(absl::StrFormat("%05x", index), "-", inputs.driver, "-", inputs.node_name)
            .substr(0, 253);
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
