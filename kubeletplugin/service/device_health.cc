#include "kubeletplugin/service/device_health.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ascend::kubeletplugin {
namespace {

std::string MessageOf(int id, const vnpu::Verdict& verdict) {
  if (verdict.level == vnpu::HealthLevel::kHealthy) return "";
  return absl::StrCat("chip ", id, ": ", verdict.message);
}

}  // namespace

std::vector<DeviceHealth> HealthOfDevices(
    const std::string& pool, const std::vector<NpuDevice>& devices,
    const std::vector<std::shared_ptr<const ClaimRecord>>& records, const ChipVerdicts& verdicts,
    absl::Time checked_at) {
  std::map<std::string, std::set<int>> chips_of;  // by device
  for (const auto& record : records) {
    for (const RecordedDevice& device : record->devices) {
      std::set<int>& ids = chips_of[device.device];
      for (const RecordedChip& chip : device.chips) ids.insert(chip.physical_id);
    }
  }
  for (const NpuDevice& device : devices) {
    if (device.partition) continue;
    std::set<int>& ids = chips_of[device.name];
    for (const vnpu::Chip* chip : device.chips) ids.insert(chip->physical_id);
  }

  std::vector<DeviceHealth> all;
  all.reserve(chips_of.size());
  for (const auto& [name, ids] : chips_of) {
    std::vector<std::string> messages;
    for (const int id : ids) {
      std::string message = MessageOf(id, VerdictOn({id}, verdicts));
      if (!message.empty()) messages.push_back(std::move(message));
    }
    all.push_back({.pool = pool,
                   .device = name,
                   .state = VerdictOn({ids.begin(), ids.end()}, verdicts).state,
                   .message = absl::StrJoin(messages, "; "),
                   .checked_at = checked_at});
  }
  return all;
}

}  // namespace ascend::kubeletplugin
