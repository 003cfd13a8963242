#include "kubeletplugin/devices.h"

#include <string>
#include <variant>

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
  EXPECT_THAT(PhysicalIdsOf(CounterSetName(12)), ElementsAre(12));
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

TEST(DevicesTest, SliceDeviceOfAChip) {
  vnpu::Inventory inventory;
  inventory.driver_version = "25.5.1.b030";
  vnpu::Chip chip = ChipAt(3);
  chip.uuid = "14036E64-00E04F1D-1223F2B2-84528485-104301E2";
  chip.pci_bus_id = "0000:c1:00.0";
  chip.pcie_root = "pci0000:c0";
  chip.numa_node = 2;
  chip.hccs_group = "0";
  inventory.chips = {chip};
  const kube::SliceDevice device =
      ToSliceDevice(DevicesOf(inventory, {}).devices.front(), inventory);
  EXPECT_EQ(device.name, "npu-3");
  EXPECT_EQ(device.attributes.at("type"), kube::AttributeValue(std::string("npu")));
  EXPECT_EQ(device.attributes.at("family"), kube::AttributeValue(std::string("910B")));
  EXPECT_EQ(device.attributes.at("physicalID"), kube::AttributeValue(int64_t{3}));
  EXPECT_EQ(device.attributes.at("driverVersion"),
            kube::AttributeValue(kube::Version{"25.5.1-b030"}));
  EXPECT_EQ(device.attributes.at("resource.kubernetes.io/numaNode"),
            kube::AttributeValue(int64_t{2}));
  EXPECT_EQ(device.attributes.at("resource.kubernetes.io/pciBusID"),
            kube::AttributeValue(std::string("0000:c1:00.0")));
  EXPECT_EQ(device.capacity.at("memory"), "64Gi");
  EXPECT_EQ(device.capacity.at("aicore"), "20");
  // Logic ids change at run time, so they never reach a slice.
  EXPECT_EQ(device.attributes.count("logicID"), 0u);
}

TEST(DevicesTest, UnknownFactsAreLeftOut) {
  vnpu::Inventory inventory;
  vnpu::Chip chip;
  chip.physical_id = 1;
  inventory.chips = {chip};
  const kube::SliceDevice device =
      ToSliceDevice(DevicesOf(inventory, {}).devices.front(), inventory);
  for (const char* name : {"model", "uuid", "serial", "boardID", "driverVersion", "hccsGroup",
                           "resource.kubernetes.io/numaNode", "resource.kubernetes.io/pcieRoot"}) {
    EXPECT_EQ(device.attributes.count(name), 0u) << name;
  }
  EXPECT_THAT(device.capacity, IsEmpty());
}

TEST(DevicesTest, ModuleSumsItsDies) {
  const vnpu::Inventory inventory = Modules({4, 5}, vnpu::MultiDiePolicy::kUnion);
  const kube::SliceDevice device =
      ToSliceDevice(DevicesOf(inventory, {}).devices.front(), inventory);
  EXPECT_EQ(device.name, "npu-4-5");
  EXPECT_EQ(device.capacity.at("memory"), "128Gi");
  EXPECT_EQ(device.capacity.at("aicore"), "40");
}

TEST(DevicesTest, StringsAreCutToWhatTheApiTakes) {
  vnpu::Inventory inventory;
  vnpu::Chip chip = ChipAt(0);
  chip.model = std::string(70, 'x');
  chip.serial = "\xff\xfe bad";
  inventory.chips = {chip};
  const kube::SliceDevice device =
      ToSliceDevice(DevicesOf(inventory, {}).devices.front(), inventory);
  EXPECT_EQ(std::get<std::string>(device.attributes.at("model")).size(), 64u);
  EXPECT_EQ(device.attributes.at("serial"), kube::AttributeValue(std::string("?? bad")));
}

TEST(DevicesTest, VersionsBecomeStrictSemverOrNothing) {
  EXPECT_EQ(NormalizeVersion("25.5.1"), "25.5.1");
  EXPECT_EQ(NormalizeVersion("25.5.1.b030"), "25.5.1-b030");
  EXPECT_EQ(NormalizeVersion("24.1.rc2"), "24.1.0-rc2");
  EXPECT_EQ(NormalizeVersion("25.0.05"), "25.0.5");
  EXPECT_EQ(NormalizeVersion("v1"), "1.0.0");
  EXPECT_EQ(NormalizeVersion("6.19.14.31400000"), "6.19.14-31400000");
  EXPECT_EQ(NormalizeVersion("7.1.0.7.220"), "7.1.0-7.220");
  EXPECT_EQ(NormalizeVersion(" 25.7.rc1.6 "), "25.7.0-rc1.6");
  EXPECT_EQ(NormalizeVersion("1.0.0.007"), "1.0.0-7");
  for (const std::string& bad : {std::string(""), std::string("abc"), std::string("1..2"),
                                 std::string("1.0.0.18446744073709551616"), std::string("1.0 beta"),
                                 "1." + std::string(200, '9')}) {
    EXPECT_EQ(NormalizeVersion(bad), "") << bad;
  }
}

}  // namespace
}  // namespace ascend::kubeletplugin
