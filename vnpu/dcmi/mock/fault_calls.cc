#include "vnpu/dcmi/mock/fault_calls.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "vnpu/dcmi/mock/fault_state.h"
#include "vnpu/dcmi/mock/getters.h"
#include "vnpu/dcmi/mock/reset_rules.h"
#include "vnpu/dcmi/mock/vnpu_state.h"

namespace ascend::dcmi::mock {
namespace {

using Version = std::tuple<dev_t, ino_t, off_t, time_t, long>;

// Every call about a chip asks for the state, so it is read again only when its file is another.
struct Cache {
  std::mutex mutex;
  std::string path;
  std::optional<Version> version;
  std::shared_ptr<const FaultState> state;
};

std::shared_ptr<const FaultState> StateOf(const View& view) {
  static Cache* const cache = new Cache;
  const std::string path = FaultsFile(view.directory);
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return std::make_shared<FaultState>();
  const Version version{info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec,
                        info.st_mtim.tv_nsec};
  std::lock_guard<std::mutex> lock(cache->mutex);
  if (cache->path != path || cache->version != version) {
    cache->state = std::make_shared<FaultState>(ReadFaultState(view.directory));
    cache->path = path;
    cache->version = version;
  }
  return cache->state;
}

int IdOf(const Chip& chip) { return chip.physical_id.value_or(-1); }

bool HasDropped(const FaultState& state, const Chip& chip) {
  return std::any_of(state.faults.begin(), state.faults.end(), [&](const Fault& fault) {
    return fault.drops_chip && fault.physical_id == IdOf(chip);
  });
}

std::optional<int> BootStatusOfReset(const FaultState& state, const Chip& chip) {
  const ResetRun* const reset = state.ResetOf(IdOf(chip));
  if (reset == nullptr) return std::nullopt;
  const int status = BootStatusAt(*reset, BootTimeMs());
  if (status == DCMI_BOOT_SYSTEM_START_FINISH) return std::nullopt;
  return status;
}

// What the host knows without asking the chip, and what reaches it another way.
bool NeedsNoChip(const std::string& function) {
  for (const char* const name : {"dcmi_get_device_logic_id",
                                 "dcmi_get_device_phyid_from_logicid",
                                 "dcmi_get_device_logicid_from_phyid",
                                 "dcmi_get_card_id_device_id_from_logicid",
                                 "dcmi_get_card_id_device_id_from_phyid",
                                 "dcmi_get_device_type",
                                 "dcmi_get_device_outband_channel_state",
                                 "dcmi_set_device_reset",
                                 "dcmi_pre_reset_soc",
                                 "dcmi_rescan_soc",
                                 "dcmi_set_device_pre_reset",
                                 "dcmi_set_device_rescan",
                                 "dcmi_get_device_boot_status",
                                 "dcmiv2_get_chip_phy_id_by_dev_id",
                                 "dcmiv2_get_dev_id_by_chip_phy_id",
                                 "dcmiv2_get_device_type",
                                 "dcmiv2_reset_device",
                                 "dcmiv2_pre_reset_device",
                                 "dcmiv2_rescan_device",
                                 "dcmiv2_get_device_boot_status"}) {
    if (function == name) return true;
  }
  return false;
}

bool IsBusy(const View& view, const std::vector<const Chip*>& group) {
  const VnpuState vnpus = ReadVnpuState(view.directory);
  for (const Chip* chip : group) {
    if (!chip->processes.empty()) return true;
    for (const Vnpu& vnpu : vnpus.vnpus) {
      if (vnpu.physical_id == IdOf(*chip) && vnpu.busy) return true;
    }
  }
  return false;
}

}  // namespace

bool Answers(const View& view, const std::string& function, const Chip& chip) {
  if (NeedsNoChip(function)) return true;
  const std::shared_ptr<const FaultState> state = StateOf(view);
  return !HasDropped(*state, chip) && !BootStatusOfReset(*state, chip).has_value();
}

int GetHealth(const View& view, const Chip& chip, unsigned* health) {
  unsigned grade = chip.health;
  if (grade != DCMI_HEALTH_ABSENT && !chip.health_is_fixed) {
    const std::shared_ptr<const FaultState> state = StateOf(view);  // outlives the loop
    for (const Fault& fault : state->faults) {
      if (fault.physical_id == IdOf(chip)) grade = std::max(grade, fault.severity);
    }
  }
  return Give(health, grade);
}

int GetErrorCodes(const View& view, const Chip& chip, int* count, unsigned* list,
                  unsigned list_len) {
  if (count == nullptr || list == nullptr) return DCMI_INVALID_PARAMETER;
  std::vector<unsigned> codes = chip.error_codes;
  const std::shared_ptr<const FaultState> state = StateOf(view);  // outlives the loop
  for (const Fault& fault : state->faults) {
    if (fault.physical_id == IdOf(chip) && fault.listed) codes.push_back(fault.code);
  }
  if (list_len < codes.size()) return DCMI_INVALID_PARAMETER;
  std::copy(codes.begin(), codes.end(), list);
  *count = static_cast<int>(codes.size());
  return DCMI_OK;
}

std::string FaultText(const View& view, unsigned code) {
  const std::shared_ptr<const FaultState> state = StateOf(view);
  const auto text = state->texts.find(code);
  if (text != state->texts.end()) return text->second;
  char made_up[32];
  std::snprintf(made_up, sizeof(made_up), "mock fault 0x%08X", code);
  return made_up;
}

int GetBootStatus(const View& view, const Chip& chip, dcmi_boot_status* status) {
  const std::shared_ptr<const FaultState> state = StateOf(view);
  if (HasDropped(*state, chip)) return DCMI_NOT_READY;
  return Give(status, BootStatusOfReset(*state, chip).value_or(static_cast<int>(chip.boot_status)));
}

int ResetChip(const View& view, const Chip& chip, dcmi_reset_channel channel) {
  const ResetBehaviour& rules = view.node.reset;
  if (channel != DCMI_RESET_OUTBAND && channel != DCMI_RESET_INBAND) return DCMI_INVALID_PARAMETER;
  const bool outband = channel == DCMI_RESET_OUTBAND;
  if (outband && !rules.outband) return DCMI_NOT_SUPPORT;
  const std::vector<const Chip*> group = ResetGroup(view.node, chip);
  if (IsBusy(view, group)) return DCMI_NOT_SUPPORT_IN_CONTAINER;  // how "busy" comes through
  return ChangeFaultState(view.directory, [&](FaultState& state, NoticeList& notices) -> int {
    if (!outband && HasDropped(state, chip)) return DCMI_NOT_READY;
    const auto prepared = std::find(state.prepared.begin(), state.prepared.end(), IdOf(chip));
    if (outband && prepared == state.prepared.end()) return DCMI_RESET_FAIL;
    if (prepared != state.prepared.end()) state.prepared.erase(prepared);
    for (const Chip* member : group) {
      const int id = IdOf(*member);
      std::vector<Fault> left;
      for (Fault& fault : state.faults) {
        if (fault.physical_id != id || fault.survives_reset) {
          left.push_back(fault);
        } else {
          notices.Add(state, fault, view.node.LogicIdOf(*member), 0);
        }
      }
      state.faults = std::move(left);
      state.resets.erase(std::remove_if(state.resets.begin(), state.resets.end(),
                                        [=](const ResetRun& run) { return run.physical_id == id; }),
                         state.resets.end());
      state.resets.push_back({.physical_id = id,
                              .started_ms = BootTimeMs(),
                              .duration_ms = rules.duration_ms,
                              .stops_at = rules.stops_at,
                              .waits_for_rescan = outband});
    }
    return DCMI_OK;
  });
}

int PrepareReset(const View& view, const Chip& chip) {
  if (!view.node.reset.outband) return DCMI_NOT_SUPPORT;
  return ChangeFaultState(view.directory, [&](FaultState& state, NoticeList&) -> int {
    if (std::count(state.prepared.begin(), state.prepared.end(), IdOf(chip)) == 0) {
      state.prepared.push_back(IdOf(chip));
    }
    return DCMI_OK;
  });
}

int Rescan(const View& view, const Chip& chip) {
  if (!view.node.reset.outband) return DCMI_NOT_SUPPORT;
  return ChangeFaultState(view.directory, [&](FaultState& state, NoticeList&) -> int {
    for (const Chip* member : ResetGroup(view.node, chip)) {
      for (ResetRun& run : state.resets) {
        if (run.physical_id != IdOf(*member) || !run.waits_for_rescan) continue;
        run.waits_for_rescan = false;
        run.started_ms = BootTimeMs();
      }
    }
    return DCMI_OK;
  });
}

}  // namespace ascend::dcmi::mock
