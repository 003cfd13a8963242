#include "kubeletplugin/devices.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/core/status_macros.h"
#include "vnpu/vnpu_ids.h"

namespace ascend::kubeletplugin {
namespace {

constexpr size_t kMaxAttributeString = 64;

// The API takes at most 64 bytes of valid UTF-8. Names of hardware are ASCII in practice: anything
// else becomes '?', so no cut can split a character.
std::string AttributeString(absl::string_view text) {
  std::string result(absl::StripAsciiWhitespace(text).substr(0, kMaxAttributeString));
  for (char& c : result) {
    if (!absl::ascii_isprint(c)) c = '?';
  }
  return result;
}

void SetString(kube::SliceDevice* device, const char* name, absl::string_view value) {
  std::string text = AttributeString(value);
  if (!text.empty()) device->attributes[name] = std::move(text);
}

// Canonical form: the API server prints 65536Mi as 64Gi, and a difference would look like an edit.
std::string MemoryQuantity(int64_t mebibytes) {
  if (mebibytes % 1024 == 0) return absl::StrCat(mebibytes / 1024, "Gi");
  return absl::StrCat(mebibytes, "Mi");
}

// Values of both dies if they agree, joined by '+' if not.
template <typename Get>
std::string Joined(const std::vector<vnpu::Chip>& chips, Get get) {
  std::vector<std::string> values;
  for (const vnpu::Chip& chip : chips) {
    std::string value = get(chip);
    if (value.empty()) return "";
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return absl::StrJoin(values, "+");
}

bool IsModule(const vnpu::Chip& chip, const vnpu::Inventory& inventory,
              const DeviceOptions& options) {
  if (chip.family != vnpu::Family::kA3) return false;
  // A library too old to tell the policy runs in union mode, the product's default.
  const bool together = inventory.multi_die_policy != vnpu::MultiDiePolicy::kIndependent;
  return together || options.a3_unit == A3Unit::kModule;
}

const vnpu::Catalog& CatalogOf(const DeviceOptions& options) {
  return options.catalog != nullptr ? *options.catalog : vnpu::Catalog::BuiltIn();
}

// Whether the node as a whole is ready for vNPUs made on demand.
absl::Status CheckNodeModes(const vnpu::Inventory& inventory) {
  if (inventory.vdevice_mode == vnpu::VdeviceMode::kVm) {
    return absl::FailedPreconditionError(
        "the node's vNPU mode is VM, containers cannot use its vNPUs: run npu-smi set -t vnpu-mode "
        "-d 0, or set vnpuChangeNodeModes");
  }
  if (inventory.vnpu_recovery.value_or(false)) {
    return absl::FailedPreconditionError(
        "vNPU recovery is on, vNPUs of a former boot would come back: run npu-smi set -t "
        "vnpu-cfg-recover -d 0, or set vnpuChangeNodeModes");
  }
  return absl::OkStatus();
}

// The first index of a partition's name is the physical id, the rest its template and index.
struct ParsedName {
  int physical_id = -1;
  std::string template_name;
  int index = -1;
};
std::optional<ParsedName> ParsePartitionName(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "npu-")) return std::nullopt;
  const size_t first = name.find('-'), last = name.rfind('-');
  if (first == absl::string_view::npos || first == last) return std::nullopt;
  ParsedName parsed;
  if (!absl::SimpleAtoi(name.substr(0, first), &parsed.physical_id) || parsed.physical_id < 0 ||
      !absl::SimpleAtoi(name.substr(last + 1), &parsed.index) || parsed.index < 0) {
    return std::nullopt;
  }
  parsed.template_name =
      absl::StrReplaceAll(name.substr(first + 1, last - first - 1), {{"-", "_"}});
  if (!absl::ascii_isalpha(parsed.template_name.front())) return std::nullopt;
  return parsed;
}

const vnpu::Template* FindTemplate(const vnpu::Product* product, absl::string_view name) {
  if (product == nullptr) return nullptr;
  for (const vnpu::Template& kind : product->templates) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

NpuDevice PartitionDevice(const vnpu::Chip& chip, const vnpu::Product& product,
                          const vnpu::PartitionDevice& part) {
  return {.name = PartitionName(chip.physical_id, part.template_name, part.index),
          .chips = {chip},
          .partition = Partition{.kind = *FindTemplate(&product, part.template_name),
                                 .index = part.index,
                                 .vgroups = part.vgroups},
          .consumes = {ToCounterSet(chip.physical_id, part.consumes)}};
}

// Static mode: a vNPU that is there. Its place among the chip's ids names it: that outlives a
// restart.
NpuDevice VnpuDevice(const vnpu::Chip& chip, const vnpu::Product* product, const vnpu::Vnpu& vnpu) {
  vnpu::Template kind = {.name = vnpu.template_name, .amounts = vnpu.amounts};
  if (const auto* known = FindTemplate(product, vnpu.template_name)) kind = *known;
  const int place = vnpu.id - vnpu::FirstVnpuId(chip.physical_id);
  const int index = place >= 0 && place < vnpu::kMaxVnpusPerChip ? place : vnpu.id;
  return {.name = PartitionName(chip.physical_id, vnpu.template_name, index),
          .chips = {chip},
          .partition = Partition{.kind = std::move(kind), .index = index, .vnpu_id = vnpu.id},
          .consumes = {}};
}

// Makes the devices of one node, chip by chip.
class Divider {
 public:
  Divider(const vnpu::Inventory& inventory, const DeviceOptions& options)
      : inventory_(inventory), options_(options) {
    for (const vnpu::Chip& chip : inventory.chips) {
      if (options.excluded_chips.count(chip.physical_id) == 0) offered_[chip.physical_id] = &chip;
    }
  }

  NodeDevices Run() {
    if (options_.a3_unit == A3Unit::kDie &&
        inventory_.multi_die_policy != vnpu::MultiDiePolicy::kIndependent &&
        std::any_of(offered_.begin(), offered_.end(),
                    [](const auto& entry) { return entry.second->family == vnpu::Family::kA3; })) {
      Warn(
          "a3Unit is die, but the node's multi-die policy is union: whole modules are offered; "
          "dies need npu-smi set -t multi-die-policy -d 1");
    }
    for (const auto& [physical_id, chip] : offered_) {
      if (options_.vnpu_mode == VnpuMode::kDynamic) Plan(*chip);
    }
    for (const auto& [physical_id, chip] : offered_) {
      AddWhole(*chip);
      if (options_.vnpu_mode == VnpuMode::kStatic) AddStatic(*chip);
      const auto divided = result_.divided.find(physical_id);
      if (divided == result_.divided.end()) continue;
      for (const vnpu::PartitionDevice& part : divided->second.plan->devices) {
        result_.devices.push_back(PartitionDevice(*chip, *divided->second.product, part));
      }
    }
    return std::move(result_);
  }

  // Without those that are not offered.
  std::optional<NpuDevice> Find(const ParsedName& name) {
    const auto chip = offered_.find(name.physical_id);
    if (chip == offered_.end()) return std::nullopt;
    const absl::StatusOr<const vnpu::Product*> product =
        ProductOf(*chip->second, inventory_, options_);
    if (!product.ok()) return std::nullopt;
    const absl::StatusOr<vnpu::Amounts> budget = vnpu::BudgetOf(**product, *chip->second);
    if (!budget.ok()) return std::nullopt;
    const auto part = vnpu::FindPartition(**product, *budget, name.template_name, name.index);
    if (!part.has_value()) return std::nullopt;
    return PartitionDevice(*chip->second, **product, *part);
  }

 private:
  void Warn(std::string text) {
    std::vector<std::string>& warnings = result_.warnings;
    if (std::find(warnings.begin(), warnings.end(), text) == warnings.end()) {
      warnings.push_back(std::move(text));
    }
  }

  void Plan(const vnpu::Chip& chip) {
    const absl::StatusOr<const vnpu::Product*> product = ProductOf(chip, inventory_, options_);
    if (!product.ok()) return Warn(std::string(product.status().message()));
    const absl::StatusOr<vnpu::Amounts> budget = vnpu::BudgetOf(**product, chip);
    if (!budget.ok()) return Warn(std::string(budget.status().message()));
    // The chips of a node are alike nearly always.
    if (last_.product != *product || last_budget_ != *budget) {
      last_ = {.product = *product,
               .plan = std::make_shared<const vnpu::PartitionPlan>(
                   vnpu::PlanPartitions(**product, *budget, options_.vnpu_templates))};
      last_budget_ = *budget;
    }
    if (last_.plan->devices.empty()) {
      return Warn(absl::StrCat("none of the templates in vnpuTemplates fits product ",
                               (*product)->name, ", whole chips are offered"));
    }
    result_.divided[chip.physical_id] = last_;
  }

  void AddWhole(const vnpu::Chip& chip) {
    NpuDevice device;
    device.chips.push_back(chip);
    if (IsModule(chip, inventory_, options_)) {
      // Under the independent policy the agent names no peer: the dies 2k and 2k+1 are a module.
      const int peer_id = chip.module_peer_physical_id.value_or(
          inventory_.multi_die_policy == vnpu::MultiDiePolicy::kIndependent ? chip.physical_id ^ 1
                                                                            : -1);
      const auto peer = offered_.find(peer_id);
      if (peer == offered_.end()) return;
      if (peer->first < chip.physical_id) return;  // made with the lower die
      device.chips.push_back(*peer->second);
    }
    device.name = DeviceName(device.chips);
    for (const vnpu::Chip& part : device.chips) {
      const auto divided = result_.divided.find(part.physical_id);
      if (divided == result_.divided.end()) continue;
      device.consumes.push_back(ToCounterSet(part.physical_id, divided->second.plan->counters));
    }
    result_.devices.push_back(std::move(device));
  }

  void AddStatic(const vnpu::Chip& chip) {
    if (!chip.partitioning.has_value()) return;
    const vnpu::Product* product = CatalogOf(options_).Find(chip);
    for (const vnpu::Vnpu& vnpu : chip.partitioning->vnpus) {
      if (vnpu.template_name.empty()) {
        Warn(absl::StrCat("vNPU ", vnpu.id, " of chip ", chip.physical_id,
                          " is not offered: the library does not tell its template"));
        continue;
      }
      result_.devices.push_back(VnpuDevice(chip, product, vnpu));
    }
  }

  const vnpu::Inventory& inventory_;
  const DeviceOptions& options_;
  std::map<int, const vnpu::Chip*> offered_;
  DividedChip last_;
  vnpu::Amounts last_budget_;
  NodeDevices result_;
};

}  // namespace

absl::string_view VnpuModeName(VnpuMode mode) {
  switch (mode) {
    case VnpuMode::kOff:
      break;
    case VnpuMode::kStatic:
      return "static";
    case VnpuMode::kDynamic:
      return "dynamic";
  }
  return "off";
}

std::string DeviceName(const std::vector<vnpu::Chip>& chips) {
  return absl::StrCat("npu-", absl::StrJoin(chips, "-", [](std::string* out, const auto& chip) {
                        absl::StrAppend(out, chip.physical_id);
                      }));
}

std::string PartitionName(int physical_id, absl::string_view template_name, int index) {
  return absl::StrCat("npu-", physical_id, "-", absl::StrReplaceAll(template_name, {{"_", "-"}}),
                      "-", index);
}

std::string CounterSetName(int physical_id) { return absl::StrCat("npu-", physical_id); }

kube::CounterSet ToCounterSet(int physical_id, const vnpu::Counters& counters) {
  kube::CounterSet set = {.name = CounterSetName(physical_id)};
  for (const auto& [name, value] : counters) {
    set.counters[name] = name == vnpu::ResourceName(vnpu::Resource::kMemory) ? MemoryQuantity(value)
                                                                             : absl::StrCat(value);
  }
  return set;
}

std::vector<int> PhysicalIdsOf(absl::string_view device_name) {
  if (const auto part = ParsePartitionName(device_name)) return {part->physical_id};
  if (!absl::ConsumePrefix(&device_name, "npu-")) return {};
  std::vector<int> ids;
  for (absl::string_view part : absl::StrSplit(device_name, '-')) {
    int id = 0;
    if (!absl::SimpleAtoi(part, &id) || id < 0) return {};
    ids.push_back(id);
  }
  return ids;
}

absl::StatusOr<const vnpu::Product*> ProductOf(const vnpu::Chip& chip,
                                               const vnpu::Inventory& inventory,
                                               const DeviceOptions& options) {
  if (options.vnpu_mode != VnpuMode::kDynamic) {
    return absl::FailedPreconditionError("vNPUs are not made on demand on this node: vnpuMode is " +
                                         std::string(VnpuModeName(options.vnpu_mode)));
  }
  ASCEND_RETURN_IF_ERROR(CheckNodeModes(inventory));
  const vnpu::Product* product = CatalogOf(options).Find(chip);
  const bool supported = chip.partitioning.has_value() || !chip.partitioning_error.empty();
  if (product == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("no templates are known for ", vnpu::FamilyName(chip.family), " ", chip.model,
                     " with board ", absl::StrFormat("0x%x", chip.board_id), ", ",
                     chip.aicore_count, " AI cores and ", chip.memory_mib,
                     " MiB: whole chips are offered; if npu-smi info -t template-info shows "
                     "some, describe them in vnpuCatalog"));
  }
  if (product->opt_in && !options.vnpus_on_a3) {
    return absl::FailedPreconditionError(
        absl::StrCat("vNPUs on ", vnpu::FamilyName(chip.family),
                     " are untried: whole chips are offered unless vnpuOnA3 is set"));
  }
  if (chip.family == vnpu::Family::kA3 &&
      inventory.multi_die_policy != vnpu::MultiDiePolicy::kIndependent) {
    return absl::FailedPreconditionError(
        "the dies of this A3 node are used in pairs (multi-die policy union): whole modules are "
        "offered; vNPUs need npu-smi set -t multi-die-policy -d 1");
  }
  if (!supported) {
    return absl::FailedPreconditionError(
        absl::StrCat("the driver has no vNPUs for product ", product->name,
                     " (it answers not supported): whole chips are offered"));
  }
  return product;
}

NodeDevices DevicesOf(const vnpu::Inventory& inventory, const DeviceOptions& options) {
  return Divider(inventory, options).Run();
}

std::optional<NpuDevice> FindDevice(const vnpu::Inventory& inventory, const DeviceOptions& options,
                                    absl::string_view name) {
  if (options.vnpu_mode == VnpuMode::kDynamic) {
    if (const auto parsed = ParsePartitionName(name)) {
      return Divider(inventory, options).Find(*parsed);
    }
  }
  // Only its own chips matter.
  const std::vector<int> ids = PhysicalIdsOf(name);
  vnpu::Inventory part = inventory;
  std::erase_if(part.chips, [&](const vnpu::Chip& chip) {
    return std::find(ids.begin(), ids.end(), chip.physical_id) == ids.end();
  });
  for (NpuDevice& device : DevicesOf(part, options).devices) {
    if (device.name == name) return std::move(device);
  }
  return std::nullopt;
}

std::string NormalizeVersion(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (!text.empty() && (text.front() == 'v' || text.front() == 'V')) text.remove_prefix(1);
  std::vector<std::string> numbers, rest;
  for (absl::string_view part : absl::StrSplit(text, absl::ByAnyChar(".-_+"))) {
    uint64_t number;
    if (rest.empty() && numbers.size() < 3 && !part.empty() &&
        std::all_of(part.begin(), part.end(), absl::ascii_isdigit) &&
        absl::SimpleAtoi(part, &number)) {
      numbers.push_back(absl::StrCat(number));  // no leading zeros
      continue;
    }
    std::string identifier;
    for (const char c : part) {
      if (!absl::ascii_isalnum(c)) return "";
      identifier.push_back(c);
    }
    if (identifier.empty()) return "";
    // A numeric pre-release identifier must fit into 64 bits for the API server, and have no
    // leading zeros either.
    if (std::all_of(identifier.begin(), identifier.end(), absl::ascii_isdigit)) {
      uint64_t value;
      if (!absl::SimpleAtoi(identifier, &value)) return "";
      identifier = absl::StrCat(value);
    }
    rest.push_back(std::move(identifier));
  }
  if (numbers.empty()) return "";
  while (numbers.size() < 3) numbers.push_back("0");
  std::string version = absl::StrJoin(numbers, ".");
  if (!rest.empty()) absl::StrAppend(&version, "-", absl::StrJoin(rest, "."));
  return version.size() <= kMaxAttributeString ? version : "";
}

kube::SliceDevice ToSliceDevice(const NpuDevice& device, const vnpu::Inventory& inventory) {
  const std::vector<vnpu::Chip>& chips = device.chips;
  const vnpu::Chip& first = chips.front();
  kube::SliceDevice result;
  result.name = device.name;

  SetString(&result, "type", device.partition ? "vnpu" : "npu");
  SetString(&result, "family", vnpu::FamilyName(first.family));
  SetString(&result, "model", first.model);
  if (device.partition) {
    SetString(&result, "template", device.partition->kind.name);
    SetString(&result, "parentUUID", first.uuid);
  } else if (chips.size() == 1) {
    SetString(&result, "uuid", first.uuid);  // two die ids do not fit into 64 bytes
  }
  SetString(&result, "serial", Joined(chips, [](const auto& c) { return c.serial; }));
  result.attributes["physicalID"] = int64_t{first.physical_id};
  result.attributes["cardID"] = int64_t{first.card_id};
  if (first.board_id != 0) result.attributes["boardID"] = int64_t{first.board_id};
  SetString(&result, "hccsGroup", first.hccs_group);
  SetString(&result, "module", first.module);
  if (first.super_pod_id) result.attributes["superPodID"] = *first.super_pod_id;
  if (first.super_pod_server) result.attributes["superPodServer"] = *first.super_pod_server;

  SetString(&result, "driverVersionString", inventory.driver_version);
  if (std::string version = NormalizeVersion(inventory.driver_version); !version.empty()) {
    result.attributes["driverVersion"] = kube::Version{std::move(version)};
  }
  SetString(&result, "firmwareVersion", inventory.firmware_version);

  const bool same_numa = std::all_of(chips.begin(), chips.end(), [&](const auto& chip) {
    return chip.numa_node == first.numa_node;
  });
  if (same_numa && first.numa_node && *first.numa_node >= 0 && *first.numa_node <= 1023) {
    result.attributes["resource.kubernetes.io/numaNode"] = int64_t{*first.numa_node};
  }
  const bool same_root = std::all_of(chips.begin(), chips.end(), [&](const auto& chip) {
    return chip.pcie_root == first.pcie_root;
  });
  if (same_root) SetString(&result, "resource.kubernetes.io/pcieRoot", first.pcie_root);
  SetString(&result, "resource.kubernetes.io/pciBusID", first.pci_bus_id);

  result.consumes_counters = device.consumes;
  if (device.partition) {
    for (const vnpu::Resource resource : vnpu::kResources) {
      const int64_t amount = device.partition->kind.amounts[resource];
      if (amount <= 0) continue;
      result.capacity[std::string(vnpu::ResourceName(resource))] =
          resource == vnpu::Resource::kMemory ? MemoryQuantity(amount) : absl::StrCat(amount);
    }
    return result;
  }
  int64_t memory = 0, aicore = 0, aicpu = 0;
  bool memory_known = true, aicore_known = true, aicpu_known = true;
  for (const vnpu::Chip& chip : chips) {
    memory += chip.memory_mib;
    aicore += chip.aicore_count;
    aicpu += chip.aicpu_count;
    memory_known = memory_known && chip.memory_mib > 0;
    aicore_known = aicore_known && chip.aicore_count > 0;
    aicpu_known = aicpu_known && chip.aicpu_count > 0;
  }
  if (memory_known) result.capacity["memory"] = MemoryQuantity(memory);
  if (aicore_known) result.capacity["aicore"] = absl::StrCat(aicore);
  if (aicpu_known) result.capacity["aicpu"] = absl::StrCat(aicpu);
  return result;
}

}  // namespace ascend::kubeletplugin
