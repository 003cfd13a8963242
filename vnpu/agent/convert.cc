#include "vnpu/agent/convert.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ascend::agent {
namespace {

using ::ascend::vnpu::MultiDiePolicy;

constexpr absl::string_view kUnion = "union";
constexpr absl::string_view kIndependent = "independent";

absl::string_view PolicyName(MultiDiePolicy policy) {
  switch (policy) {
    case MultiDiePolicy::kUnion:
      return kUnion;
    case MultiDiePolicy::kIndependent:
      return kIndependent;
    case MultiDiePolicy::kUnknown:
      break;
  }
  return "";
}

MultiDiePolicy PolicyFromName(absl::string_view name) {
  if (name == kUnion) return MultiDiePolicy::kUnion;
  if (name == kIndependent) return MultiDiePolicy::kIndependent;
  return MultiDiePolicy::kUnknown;
}

using AmountsMap = google::protobuf::Map<std::string, int64_t>;

void AmountsToProto(const vnpu::Amounts& amounts, AmountsMap* message) {
  for (const vnpu::Resource resource : vnpu::kResources) {
    if (amounts[resource] == 0) continue;
    (*message)[std::string(vnpu::ResourceName(resource))] = amounts[resource];
  }
}

vnpu::Amounts AmountsFromProto(const AmountsMap& message) {
  vnpu::Amounts amounts;
  for (const vnpu::Resource resource : vnpu::kResources) {
    const auto amount = message.find(std::string(vnpu::ResourceName(resource)));
    if (amount != message.end()) amounts[resource] = amount->second;
  }
  return amounts;
}

void FaultsToProto(const std::vector<vnpu::Fault>& faults, v1alpha1::Faults* message) {
  for (const vnpu::Fault& fault : faults) {
    v1alpha1::Fault* added = message->add_faults();
    added->set_code(fault.code);
    added->set_active(fault.active);
    added->set_occurrences(fault.occurrences);
    added->set_severity(std::string(vnpu::FaultSeverityName(fault.severity)));
    added->set_text(fault.text);
  }
}

std::vector<vnpu::Fault> FaultsFromProto(const v1alpha1::Faults& message) {
  std::vector<vnpu::Fault> faults;
  faults.reserve(message.faults_size());
  for (const v1alpha1::Fault& fault : message.faults()) {
    faults.push_back({.code = fault.code(),
                      .active = fault.active(),
                      .occurrences = fault.occurrences(),
                      .severity = vnpu::FaultSeverityFromName(fault.severity()),
                      .text = fault.text()});
  }
  return faults;
}

void ChipToProto(const vnpu::Chip& chip, v1alpha1::Chip* message) {
  message->set_physical_id(chip.physical_id);
  message->set_logic_id(chip.logic_id);
  message->set_card_id(chip.card_id);
  message->set_device_id(chip.device_id);
  message->set_node_number(chip.node_number);
  message->set_family(std::string(vnpu::FamilyName(chip.family)));
  message->set_model(chip.model);
  message->set_board_id(chip.board_id);
  message->set_uuid(chip.uuid);
  message->set_serial(chip.serial);
  message->set_pci_bus_id(chip.pci_bus_id);
  message->set_pcie_root(chip.pcie_root);
  if (chip.numa_node) message->set_numa_node(*chip.numa_node);
  message->set_memory_mib(chip.memory_mib);
  message->set_aicore_count(chip.aicore_count);
  message->set_aicpu_count(chip.aicpu_count);
  message->set_health(std::string(vnpu::HealthName(chip.health)));
  message->set_hccs_group(chip.hccs_group);
  message->set_module(chip.module);
  if (chip.module_peer_physical_id) {
    message->set_module_peer_physical_id(*chip.module_peer_physical_id);
  }
  if (chip.super_pod_id) message->set_super_pod_id(*chip.super_pod_id);
  if (chip.super_pod_server) message->set_super_pod_server(*chip.super_pod_server);
  message->set_roce_address(chip.roce_address);
  message->set_busy_known(chip.busy.has_value());
  if (chip.busy) message->mutable_busy()->Add(chip.busy->begin(), chip.busy->end());
  if (chip.partitioning) {
    v1alpha1::Partitioning* partitioning = message->mutable_partitioning();
    AmountsToProto(chip.partitioning->total, partitioning->mutable_total());
    for (const vnpu::Vnpu& vnpu : chip.partitioning->vnpus) {
      *partitioning->add_vnpus() = ToProto(vnpu);
    }
  }
  message->set_partitioning_error(chip.partitioning_error);
  message->set_stuck(chip.stuck);
  if (chip.faults) FaultsToProto(*chip.faults, message->mutable_faults());
  message->set_faults_error(chip.faults_error);
  message->set_network(std::string(vnpu::NetworkHealthName(chip.network)));
}

vnpu::Chip ChipFromProto(const v1alpha1::Chip& message) {
  vnpu::Chip chip;
  chip.physical_id = message.physical_id();
  chip.logic_id = message.logic_id();
  chip.card_id = message.card_id();
  chip.device_id = message.device_id();
  chip.node_number = message.node_number();
  chip.family = vnpu::FamilyFromName(message.family());
  chip.model = message.model();
  chip.board_id = message.board_id();
  chip.uuid = message.uuid();
  chip.serial = message.serial();
  chip.pci_bus_id = message.pci_bus_id();
  chip.pcie_root = message.pcie_root();
  if (message.has_numa_node()) chip.numa_node = message.numa_node();
  chip.memory_mib = message.memory_mib();
  chip.aicore_count = message.aicore_count();
  chip.aicpu_count = message.aicpu_count();
  chip.health = vnpu::HealthFromName(message.health());
  chip.hccs_group = message.hccs_group();
  chip.module = message.module();
  if (message.has_module_peer_physical_id()) {
    chip.module_peer_physical_id = message.module_peer_physical_id();
  }
  if (message.has_super_pod_id()) chip.super_pod_id = message.super_pod_id();
  if (message.has_super_pod_server()) chip.super_pod_server = message.super_pod_server();
  chip.roce_address = message.roce_address();
  if (message.busy_known()) chip.busy.emplace(message.busy().begin(), message.busy().end());
  if (message.has_partitioning()) {
    vnpu::Partitioning& partitioning = chip.partitioning.emplace();
    partitioning.total = AmountsFromProto(message.partitioning().total());
    for (const v1alpha1::Vnpu& vnpu : message.partitioning().vnpus()) {
      partitioning.vnpus.push_back(FromProto(vnpu));
    }
  }
  chip.partitioning_error = message.partitioning_error();
  chip.stuck = message.stuck();
  if (message.has_faults()) chip.faults = FaultsFromProto(message.faults());
  chip.faults_error = message.faults_error();
  chip.network = vnpu::NetworkHealthFromName(message.network());
  return chip;
}

}  // namespace

v1alpha1::Inventory ToProto(const vnpu::Inventory& inventory) {
  v1alpha1::Inventory message;
  message.set_revision(inventory.revision);
  message.set_agent_instance(inventory.agent_instance);
  message.set_library_state(std::string(vnpu::LibraryStateName(inventory.library)));
  message.set_library_message(inventory.library_message);
  message.set_library_path(inventory.library_path);
  message.set_dcmi_version(inventory.dcmi_version);
  message.set_driver_version(inventory.driver_version);
  message.set_firmware_version(inventory.firmware_version);
  message.set_version_problem(inventory.version_problem);
  message.set_multi_die_policy(std::string(PolicyName(inventory.multi_die_policy)));
  message.set_vdevice_mode(std::string(vnpu::VdeviceModeName(inventory.vdevice_mode)));
  if (inventory.vnpu_recovery) message.set_vnpu_recovery(*inventory.vnpu_recovery);
  for (const vnpu::Chip& chip : inventory.chips) ChipToProto(chip, message.add_chips());
  for (const vnpu::SkippedChip& skipped : inventory.skipped) {
    v1alpha1::SkippedChip* added = message.add_skipped();
    added->set_card_id(skipped.card_id);
    added->set_device_id(skipped.device_id);
    added->set_reason(skipped.reason);
  }
  return message;
}

vnpu::Inventory FromProto(const v1alpha1::Inventory& message) {
  vnpu::Inventory inventory;
  inventory.revision = message.revision();
  inventory.agent_instance = message.agent_instance();
  inventory.library = vnpu::LibraryStateFromName(message.library_state());
  inventory.library_message = message.library_message();
  inventory.library_path = message.library_path();
  inventory.dcmi_version = message.dcmi_version();
  inventory.driver_version = message.driver_version();
  inventory.firmware_version = message.firmware_version();
  inventory.version_problem = message.version_problem();
  inventory.multi_die_policy = PolicyFromName(message.multi_die_policy());
  inventory.vdevice_mode = vnpu::VdeviceModeFromName(message.vdevice_mode());
  if (message.has_vnpu_recovery()) inventory.vnpu_recovery = message.vnpu_recovery();
  inventory.chips.reserve(message.chips_size());
  for (const v1alpha1::Chip& chip : message.chips()) {
    inventory.chips.push_back(ChipFromProto(chip));
  }
  inventory.skipped.reserve(message.skipped_size());
  for (const v1alpha1::SkippedChip& skipped : message.skipped()) {
    inventory.skipped.push_back({.card_id = skipped.card_id(),
                                 .device_id = skipped.device_id(),
                                 .reason = skipped.reason()});
  }
  return inventory;
}

v1alpha1::Vnpu ToProto(const vnpu::Vnpu& vnpu) {
  v1alpha1::Vnpu message;
  message.set_id(vnpu.id);
  message.set_template_name(vnpu.template_name);
  message.set_vgroup(vnpu.vgroup);
  message.set_container_used(vnpu.container_used);
  message.set_normal(vnpu.normal);
  AmountsToProto(vnpu.amounts, message.mutable_amounts());
  return message;
}

vnpu::Vnpu FromProto(const v1alpha1::Vnpu& message) {
  return {.id = message.id(),
          .template_name = message.template_name(),
          .vgroup = message.vgroup(),
          .container_used = message.container_used(),
          .normal = message.normal(),
          .amounts = AmountsFromProto(message.amounts())};
}

v1alpha1::ChipProcesses ToProto(const vnpu::ChipProcesses& chip) {
  v1alpha1::ChipProcesses message;
  message.set_physical_id(chip.physical_id);
  message.set_known(chip.known);
  message.set_error(chip.error);
  for (const vnpu::Process& process : chip.processes) {
    v1alpha1::Process* added = message.add_processes();
    added->set_pid(process.pid);
    added->set_name(process.name);
    added->set_memory_bytes(process.memory_bytes);
  }
  return message;
}

vnpu::ChipProcesses FromProto(const v1alpha1::ChipProcesses& message) {
  vnpu::ChipProcesses chip = {
      .physical_id = message.physical_id(), .known = message.known(), .error = message.error()};
  chip.processes.reserve(message.processes_size());
  for (const v1alpha1::Process& process : message.processes()) {
    chip.processes.push_back(
        {.pid = process.pid(), .name = process.name(), .memory_bytes = process.memory_bytes()});
  }
  return chip;
}

}  // namespace ascend::agent
