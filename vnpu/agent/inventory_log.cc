#include "vnpu/agent/inventory_log.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_format.h"
#include "base/runtime/logging.h"

namespace ascend::agent {
namespace {

using ::ascend::vnpu::Chip;
using ::ascend::vnpu::Fault;
using ::ascend::vnpu::Health;
using ::ascend::vnpu::Inventory;
using ::ascend::vnpu::LibraryState;
using ::ascend::vnpu::NetworkHealth;

void LogStuckChange(const Chip& chip, bool was_stuck) {
  if (chip.stuck.empty() == !was_stuck) return;
  if (was_stuck) {
    LogInfo("chip answers again", {{"chip", chip.physical_id}});
  } else {
    LogWarning("chip stuck", {{"chip", chip.physical_id}, {"error", chip.stuck}});
  }
}

std::map<int, const Chip*> ByPhysicalId(const Inventory& inventory) {
  std::map<int, const Chip*> chips;
  for (const Chip& chip : inventory.chips) chips.emplace(chip.physical_id, &chip);
  return chips;
}

void LogHealthChange(const Chip& chip, Health before) {
  const LogFields fields = {{"chip", chip.physical_id},
                            {"health", vnpu::HealthName(chip.health)},
                            {"before", vnpu::HealthName(before)}};
  if (chip.health == Health::kOk) {
    LogInfo("chip health changed", fields);
  } else {
    LogWarning("chip health changed", fields);
  }
}

// Faults and network: not of a chip whose health nobody knows anyway.
void LogListChange(const Chip& chip, const Chip& before) {
  if (chip.network != before.network && chip.network != NetworkHealth::kUnknown) {
    const LogFields fields = {{"chip", chip.physical_id},
                              {"network", vnpu::NetworkHealthName(chip.network)}};
    if (chip.network == NetworkHealth::kOk) {
      LogInfo("chip network changed", fields);
    } else {
      LogWarning("chip network changed", fields);
    }
  }
  if (chip.stuck.empty() && chip.health != Health::kAbsent && !chip.faults_error.empty() &&
      before.faults_error.empty()) {
    LogWarning("the faults of a chip are unknown",
               {{"chip", chip.physical_id}, {"error", chip.faults_error}});
  }
}

void LogFault(const Chip& chip, const Fault& fault, absl::string_view message, bool good) {
  const std::string code = absl::StrFormat("%08X", fault.code);
  const LogFields fields = {{"chip", chip.physical_id},
                            {"code", code},
                            {"text", fault.text},
                            {"severity", vnpu::FaultSeverityName(fault.severity)},
                            {"occurrences", fault.occurrences}};
  if (good) {
    LogInfo(message, fields);
  } else {
    LogWarning(message, fields);
  }
}

}  // namespace

void InventoryLog::Note(const Inventory& inventory) {
  NoteLibrary(inventory);
  if (inventory.library == LibraryState::kReady) {
    NoteChips(inventory);
    NoteFaults(inventory);
    last_ready_ = inventory;
  }
  last_ = inventory;
}

void InventoryLog::NoteLibrary(const Inventory& inventory) {
  if (inventory.version_problem != last_.version_problem) {
    if (inventory.version_problem.empty()) {
      LogInfo("driver and package fit together", {{"driverVersion", inventory.driver_version}});
    } else {
      LogWarning("driver and package do not fit together", {{"error", inventory.version_problem}});
    }
  }
  if (inventory.library == LibraryState::kReady) {
    if (last_.library == LibraryState::kReady && last_.driver_version == inventory.driver_version &&
        last_.library_path == inventory.library_path) {
      return;
    }
    LogInfo("NPU library ready", {{"path", inventory.library_path},
                                  {"dcmiVersion", inventory.dcmi_version},
                                  {"driverVersion", inventory.driver_version},
                                  {"firmwareVersion", inventory.firmware_version},
                                  {"chips", inventory.chips.size()}});
    return;
  }
  if (last_.library == inventory.library && last_.library_message == inventory.library_message) {
    return;
  }
  LogWarning("NPU library not usable", {{"state", vnpu::LibraryStateName(inventory.library)},
                                        {"error", inventory.library_message}});
}

void InventoryLog::NoteChips(const Inventory& inventory) {
  const std::map<int, const Chip*> before = ByPhysicalId(last_ready_);
  const std::map<int, const Chip*> after = ByPhysicalId(inventory);
  for (const auto& [id, chip] : before) {
    if (!after.contains(id)) {
      LogWarning("chip vanished", {{"chip", id}, {"uuid", chip->uuid}});
    }
  }
  for (const auto& [id, chip] : after) {
    const auto known = before.find(id);
    if (known == before.end()) {
      LogInfo("chip appeared", {{"chip", id},
                                {"model", chip->model},
                                {"uuid", chip->uuid},
                                {"pciBusID", chip->pci_bus_id},
                                {"health", vnpu::HealthName(chip->health)}});
      continue;
    }
    if (known->second->uuid != chip->uuid) {
      LogWarning("chip replaced",
                 {{"chip", id}, {"uuid", chip->uuid}, {"before", known->second->uuid}});
    }
    LogStuckChange(*chip, !known->second->stuck.empty());
    if (known->second->health != chip->health) LogHealthChange(*chip, known->second->health);
    LogListChange(*chip, *known->second);
  }
  for (const vnpu::SkippedChip& skipped : inventory.skipped) {
    if (std::find(last_ready_.skipped.begin(), last_ready_.skipped.end(), skipped) !=
        last_ready_.skipped.end()) {
      continue;
    }
    LogWarning(
        "chip not offered",
        {{"card", skipped.card_id}, {"cardDevice", skipped.device_id}, {"error", skipped.reason}});
  }
}

void InventoryLog::NoteFaults(const Inventory& inventory) {
  std::set<std::pair<int, uint64_t>> listed;
  std::set<int> known;  // chips whose faults are known
  for (const Chip& chip : inventory.chips) {
    if (!chip.faults.has_value()) continue;
    known.insert(chip.physical_id);
    for (const Fault& fault : *chip.faults) {
      listed.emplace(chip.physical_id, fault.code);
      NoteFault(chip, fault);
    }
  }
  std::erase_if(told_, [&](const auto& told) {
    return known.contains(told.first.first) && !listed.contains(told.first);
  });
}

void InventoryLog::NoteFault(const Chip& chip, const Fault& fault) {
  Told& told = told_[{chip.physical_id, fault.code}];
  // Less than before: of another chip in this place.
  const uint64_t before = fault.occurrences < told.occurrences ? 0 : told.occurrences;
  told.occurrences = fault.occurrences;
  if (fault.occurrences == before) {
    if (told.active && !fault.active) LogFault(chip, fault, "chip fault gone", /*good=*/true);
    told.active = told.active && fault.active;
    return;
  }
  const absl::Duration now = clock_.Monotonic();
  const bool tell = fault.occurrences <= 3 ||
                    std::bit_width(fault.occurrences) > std::bit_width(before) || !told.when ||
                    now - *told.when >= absl::Minutes(1);
  told.active = tell && fault.active;
  if (!tell) return;
  told.when = now;
  LogFault(chip, fault, fault.active ? "chip fault" : "chip fault came and went", /*good=*/false);
}

}  // namespace ascend::agent
