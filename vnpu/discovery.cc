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
#include "vnpu/driver_version.h"
#include "vnpu/family.h"

namespace ascend::vnpu {
namespace {

constexpr char kAbsentReason[] = "the chip is absent";
constexpr char kNotReadYet[] = "not read yet: another call about it goes on";

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

// Gives a turn back.
class Held {
 public:
  Held(ReadingTurns& turns, dcmi::ChipAddress chip) : turns_(turns), chip_(chip) {}
  ~Held() { turns_.Release(chip_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  ReadingTurns& turns_;
  const dcmi::ChipAddress chip_;
};

void Skip(dcmi::ChipAddress unit, std::string reason, Inventory& inventory) {
  inventory.skipped.push_back({unit.card, unit.device, std::move(reason)});
}

// False, and it is skipped, if there is such a chip.
bool IsFirst(dcmi::ChipAddress unit, int physical_id, Inventory& inventory) {
  const bool first =
      std::none_of(inventory.chips.begin(), inventory.chips.end(),
                   [physical_id](const Chip& chip) { return chip.physical_id == physical_id; });
  if (!first) {
    Skip(unit,
         absl::StrCat("duplicate: another chip has the physical id ", physical_id, " as well"),
         inventory);
  }
  return first;
}

// Both chips of a Duo card have its card id.
void NameDuoCards(Inventory& inventory) {
  std::map<int, int> chips_of_card;
  for (const Chip& chip : inventory.chips) {
    if (chip.family == Family::k310P) ++chips_of_card[chip.card_id];
  }
  for (Chip& chip : inventory.chips) {
    if (chip.family == Family::k310P && chips_of_card[chip.card_id] > 1) {
      chip.module = absl::StrCat("card-", chip.card_id);
    }
  }
}

NetworkHealth NetworkOf(const absl::StatusOr<dcmi::NetworkState>& state) {
  if (!state.ok()) return NetworkHealth::kUnknown;
  switch (*state) {
    case dcmi::NetworkState::kOk:
      return NetworkHealth::kOk;
    case dcmi::NetworkState::kDown:
      return NetworkHealth::kDown;
    case dcmi::NetworkState::kNotTested:
    case dcmi::NetworkState::kUnknown:
      break;
  }
  return NetworkHealth::kUnknown;
}

}  // namespace

void ForgetState(Chip& chip, absl::string_view why) {
  chip.health = Health::kUnknown;
  chip.busy.reset();
  chip.faults.reset();
  chip.faults_error = std::string(why);
  chip.network = NetworkHealth::kUnknown;
}

Look::Look(dcmi::Dcmi& dcmi, const DiscoveryOptions& options, ReadingTurns& turns,
           FaultTexts& texts, Inventory last)
    : dcmi_(dcmi),
      options_(options),
      turns_(turns),
      texts_(texts),
      last_(std::move(last)),
      hccn_(ReadKeyValues(options.hccn_conf)) {}

absl::StatusOr<std::shared_ptr<Look>> Look::Begin(dcmi::Dcmi& dcmi, const DiscoveryOptions& options,
                                                  ReadingTurns& turns, FaultTexts& texts,
                                                  Inventory last) {
  std::shared_ptr<Look> look(new Look(dcmi, options, turns, texts, std::move(last)));
  ASCEND_RETURN_IF_ERROR(look->AskNode());
  return look;
}

absl::Status Look::AskNode() {
  node_.library = LibraryState::kReady;
  node_.dcmi_version = OrUnknown(dcmi_.DcmiVersion());
  node_.driver_version = OrUnknown(dcmi_.DriverVersion());
  const std::string installed = VersionOf(JoinPath(options_.ascend_root, "driver/version.info"));
  if (node_.driver_version.empty()) node_.driver_version = installed;
  node_.version_problem = DriverVersionProblem(node_.driver_version, installed);
  node_.firmware_version = VersionOf(JoinPath(options_.ascend_root, "firmware/version.info"));
  const absl::StatusOr<dcmi::MultiDiePolicy> policy = dcmi_.GetMultiDiePolicy();
  if (policy.ok()) {
    node_.multi_die_policy = *policy == dcmi::MultiDiePolicy::kUnion ? MultiDiePolicy::kUnion
                                                                     : MultiDiePolicy::kIndependent;
  }
  AskModes();

  ASCEND_ASSIGN_OR_RETURN(cards_, dcmi_.Cards(), "listing the NPU cards");
  MutexLock lock(&mutex_);
  for (const int card : cards_) tasks_.push_back({.card = card});
  return absl::OkStatus();
}

void Look::AskModes() {
  if (!turns_.TryTake(kNodeTurn)) {
    node_.vdevice_mode = last_.vdevice_mode;
    node_.vnpu_recovery = last_.vnpu_recovery;
    return;
  }
  const Held turn(turns_, kNodeTurn);
  const absl::StatusOr<dcmi::VdeviceMode> mode = dcmi_.GetVdeviceMode();
  if (mode.ok()) {
    node_.vdevice_mode =
        *mode == dcmi::VdeviceMode::kContainer ? VdeviceMode::kContainer : VdeviceMode::kVm;
  }
  const absl::StatusOr<bool> recovery = dcmi_.GetVnpuRecovery();
  if (recovery.ok()) node_.vnpu_recovery = *recovery;
}

bool Look::Step() {
  Task task;
  {
    MutexLock lock(&mutex_);
    if (tasks_.empty()) return false;
    task = tasks_.front();
    tasks_.pop_front();
  }
  if (!task.unit.has_value()) {
    ListUnits(task.card);
    return true;
  }
  if (!turns_.TryTake(*task.unit)) return true;  // Finish() copies it
  const Held turn(turns_, *task.unit);
  UnitReading reading = Read(*task.unit);
  MutexLock lock(&mutex_);
  readings_.insert_or_assign({task.unit->card, task.unit->device}, std::move(reading));
  return true;
}

// A card is asked in the turn of its first chip, as the library does.
void Look::ListUnits(int card) {
  const dcmi::ChipAddress first = {.card = card, .device = 0};
  Units units = KnownUnits(card);
  if (turns_.TryTake(first)) {
    const Held turn(turns_, first);
    turns_.Reading(first, "the list of the card's chips");
    units = dcmi_.Units(card);
  }
  MutexLock lock(&mutex_);
  if (units.ok()) {
    for (auto unit = units->rbegin(); unit != units->rend(); ++unit) {
      tasks_.push_front({.card = card, .unit = *unit});
    }
  }
  units_.insert_or_assign(card, std::move(units));
}

std::vector<dcmi::ChipAddress> Look::KnownUnits(int card) const {
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

Look::Result Look::Finish() {
  Result result = {.inventory = node_};
  Inventory& inventory = result.inventory;
  MutexLock lock(&mutex_);
  for (const int card : cards_) {
    const auto listed = units_.find(card);
    if (listed == units_.end()) {
      // The list itself has not come back.
      const std::vector<dcmi::ChipAddress> known = KnownUnits(card);
      for (const dcmi::ChipAddress& unit : known) AddUnread(unit, inventory);
      if (known.empty()) Skip({card, -1}, kNotReadYet, inventory);
      continue;
    }
    if (!listed->second.ok()) {
      Skip({card, -1},
           absl::StrCat("its units cannot be listed: ", listed->second.status().message()),
           inventory);
      continue;
    }
    for (const dcmi::ChipAddress& unit : *listed->second) AddUnit(unit, result);
  }
  std::sort(inventory.chips.begin(), inventory.chips.end(),
            [](const Chip& a, const Chip& b) { return a.physical_id < b.physical_id; });
  NameDuoCards(inventory);
  return result;
}

void Look::AddUnit(dcmi::ChipAddress unit, Result& result) {
  Inventory& inventory = result.inventory;
  const auto reading = readings_.find({unit.card, unit.device});
  if (reading == readings_.end()) return AddUnread(unit, inventory);
  const std::optional<Chip>& chip = reading->second.chip;
  if (chip.has_value()) {
    if (!IsFirst(unit, chip->physical_id, inventory)) return;
    inventory.chips.push_back(*chip);
    result.read.insert(chip->physical_id);
  } else if (!reading->second.problem.empty()) {
    Skip(unit, reading->second.problem, inventory);
  }
}

// Somebody is at the chip, perhaps a step that hangs: it is as it was.
void Look::AddUnread(dcmi::ChipAddress unit, Inventory& inventory) const {
  const auto known = std::find_if(last_.chips.begin(), last_.chips.end(), [unit](const Chip& chip) {
    return chip.card_id == unit.card && chip.device_id == unit.device;
  });
  if (known == last_.chips.end()) return Skip(unit, kNotReadYet, inventory);
  if (!IsFirst(unit, known->physical_id, inventory)) return;
  Chip chip = *known;
  chip.stuck = turns_.Stuck(unit);
  if (!chip.stuck.empty()) ForgetState(chip, chip.stuck);
  inventory.chips.push_back(std::move(chip));
}

Look::UnitReading Look::Read(dcmi::ChipAddress unit) const {
  turns_.Reading(unit, "its type and ids");
  const absl::StatusOr<dcmi::UnitType> type = dcmi_.Type(unit);
  if (!type.ok()) {
    return {.chip = std::nullopt,
            .problem = absl::StrCat("the type of the unit is unknown: ", type.status().message())};
  }
  if (*type != dcmi::UnitType::kNpu) return {};
  const absl::StatusOr<int> physical = dcmi_.PhysicalId(unit);
  if (!physical.ok()) {
    return {.chip = std::nullopt,
            .problem = absl::StrCat("it has no physical id: ", physical.status().message())};
  }
  const absl::StatusOr<int> logic = dcmi_.LogicId(unit);

  Chip chip{.physical_id = *physical,
            .logic_id = logic.ok() ? *logic : -1,
            .card_id = unit.card,
            .device_id = unit.device};
  turns_.Reading(unit, "its health");
  chip.health = HealthOf(dcmi_.Health(unit));
  const bool absent = chip.health == Health::kAbsent;
  if (absent && RememberAbsent(unit, chip)) return {.chip = std::move(chip), .problem = ""};
  if (absent) {
    chip.faults_error = kAbsentReason;
    chip.partitioning_error = kAbsentReason;
  } else {
    turns_.Reading(unit, "its fault codes");
    ListFaults(unit, chip);
    turns_.Reading(unit, "its processes");
    chip.busy = Pids(dcmi_.Processes(unit));
    turns_.Reading(unit, "its vNPUs");
    Partition(unit, chip);
  }
  turns_.Reading(unit, "its identity");
  Identify(unit, chip);
  KeepPartitioning(chip);
  Locate(unit, chip);
  Measure(unit, chip);
  chip.roce_address = RoceAddress(unit, chip.physical_id);
  if (!absent) {
    // The last: none hangs as easily.
    turns_.Reading(unit, "the health of its network");
    chip.network = NetworkOf(dcmi_.Network(unit));
  }
  return {.chip = std::move(chip), .problem = ""};
}

// What an absent chip is, as long as it is in the same place: no call is needed that may hang.
bool Look::RememberAbsent(dcmi::ChipAddress unit, Chip& chip) const {
  for (const Chip& known : last_.chips) {
    if (known.physical_id != chip.physical_id || known.card_id != unit.card ||
        known.device_id != unit.device) {
      continue;
    }
    const int logic_id = chip.logic_id;
    chip = known;
    chip.logic_id = logic_id;
    chip.node_number = NodeNumber(chip.family, chip.physical_id, logic_id);
    ForgetState(chip, kAbsentReason);
    chip.health = Health::kAbsent;
    chip.stuck.clear();
    chip.partitioning_error = kAbsentReason;
    if (chip.family == Family::k310P) chip.module.clear();  // named anew at the end
    return true;
  }
  return false;
}

void Look::ListFaults(dcmi::ChipAddress unit, Chip& chip) const {
  const absl::StatusOr<std::vector<uint64_t>> codes = dcmi_.FaultCodes(unit);
  if (!codes.ok()) {
    if (!absl::IsUnimplemented(codes.status())) {
      chip.faults_error = std::string(codes.status().message());
    }
    return;
  }
  std::vector<Fault>& faults = chip.faults.emplace();
  for (const uint64_t code : std::set<uint64_t>(codes->begin(), codes->end())) {
    faults.push_back(
        {.code = code, .active = true, .occurrences = 1, .text = texts_.Of(dcmi_, unit, code)});
  }
}

void Look::Partition(dcmi::ChipAddress unit, Chip& chip) const {
  absl::StatusOr<Partitioning> partitioning = ReadPartitioning(dcmi_, unit);
  if (partitioning.ok()) {
    chip.partitioning = *std::move(partitioning);
  } else if (!absl::IsUnimplemented(partitioning.status())) {
    chip.partitioning_error = std::string(partitioning.status().message());
  }
}

// What a chip is divided into does not change because it cannot be asked for a moment.
void Look::KeepPartitioning(Chip& chip) const {
  if (chip.partitioning_error.empty()) return;
  for (const Chip& known : last_.chips) {
    if (known.physical_id == chip.physical_id && known.uuid == chip.uuid) {
      chip.partitioning = known.partitioning;
    }
  }
}

// Family, model, board, ids. A new library may not tell one of them: the others count.
void Look::Identify(dcmi::ChipAddress unit, Chip& chip) const {
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

void Look::Locate(dcmi::ChipAddress unit, Chip& chip) const {
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
    if (node_.multi_die_policy != MultiDiePolicy::kIndependent) {
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

void Look::Measure(dcmi::ChipAddress unit, Chip& chip) const {
  absl::StatusOr<dcmi::MemoryInfo> memory = absl::UnimplementedError("");
  if (chip.family == Family::kUnknown || HasHbm(chip.family)) memory = dcmi_.HbmMemory(unit);
  if (chip.family == Family::kUnknown ? !memory.ok() : !HasHbm(chip.family)) {
    memory = dcmi_.DdrMemory(unit);
  }
  if (memory.ok()) chip.memory_mib = NominalMemoryMib(chip.family, memory->total_mib);
  chip.aicpu_count = OrUnknown(dcmi_.AicpuCount(unit));
}

std::string Look::RoceAddress(dcmi::ChipAddress unit, int physical_id) const {
  absl::StatusOr<std::string> address = dcmi_.RoceAddress(unit);
  if (address.ok()) return *std::move(address);
  const auto line = hccn_.find(absl::StrCat("address_", physical_id));
  return line == hccn_.end() ? "" : line->second;
}

absl::StatusOr<Inventory> Discover(dcmi::Dcmi& dcmi, const DiscoveryOptions& options) {
  NoTurns turns;
  return Discover(dcmi, options, turns, Inventory());
}

absl::StatusOr<Inventory> Discover(dcmi::Dcmi& dcmi, const DiscoveryOptions& options,
                                   ReadingTurns& turns, const Inventory& last) {
  FaultTexts texts;
  ASCEND_ASSIGN_OR_RETURN(const std::shared_ptr<Look> look,
                          Look::Begin(dcmi, options, turns, texts, last));
  while (look->Step()) {
  }
  return look->Finish().inventory;
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
