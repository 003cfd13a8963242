#include "kubeletplugin/devices.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

vnpu::Chip ChipAt(int physical_id, vnpu::Family family = vnpu::Family::k910B) {
  vnpu::Chip chip;
  chip.physical_id = chip.node_number = physical_id;
  chip.logic_id = 7 - physical_id;
  chip.card_id = physical_id;
  chip.device_id = 0;
  chip.family = family;
  chip.model = "910B3";
  chip.memory_mib = 65536;
  chip.aicore_count = 20;
  return chip;
}

std::vector<std::string> Names(const NodeDevices& node) {
  std::vector<std::string> names;
  for (const NpuDevice& device : node.devices) names.push_back(device.name);
  return names;
}

vnpu::Inventory Modules(std::vector<int> physical_ids, vnpu::MultiDiePolicy policy) {
  vnpu::Inventory inventory;
  inventory.multi_die_policy = policy;
  for (int id : physical_ids) {
    vnpu::Chip chip = ChipAt(id, vnpu::Family::kA3);
    chip.module_peer_physical_id = id ^ 1;
    inventory.chips.push_back(chip);
  }
  return inventory;
}

TEST(DevicesTest, NamesComeFromPhysicalIds) {
  vnpu::Inventory inventory;
  inventory.chips = {ChipAt(0), ChipAt(3), ChipAt(12)};
  EXPECT_THAT(Names(DevicesOf(inventory, {})), ElementsAre("npu-0", "npu-3", "npu-12"));
  EXPECT_THAT(Names(DevicesOf(inventory, {.excluded_chips = {3}})), ElementsAre("npu-0", "npu-12"));
  EXPECT_THAT(DevicesOf(vnpu::Inventory{}, {}).devices, IsEmpty());
}

TEST(DevicesTest, PartsAreFoundByTheirName) {
  vnpu::Inventory inventory;
  inventory.chips = {ChipAt(0), ChipAt(3)};
  for (vnpu::Chip& chip : inventory.chips) {
    chip.board_id = 0x33;
    chip.memory_mib = 32768;
    chip.partitioning.emplace();
  }
  DeviceOptions options;
  options.vnpu_mode = VnpuMode::kDynamic;
  // One by one as in the list of all.
  for (const NpuDevice& device : DevicesOf(inventory, options).devices) {
    const auto found = FindDevice(inventory, options, device.name);
    ASSERT_TRUE(found.has_value()) << device.name;
    EXPECT_EQ(found->name, device.name);
    EXPECT_EQ(found->chips, device.chips);
    EXPECT_EQ(found->consumes, device.consumes);
    EXPECT_EQ(found->partition.has_value(), device.partition.has_value());
  }
  // Also one that is not on offer (any more).
  options.vnpu_templates = {"vir10_3c_16g"};
  EXPECT_TRUE(FindDevice(inventory, options, "npu-3-vir05-1c-8g-3").has_value());
  for (const char* name :
       {"npu-1", "npu-3-vir05-1c-8g-4", "npu-3-vir05-1c-8g", "npu-3-vir05-1c-8g--1",
        "npu-1-vir05-1c-8g-0", "npu-3-vir99-0", "npu-3-0", "npu", ""}) {
    EXPECT_FALSE(FindDevice(inventory, options, name).has_value()) << name;
  }
  options.excluded_chips = {3};
  EXPECT_FALSE(FindDevice(inventory, options, "npu-3-vir05-1c-8g-3").has_value());
  options.excluded_chips.clear();
  options.vnpu_mode = VnpuMode::kOff;
  EXPECT_FALSE(FindDevice(inventory, options, "npu-3-vir05-1c-8g-3").has_value());
}

TEST(DevicesTest, PhysicalIdsAreReadBackFromNames) {
  EXPECT_EQ(PartitionName(3, "vir05_1c_8g", 2), "npu-3-vir05-1c-8g-2");
  EXPECT_THAT(PhysicalIdsOf("npu-3-vir05-1c-8g-2"), ElementsAre(3));
  EXPECT_THAT(PhysicalIdsOf("npu-12"), ElementsAre(12));
  EXPECT_THAT(PhysicalIdsOf("npu-3"), ElementsAre(3));
  EXPECT_THAT(PhysicalIdsOf("npu-14-15"), ElementsAre(14, 15));
  for (const char* name : {"", "npu-", "npu-x", "npu--1", "gpu-1", "npu-1-"}) {
    EXPECT_THAT(PhysicalIdsOf(name), IsEmpty()) << name;
  }
}

TEST(DevicesTest, ModulesAreOneDeviceUnlessThePolicyIsIndependent) {
  using vnpu::MultiDiePolicy;
  EXPECT_THAT(Names(DevicesOf(Modules({0, 1, 2, 3}, MultiDiePolicy::kUnion), {})),
              ElementsAre("npu-0-1", "npu-2-3"));
  EXPECT_THAT(Names(DevicesOf(Modules({0, 1, 2, 3}, MultiDiePolicy::kUnknown), {})),
              ElementsAre("npu-0-1", "npu-2-3"));
  EXPECT_THAT(Names(DevicesOf(Modules({0, 1}, MultiDiePolicy::kIndependent), {})),
              ElementsAre("npu-0", "npu-1"));
}

TEST(DevicesTest, HalfAModuleIsNotOffered) {
  using vnpu::MultiDiePolicy;
  EXPECT_THAT(Names(DevicesOf(Modules({0, 2, 3}, MultiDiePolicy::kUnion), {})),
              ElementsAre("npu-2-3"));
  EXPECT_THAT(
      Names(DevicesOf(Modules({0, 1, 2, 3}, MultiDiePolicy::kUnion), {.excluded_chips = {2}})),
      ElementsAre("npu-0-1"));
}

}  // namespace
}  // namespace ascend::kubeletplugin
