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
#include "kubeletplugin/slice_device.h"
#include "vnpu/vnpu_ids.h"

namespace ascend::kubeletplugin {
namespace {

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

// The product that says how `chip` can be divided on demand. An error, for people, if it cannot be:
// the mode is not dynamic, the board is unknown, or the node or the driver is not ready for it.
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

std::string DeviceName(const std::vector<const vnpu::Chip*>& chips) {
  return absl::StrCat("npu-", absl::StrJoin(chips, "-", [](std::string* out, const auto* chip) {
                        absl::StrAppend(out, chip->physical_id);
                      }));
}

NpuDevice PartitionDevice(const vnpu::Chip& chip, const vnpu::Product& product,
                          const vnpu::PartitionDevice& part, kube::CounterValues consumes) {
  return {
      .name = PartitionName(chip.physical_id, part.template_name, part.index),
      .chips = {&chip},
      .partition = Partition{.kind = *FindTemplate(&product, part.template_name),
                             .index = part.index,
                             .vgroups = part.vgroups},
      .consumes = {{.name = CounterSetName(chip.physical_id), .counters = std::move(consumes)}}};
}

// Static mode: a vNPU that is there. Its place among the chip's ids names it: that outlives a
// restart.
NpuDevice VnpuDevice(const vnpu::Chip& chip, const vnpu::Product* product, const vnpu::Vnpu& vnpu) {
  vnpu::Template kind = {.name = vnpu.template_name, .amounts = vnpu.amounts};
  if (const auto* known = FindTemplate(product, vnpu.template_name)) kind = *known;
  const int place = vnpu.id - vnpu::FirstVnpuId(chip.physical_id);
  const int index = place >= 0 && place < vnpu::kMaxVnpusPerChip ? place : vnpu.id;
  return {.name = PartitionName(chip.physical_id, vnpu.template_name, index),
          .chips = {&chip},
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

  // As if the node had no other chips.
  void KeepOnly(const std::vector<int>& physical_ids) {
    std::erase_if(offered_, [&](const auto& entry) {
      return std::find(physical_ids.begin(), physical_ids.end(), entry.first) == physical_ids.end();
    });
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
      AddPartitions(*chip, divided->second);
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
    return PartitionDevice(*chip->second, **product, *part, ToCounterValues(part->consumes));
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
    device.chips.push_back(&chip);
    if (IsModule(chip, inventory_, options_)) {
      // Under the independent policy the agent names no peer: the dies 2k and 2k+1 are a module.
      const int peer_id = chip.module_peer_physical_id.value_or(
          inventory_.multi_die_policy == vnpu::MultiDiePolicy::kIndependent ? chip.physical_id ^ 1
                                                                            : -1);
      const auto peer = offered_.find(peer_id);
      if (peer == offered_.end()) return;
      if (peer->first < chip.physical_id) return;  // made with the lower die
      device.chips.push_back(peer->second);
    }
    device.name = DeviceName(device.chips);
    for (const vnpu::Chip* part : device.chips) {
      const auto divided = result_.divided.find(part->physical_id);
      if (divided == result_.divided.end()) continue;
      device.consumes.push_back(ToCounterSet(part->physical_id, divided->second.plan->counters));
    }
    result_.devices.push_back(std::move(device));
  }

  void AddPartitions(const vnpu::Chip& chip, const DividedChip& divided) {
    const std::vector<vnpu::PartitionDevice>& parts = divided.plan->devices;
    std::vector<kube::CounterValues>& consumed = consumed_[divided.plan.get()];
    for (size_t i = 0; i < parts.size(); ++i) {
      if (consumed.size() == i) consumed.push_back(ToCounterValues(parts[i].consumes));
      result_.devices.push_back(PartitionDevice(chip, *divided.product, parts[i], consumed[i]));
    }
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
  // By plan, of each of its partitions: chips that share a plan consume the same.
  std::map<const vnpu::PartitionPlan*, std::vector<kube::CounterValues>> consumed_;
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

std::string PartitionName(int physical_id, absl::string_view template_name, int index) {
  return absl::StrCat("npu-", physical_id, "-", absl::StrReplaceAll(template_name, {{"_", "-"}}),
                      "-", index);
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
  Divider divider(inventory, options);
  divider.KeepOnly(PhysicalIdsOf(name));
  for (NpuDevice& device : divider.Run().devices) {
    if (device.name == name) return std::move(device);
  }
  return std::nullopt;
}

}  // namespace ascend::kubeletplugin
