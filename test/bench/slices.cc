#include "test/bench/slices.h"

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/runtime/clock.h"
#include "kubeletplugin/slice_device.h"
#include "kubeletplugin/slices/builder.h"

namespace ascend::bench {
namespace {

constexpr int kChips = 16;
constexpr size_t kDevices = kChips * 31;

kubeletplugin::SliceInputs LargestNode() {
  auto inventory = std::make_shared<vnpu::Inventory>();
  inventory->library = vnpu::LibraryState::kReady;
  inventory->driver_version = "25.5.1";
  inventory->vnpu_recovery = false;
  for (int id = 0; id < kChips; ++id) {
    vnpu::Chip& chip = inventory->chips.emplace_back();
    chip.physical_id = chip.logic_id = chip.card_id = chip.node_number = id;
    chip.device_id = 0;
    chip.family = vnpu::Family::k910A;
    chip.model = "910ProA";
    chip.board_id = 2;
    chip.uuid = absl::StrCat("14036E64-00E04F1D-1223F2B2-84528485-", id);
    chip.pci_bus_id = "0000:c1:00.0";
    chip.aicore_count = 32;
    chip.memory_mib = 32768;
    chip.health = vnpu::Health::kOk;
    chip.partitioning.emplace();
  }
  kubeletplugin::SliceInputs inputs;
  inputs.driver = "npu.huawei.com";
  inputs.node_name = inputs.node_uid = "node";
  inputs.inventory = std::move(inventory);
  inputs.devices.vnpu_mode = kubeletplugin::VnpuMode::kDynamic;
  vnpu::HealthPolicy policy(vnpu::FaultTable::BuiltIn(), "boot");
  policy.Update(inputs.inventory.get(), /*agent_known=*/true, absl::Now());
  inputs.health = std::make_shared<const kubeletplugin::ChipVerdicts>(policy.verdicts());
  // A part of every chip is held.
  for (const vnpu::Chip& chip : inputs.inventory->chips) {
    const std::string name = kubeletplugin::PartitionName(chip.physical_id, "vir02", 0);
    const auto device = kubeletplugin::FindDevice(*inputs.inventory, inputs.devices, name);
    if (!device) continue;
    auto record = std::make_shared<kubeletplugin::ClaimRecord>();
    record->claim_uid = name;
    kubeletplugin::RecordedDevice& recorded = record->devices.emplace_back();
    recorded.device = name;
    recorded.chips = {{.physical_id = chip.physical_id}};
    recorded.vnpu = kubeletplugin::RecordedVnpu{.template_name = "vir02", .id = 100};
    recorded.published = kubeletplugin::ToSliceDevice(*device, *inputs.inventory);
    inputs.records.push_back(std::move(record));
  }
  return inputs;
}

}  // namespace

Samples TimeSliceBuilds(int rounds) {
  const kubeletplugin::SliceInputs inputs = LargestNode();
  Samples samples;
  for (int round = 0; round < rounds; ++round) {
    const absl::Duration start = Clock::Real().Monotonic();
    const kubeletplugin::SlicePlan plan = kubeletplugin::BuildSlices(inputs);
    samples.Add(Clock::Real().Monotonic() - start);
    size_t devices = 0;
    for (const auto& slice : plan.slices) devices += slice.devices.size();
    if (devices != kDevices) {
      std::cerr << "bench: " << devices << " devices instead of " << kDevices << "\n";
      std::exit(1);
    }
  }
  return samples;
}

}  // namespace ascend::bench
