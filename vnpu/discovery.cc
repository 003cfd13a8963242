#include "vnpu/discovery.h"

#include <limits.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "vnpu/family.h"

namespace ascend::vnpu {
namespace {

// "key=value" lines; all else is ignored.
std::map<std::string, std::string> ReadKeyValues(const std::string& path) {
  std::map<std::string, std::string> values;
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return values;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> entry =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    values.insert_or_assign(std::string(absl::StripAsciiWhitespace(entry.first)),
                            std::string(absl::StripAsciiWhitespace(entry.second)));
  }
  return values;
}

std::string VersionOf(const std::string& version_info) {
  return ReadKeyValues(version_info)["Version"];
}

std::string UuidText(const dcmi::DieId& die) {
  // All zero is what a library prints that does not know.
  if (std::all_of(die.begin(), die.end(), [](uint32_t word) { return word == 0; })) return "";
  return absl::StrFormat("%08X-%08X-%08X-%08X-%08X", die[0], die[1], die[2], die[3], die[4]);
}

Health HealthOf(const absl::StatusOr<dcmi::HealthGrade>& grade) {
  if (!grade.ok()) return Health::kUnknown;
  switch (*grade) {
    case dcmi::HealthGrade::kOk:
      return Health::kOk;
    case dcmi::HealthGrade::kMinor:
      return Health::kMinor;
    case dcmi::HealthGrade::kMajor:
      return Health::kMajor;
    case dcmi::HealthGrade::kCritical:
      return Health::kCritical;
    case dcmi::HealthGrade::kAbsent:
      return Health::kAbsent;
    case dcmi::HealthGrade::kUnknown:
      break;
  }
  return Health::kUnknown;
}

std::optional<std::vector<int>> Pids(
    const absl::StatusOr<std::vector<dcmi::ChipProcess>>& processes) {
  if (!processes.ok()) return std::nullopt;
  // Ordered, so that the same processes are the same inventory; one may be listed per context.
  std::set<int> pids;
  for (const dcmi::ChipProcess& process : *processes) pids.insert(process.pid);
  return std::vector<int>(pids.begin(), pids.end());
}

std::optional<int> NumaNode(const std::string& device_directory) {
  const absl::StatusOr<std::string> text = ReadFile(JoinPath(device_directory, "numa_node"));
  int node = -1;
  // The kernel says -1 where it does not know.
  if (!text.ok() || !absl::SimpleAtoi(*text, &node) || node < 0) return std::nullopt;
  return node;
}

// The root complex above a PCI device: the component "pci0000:c0" of its resolved path.
std::string PcieRoot(const std::string& device_directory) {
  char resolved[PATH_MAX];
  if (realpath(device_directory.c_str(), resolved) == nullptr) return "";
  for (absl::string_view component : absl::StrSplit(resolved, '/')) {
    if (absl::StartsWith(component, "pci") && absl::StrContains(component, ':')) {
      return std::string(component);
    }
  }
  return "";
}

template <typename T>
T OrUnknown(const absl::StatusOr<T>& answer) {
  return answer.ok() ? *answer : T();
}

// Media engines may be fractions; -1 is what the library says nothing about.
int64_t Whole(double amount) { return amount > 0 ? std::llround(amount) : 0; }

Amounts AmountsOf(const dcmi::VnpuResources& resources) {
  Amounts amounts;
  amounts[Resource::kAicore] = Whole(resources.aicore);
  amounts[Resource::kAicpu] = std::max(resources.aicpu, 0);
  amounts[Resource::kMemory] = std::max<int64_t>(resources.memory_mib, 0);
  amounts[Resource::kVpc] = Whole(resources.vpc);
  amounts[Resource::kVenc] = Whole(resources.venc);
  amounts[Resource::kVdec] = Whole(resources.vdec);
  amounts[Resource::kJpegd] = Whole(resources.jpegd);
  amounts[Resource::kJpege] = Whole(resources.jpege);
  return amounts;
}

// Nobody else asks.
class NoTurns : public ReadingTurns {
 public:
  bool TryTake(dcmi::ChipAddress /*chip*/) override { return true; }
  void Release(dcmi::ChipAddress /*chip*/) override {}
  std::string Stuck(dcmi::ChipAddress /*chip*/) const override { return ""; }
};

class Discovery {
 public:
  Discovery(dcmi::Dcmi& dcmi, const DiscoveryOptions& options, ReadingTurns& turns,
            const Inventory& last)
      : dcmi_(dcmi),
        options_(options),
        turns_(turns),
        last_(last),
        hccn_(ReadKeyValues(options.hccn_conf)) {}

  absl::StatusOr<Inventory> Run() {
    inventory_.library = LibraryState::kReady;
    inventory_.dcmi_version = OrUnknown(dcmi_.DcmiVersion());
    inventory_.driver_version = OrUnknown(dcmi_.DriverVersion());
    if (inventory_.driver_version.empty()) {
      inventory_.driver_version = VersionOf(JoinPath(options_.ascend_root, "driver/version.info"));
    }
    inventory_.firmware_version =
        VersionOf(JoinPath(options_.ascend_root, "firmware/version.info"));
    const absl::StatusOr<dcmi::MultiDiePolicy> policy = dcmi_.GetMultiDiePolicy();
    if (policy.ok()) {
      inventory_.multi_die_policy = *policy == dcmi::MultiDiePolicy::kUnion
                                        ? MultiDiePolicy::kUnion
                                        : MultiDiePolicy::kIndependent;
    }
    ReadModes();

    ASCEND_ASSIGN_OR_RETURN(const std::vector<int> cards, dcmi_.Cards(), "listing the NPU cards");
    for (const int card : cards) {
      const absl::StatusOr<std::vector<dcmi::ChipAddress>> units = Units(card);
      if (!units.ok()) {
        Skip({card, -1}, "its units cannot be listed", units.status());
        continue;
      }
      for (const dcmi::ChipAddress& unit : *units) {
        if (turns_.TryTake(unit)) {
          AddUnit(unit);
          turns_.Release(unit);
        } else {
          AddUnasked(unit);
        }
      }
    }

    std::sort(inventory_.chips.begin(), inventory_.chips.end(),
              [](const Chip& a, const Chip& b) { return a.physical_id < b.physical_id; });
    NameDuoCards();
    return std::move(inventory_);
  }

 private:
  void Skip(dcmi::ChipAddress unit, absl::string_view reason, const absl::Status& status) {
    inventory_.skipped.push_back(
        {unit.card, unit.device, absl::StrCat(reason, ": ", status.message())});
  }

  // A card is asked in the turn of its first chip, as the library does.
  absl::StatusOr<std::vector<dcmi::ChipAddress>> Units(int card) {
    const dcmi::ChipAddress first = {.card = card, .device = 0};
    if (turns_.TryTake(first)) {
      absl::StatusOr<std::vector<dcmi::ChipAddress>> units = dcmi_.Units(card);
      turns_.Release(first);
      return units;
    }
    std::vector<dcmi::ChipAddress> units;
    for (const Chip& chip : last_.chips) {
      if (chip.card_id == card) units.push_back({chip.card_id, chip.device_id});
    }
    for (const SkippedChip& chip : last_.skipped) {
      if (chip.card_id == card && chip.device_id >= 0) {
        units.push_back({chip.card_id, chip.device_id});
      }
    }
    return units;
  }

  void SkipDuplicate(dcmi::ChipAddress unit, const Chip& chip) {
    Skip(unit, "duplicate",
         absl::AlreadyExistsError(
             absl::StrCat("another chip has the physical id ", chip.physical_id, " as well")));
  }

  void ReadModes() {
    if (!turns_.TryTake(kNodeTurn)) {
      inventory_.vdevice_mode = last_.vdevice_mode;
      inventory_.vnpu_recovery = last_.vnpu_recovery;
      return;
    }
    const absl::StatusOr<dcmi::VdeviceMode> mode = dcmi_.GetVdeviceMode();
    if (mode.ok()) {
      inventory_.vdevice_mode =
          *mode == dcmi::VdeviceMode::kContainer ? VdeviceMode::kContainer : VdeviceMode::kVm;
    }
    const absl::StatusOr<bool> recovery = dcmi_.GetVnpuRecovery();
    if (recovery.ok()) inventory_.vnpu_recovery = *recovery;
    turns_.Release(kNodeTurn);
  }

  // Somebody else is at the chip: it is as it was.
  void AddUnasked(dcmi::ChipAddress unit) {
    const auto known =
        std::find_if(last_.chips.begin(), last_.chips.end(), [unit](const Chip& chip) {
          return chip.card_id == unit.card && chip.device_id == unit.device;
        });
    if (known == last_.chips.end()) {
      return Skip(unit, "not read yet", absl::UnavailableError("another call about it goes on"));
    }
    if (!physical_ids_.insert(known->physical_id).second) return SkipDuplicate(unit, *known);
    Chip chip = *known;
    chip.stuck = turns_.Stuck(unit);
    if (!chip.stuck.empty()) {
      chip.health = Health::kUnknown;
      chip.busy.reset();
    }
    inventory_.chips.push_back(std::move(chip));
  }

  void AddUnit(dcmi::ChipAddress unit) {
    const absl::StatusOr<dcmi::UnitType> type = dcmi_.Type(unit);
    if (!type.ok()) return Skip(unit, "the type of the unit is unknown", type.status());
    if (*type != dcmi::UnitType::kNpu) return;
    const absl::StatusOr<int> physical = dcmi_.PhysicalId(unit);
    if (!physical.ok()) return Skip(unit, "it has no physical id", physical.status());
    const absl::StatusOr<int> logic = dcmi_.LogicId(unit);
    if (!physical_ids_.insert(*physical).second) {
      return SkipDuplicate(unit, {.physical_id = *physical});
    }

    Chip chip{.physical_id = *physical,
              .logic_id = logic.ok() ? *logic : -1,
              .card_id = unit.card,
              .device_id = unit.device};
    chip.health = HealthOf(dcmi_.Health(unit));
    // A dropped chip has no processes to tell of, and its calls may hang.
    if (chip.health != Health::kAbsent) chip.busy = Pids(dcmi_.Processes(unit));
    Partition(unit, chip);
    Identify(unit, chip);
    KeepPartitioning(chip);
    Locate(unit, chip);
    Measure(unit, chip);
    chip.roce_address = RoceAddress(unit, chip.physical_id);
    inventory_.chips.push_back(std::move(chip));
  }

  void Partition(dcmi::ChipAddress unit, Chip& chip) {
    if (chip.health == Health::kAbsent) {
      chip.partitioning_error = "the chip is absent";
      return;
    }
    absl::StatusOr<Partitioning> partitioning = ReadPartitioning(dcmi_, unit);
    if (partitioning.ok()) {
      chip.partitioning = *std::move(partitioning);
    } else if (!absl::IsUnimplemented(partitioning.status())) {
      chip.partitioning_error = std::string(partitioning.status().message());
    }
  }

  // What a chip is divided into does not change because it cannot be asked for a moment.
  void KeepPartitioning(Chip& chip) const {
    if (chip.partitioning_error.empty()) return;
    for (const Chip& known : last_.chips) {
      if (known.physical_id == chip.physical_id && known.uuid == chip.uuid) {
        chip.partitioning = known.partitioning;
      }
    }
  }

  // Family, model, board, ids. A new library may not tell one of them: the others count.
  void Identify(dcmi::ChipAddress unit, Chip& chip) {
    const bool flat = dcmi_.generation() == dcmi::Generation::kFlat;
    const dcmi::ChipInfo info = OrUnknown(dcmi_.Chip(unit));
    chip.board_id = OrUnknown(dcmi_.Board(unit)).board_id;
    chip.family = DetectFamily(info.name, chip.board_id);
    // Only 950 speaks the second generation.
    if (chip.family == Family::kUnknown && flat) chip.family = Family::k950;
    chip.model = ModelName(info.name, info.npu_name);
    chip.aicore_count = info.aicore_count;
    chip.node_number = NodeNumber(chip.family, chip.physical_id, chip.logic_id);
    const absl::StatusOr<dcmi::DieId> die =
        dcmi_.Die(unit, chip.family == Family::k950 ? dcmi::DieType::kDdie : dcmi::DieType::kVdie);
    if (die.ok()) chip.uuid = UuidText(*die);
    chip.serial = OrUnknown(dcmi_.SerialNumber(unit));
  }

  void Locate(dcmi::ChipAddress unit, Chip& chip) {
    chip.pci_bus_id = OrUnknown(dcmi_.Pci(unit)).bus_id;
    if (!chip.pci_bus_id.empty()) {
      const std::string directory =
          JoinPath(options_.sysfs_root, absl::StrCat("bus/pci/devices/", chip.pci_bus_id));
      chip.numa_node = NumaNode(directory);
      chip.pcie_root = PcieRoot(directory);
    }
    chip.hccs_group = HccsGroup(chip.family, chip.board_id, chip.physical_id);
    if (chip.family == Family::kA3) {
      // The dies 2k and 2k+1 are one package, joined by SIO.
      chip.module = absl::StrCat("module-", chip.physical_id / 2);
      if (inventory_.multi_die_policy != MultiDiePolicy::kIndependent) {
        chip.module_peer_physical_id = chip.physical_id ^ 1;
      }
    }
    if (chip.family == Family::kA3 || chip.family == Family::k950) {
      const absl::StatusOr<dcmi::SuperPodInfo> pod = dcmi_.SuperPod(unit);
      // Uncertain: all ones is taken for "not part of a super-pod".
      if (pod.ok() && pod->id != UINT32_MAX) chip.super_pod_id = pod->id;
      if (pod.ok() && pod->server_index != UINT32_MAX) chip.super_pod_server = pod->server_index;
    }
  }

  void Measure(dcmi::ChipAddress unit, Chip& chip) {
    absl::StatusOr<dcmi::MemoryInfo> memory = absl::UnimplementedError("");
    if (chip.family == Family::kUnknown || HasHbm(chip.family)) memory = dcmi_.HbmMemory(unit);
    if (chip.family == Family::kUnknown ? !memory.ok() : !HasHbm(chip.family)) {
      memory = dcmi_.DdrMemory(unit);
    }
    if (memory.ok()) chip.memory_mib = NominalMemoryMib(chip.family, memory->total_mib);
    chip.aicpu_count = OrUnknown(dcmi_.AicpuCount(unit));
  }

  std::string RoceAddress(dcmi::ChipAddress unit, int physical_id) {
    absl::StatusOr<std::string> address = dcmi_.RoceAddress(unit);
    if (address.ok()) return *std::move(address);
    const auto line = hccn_.find(absl::StrCat("address_", physical_id));
    return line == hccn_.end() ? "" : line->second;
  }

  // Both chips of a Duo card have its card id.
  void NameDuoCards() {
    std::map<int, int> chips_of_card;
    for (const Chip& chip : inventory_.chips) {
      if (chip.family == Family::k310P) ++chips_of_card[chip.card_id];
    }
    for (Chip& chip : inventory_.chips) {
      if (chip.family == Family::k310P && chips_of_card[chip.card_id] > 1) {
        chip.module = absl::StrCat("card-", chip.card_id);
      }
    }
  }

  dcmi::Dcmi& dcmi_;
  const DiscoveryOptions& options_;
  ReadingTurns& turns_;
  const Inventory& last_;
  const std::map<std::string, std::string> hccn_;
  std::set<int> physical_ids_;
  Inventory inventory_;
};

}  // namespace

absl::StatusOr<Inventory> Discover(dcmi::Dcmi& dcmi, const DiscoveryOptions& options) {
  NoTurns turns;
  return Discover(dcmi, options, turns, Inventory());
}

absl::StatusOr<Inventory> Discover(dcmi::Dcmi& dcmi, const DiscoveryOptions& options,
                                   ReadingTurns& turns, const Inventory& last) {
  return Discovery(dcmi, options, turns, last).Run();
}

absl::StatusOr<Partitioning> ReadPartitioning(dcmi::Dcmi& dcmi, dcmi::ChipAddress chip) {
  ASCEND_ASSIGN_OR_RETURN(const dcmi::VnpuTotal total, dcmi.Vnpus(chip));
  Partitioning partitioning = {.total = AmountsOf(total.resources)};
  const std::set<int> ids(total.ids.begin(), total.ids.end());
  for (const int id : ids) {
    const absl::StatusOr<dcmi::VnpuInfo> info = dcmi.Vnpu(chip, id);
    if (!info.ok()) {
      partitioning.vnpus.push_back({.id = id, .normal = false});
      continue;
    }
    partitioning.vnpus.push_back({.id = id,
                                  .template_name = info->template_name,
                                  .vgroup = info->vgroup,
                                  .container_used = info->container_used,
                                  .normal = info->status == 0,
                                  .amounts = AmountsOf(info->resources)});
  }
  return partitioning;
}

}  // namespace ascend::vnpu
