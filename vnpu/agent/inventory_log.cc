#include "vnpu/agent/inventory_log.h"

#include <algorithm>
#include <map>

#include "base/runtime/logging.h"

namespace ascend::agent {
namespace {

using ::ascend::vnpu::Chip;
using ::ascend::vnpu::Health;
using ::ascend::vnpu::Inventory;
using ::ascend::vnpu::LibraryState;

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

}  // namespace

void InventoryLog::Note(const Inventory& inventory) {
  NoteLibrary(inventory);
  if (inventory.library == LibraryState::kReady) {
    NoteChips(inventory);
    last_ready_ = inventory;
  }
  last_ = inventory;
}

void InventoryLog::NoteLibrary(const Inventory& inventory) {
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

}  // namespace ascend::agent
