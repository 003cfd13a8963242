#include "kubeletplugin/slice_device.h"

#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/devices.h"

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

TEST(SliceDeviceTest, AChip) {
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

TEST(SliceDeviceTest, UnknownFactsAreLeftOut) {
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

TEST(SliceDeviceTest, ModuleSumsItsDies) {
  vnpu::Inventory inventory;
  inventory.multi_die_policy = vnpu::MultiDiePolicy::kUnion;
  inventory.chips = {ChipAt(4, vnpu::Family::kA3), ChipAt(5, vnpu::Family::kA3)};
  inventory.chips[0].module_peer_physical_id = 5;
  inventory.chips[1].module_peer_physical_id = 4;
  const kube::SliceDevice device =
      ToSliceDevice(DevicesOf(inventory, {}).devices.front(), inventory);
  EXPECT_EQ(device.name, "npu-4-5");
  EXPECT_EQ(device.capacity.at("memory"), "128Gi");
  EXPECT_EQ(device.capacity.at("aicore"), "40");
}

// Chip after chip, as a slice is built: nothing of one shows on the next.
TEST(SliceDeviceTest, OneMakerForAllDevicesOfANode) {
  vnpu::Inventory inventory;
  inventory.driver_version = "25.5.1";
  inventory.firmware_version = "7.8.0.2";
  inventory.chips = {ChipAt(0), ChipAt(3)};
  inventory.chips[0].serial = "first";
  inventory.chips[1].numa_node = 1;
  DeviceOptions options;
  options.vnpu_mode = VnpuMode::kDynamic;
  for (vnpu::Chip& chip : inventory.chips) {
    chip.uuid = absl::StrCat("uuid-", chip.physical_id);
    chip.board_id = 0x33;
    chip.memory_mib = 32768;
    chip.partitioning.emplace();
  }
  const NodeDevices node = DevicesOf(inventory, options);
  ASSERT_GT(node.devices.size(), 4u);
  SliceDeviceMaker maker(inventory);
  for (const NpuDevice& device : node.devices) {
    const kube::SliceDevice made = maker.Make(device);
    EXPECT_EQ(made, ToSliceDevice(device, inventory)) << device.name;
    EXPECT_EQ(made.consumes_counters, device.consumes);
    EXPECT_EQ(made.attributes.count("serial"), device.chips[0] == &inventory.chips[0]);
    EXPECT_EQ(made.attributes.count("uuid"), device.partition ? 0u : 1u) << device.name;
    EXPECT_EQ(made.attributes.count("template"), device.partition ? 1u : 0u) << device.name;
    const std::string uuid = absl::StrCat("uuid-", device.chips[0]->physical_id);
    EXPECT_EQ(made.attributes.at(device.partition ? "parentUUID" : "uuid"),
              kube::AttributeValue(uuid));
    EXPECT_EQ(made.attributes.at("firmwareVersion"), kube::AttributeValue(std::string("7.8.0.2")));
  }
}

TEST(SliceDeviceTest, CountersOfAChip) {
  const kube::CounterSet set = ToCounterSet(12, {{"aicore", 20}, {"memory", 65536}, {"vnpus", 16}});
  EXPECT_EQ(set.name, CounterSetName(12));
  EXPECT_THAT(PhysicalIdsOf(set.name), ElementsAre(12));
  EXPECT_EQ(set.counters,
            (kube::CounterValues{{"aicore", "20"}, {"memory", "64Gi"}, {"vnpus", "16"}}));
  EXPECT_EQ(ToCounterValues({{"memory", 28673}}), (kube::CounterValues{{"memory", "28673Mi"}}));
}

TEST(SliceDeviceTest, StringsAreCutToWhatTheApiTakes) {
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

TEST(SliceDeviceTest, VersionsBecomeStrictSemverOrNothing) {
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
