#include "kubeletplugin/service/device_health.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ascend::kubeletplugin {
namespace {

HealthState StateOf(const vnpu::Chip& chip) {
  switch (chip.health) {
    case vnpu::Health::kOk:
    case vnpu::Health::kMinor:
      // What is known of it is of before the call that does not return.
      return chip.stuck.empty() ? HealthState::kHealthy : HealthState::kUnknown;
    case vnpu::Health::kMajor:
    case vnpu::Health::kCritical:
    case vnpu::Health::kAbsent:
      return HealthState::kUnhealthy;
    case vnpu::Health::kUnknown:
      break;
  }
  return HealthState::kUnknown;
}

std::string MessageOf(const vnpu::Chip& chip) {
  std::vector<std::string> parts;
  if (chip.health != vnpu::Health::kOk) {
    parts.push_back(absl::StrCat("health ", std::string(vnpu::HealthName(chip.health))));
  }
  if (!chip.stuck.empty()) parts.push_back(chip.stuck);
  for (const vnpu::Fault& fault : chip.faults.value_or(std::vector<vnpu::Fault>{})) {
    if (!fault.active) continue;
    parts.push_back(absl::StrCat("fault 0x", absl::Hex(fault.code, absl::kZeroPad8),
                                 fault.text.empty() ? "" : " ", fault.text));
  }
  if (parts.empty()) return "";
  return absl::StrCat("chip ", chip.physical_id, ": ", absl::StrJoin(parts, ", "));
}

int Rank(HealthState state) {
  switch (state) {
    case HealthState::kHealthy:
      return 0;
    case HealthState::kUnknown:
      return 1;
    case HealthState::kUnhealthy:
      break;
  }
  return 2;
}

}  // namespace

std::map<int, ChipHealth> HealthOfChips(const vnpu::Inventory& inventory) {
  std::map<int, ChipHealth> chips;
  for (const vnpu::Chip& chip : inventory.chips) {
    chips[chip.physical_id] = {.state = StateOf(chip), .message = MessageOf(chip)};
  }
  return chips;
}

std::vector<DeviceHealth> HealthOfDevices(
    const std::string& pool, const std::vector<NpuDevice>& devices,
    const std::vector<std::shared_ptr<const ClaimRecord>>& records,
    const std::map<int, ChipHealth>& chips, absl::Time checked_at) {
  std::map<std::string, std::set<int>> chips_of;  // by device
  for (const auto& record : records) {
    for (const RecordedDevice& device : record->devices) {
      std::set<int>& ids = chips_of[device.device];
      for (const RecordedChip& chip : device.chips) ids.insert(chip.physical_id);
    }
  }
  for (const NpuDevice& device : devices) {
    std::set<int>& ids = chips_of[device.name];
    for (const vnpu::Chip* chip : device.chips) ids.insert(chip->physical_id);
  }

  std::vector<DeviceHealth> all;
  all.reserve(chips_of.size());
  for (const auto& [name, ids] : chips_of) {
    HealthState worst = ids.empty() ? HealthState::kUnknown : HealthState::kHealthy;
    std::vector<std::string> messages;
    for (const int id : ids) {
      const auto known = chips.find(id);
      const ChipHealth health =
          known != chips.end()
              ? known->second
              : ChipHealth{.state = HealthState::kUnhealthy,
                           .message = absl::StrCat("chip ", id, " is not on the node any more")};
      if (Rank(health.state) > Rank(worst)) worst = health.state;
      if (!health.message.empty()) messages.push_back(health.message);
    }
    all.push_back({.pool = pool,
                   .device = name,
                   .state = worst,
                   .message = absl::StrJoin(messages, "; "),
                   .checked_at = checked_at});
  }
  return all;
}

}  // namespace ascend::kubeletplugin
