#include "kubeletplugin/slices/builder.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/slices/limits.h"
#include "kubeletplugin/testing/judged.h"
#include "nlohmann/json.hpp"

namespace ascend::kubeletplugin {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

vnpu::Chip Chip(int physical_id, vnpu::Family family = vnpu::Family::k910B) {
  vnpu::Chip chip;
  chip.physical_id = chip.node_number = chip.card_id = physical_id;
  chip.logic_id = physical_id;
  chip.device_id = 0;
  chip.family = family;
  chip.model = "910B3";
  chip.health = vnpu::Health::kOk;
  chip.memory_mib = 65536;
  chip.aicore_count = 20;
  return chip;
}

SliceInputs Inputs(std::vector<vnpu::Chip> chips,
                   vnpu::MultiDiePolicy policy = vnpu::MultiDiePolicy::kUnknown) {
  SliceInputs inputs;
  inputs.driver = "npu.huawei.com";
  inputs.node_name = "node-1";
  inputs.node_uid = "node-uid";
  auto inventory = std::make_shared<vnpu::Inventory>();
  inventory->library = vnpu::LibraryState::kReady;
  inventory->multi_die_policy = policy;
  inventory->chips = std::move(chips);
  inputs.inventory = std::move(inventory);
  return inputs;
}

// Two dies of one module each.
std::vector<vnpu::Chip> Modules(const std::vector<int>& physical_ids) {
  std::vector<vnpu::Chip> chips;
  for (int id : physical_ids) {
    chips.push_back(Chip(id, vnpu::Family::kA3));
    chips.back().module_peer_physical_id = id ^ 1;
  }
  return chips;
}

// A claim that got `device`, published as it was then.
std::shared_ptr<const ClaimRecord> Record(const std::string& device, std::vector<int> chips,
                                          bool admin_access = false) {
  auto record = std::make_shared<ClaimRecord>();
  record->claim_uid = absl::StrCat("uid-of-", device, admin_access ? "-admin" : "");
  RecordedDevice recorded;
  recorded.device = device;
  recorded.pool = "node-1";
  recorded.admin_access = admin_access;
  for (int id : chips) recorded.chips.push_back({.physical_id = id});
  recorded.published.name = device;
  recorded.published.attributes["model"] = std::string("as-allocated");
  recorded.published.capacity["memory"] = "1Gi";
  record->devices.push_back(std::move(recorded));
  return record;
}

std::vector<kube::SliceDevice> Devices(const SlicePlan& plan) {
  std::vector<kube::SliceDevice> devices;
  for (const kube::ResourceSlice& slice : plan.slices) {
    devices.insert(devices.end(), slice.devices.begin(), slice.devices.end());
  }
  return devices;
}

// "npu-0", "npu-1:critical" with a taint, "npu-1*" as it was allocated.
std::vector<std::string> Summary(const SlicePlan& plan) {
  std::vector<std::string> lines;
  for (const kube::SliceDevice& device : Devices(plan)) {
    std::string line = device.name;
    const auto model = device.attributes.find("model");
    if (model != device.attributes.end() &&
        model->second == kube::AttributeValue(std::string("as-allocated"))) {
      line += "*";
    }
    for (const kube::DeviceTaint& taint : device.taints) {
      EXPECT_EQ(taint.key, kUnhealthyTaint);
      EXPECT_EQ(taint.effect, "NoSchedule");
      // The policy's verdicts are dated, what the slices add to them is not.
      EXPECT_THAT(taint.time_added, AnyOf("", "2026-09-21T14:13:20Z"));
      absl::StrAppend(&line, ":", taint.value);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

TEST(BuilderTest, InOrderOfPhysicalIds) {
  EXPECT_THAT(Summary(BuildJudged(Inputs({Chip(10), Chip(2), Chip(0)}))),
              ElementsAre("npu-0", "npu-2", "npu-10"));
}

TEST(BuilderTest, AnEmptyPoolIsOneSlice) {  // SLC-07
  const SlicePlan plan = BuildJudged(Inputs({}));
  ASSERT_THAT(plan.slices, SizeIs(1));
  EXPECT_THAT(plan.slices[0].devices, IsEmpty());
  EXPECT_EQ(plan.slices[0].pool_slice_count, 1);
  EXPECT_EQ(plan.slices[0].pool_name, "node-1");
  EXPECT_THAT(plan.problems, IsEmpty());
  EXPECT_THAT(CheckSlice(plan.slices[0]), IsOk());

  SliceInputs unknown = Inputs({});
  unknown.inventory = nullptr;
  EXPECT_THAT(BuildJudged(unknown).slices, SizeIs(1));
}

TEST(BuilderTest, UnionModules) {
  const std::vector<vnpu::Chip> chips = Modules({0, 1, 2, 3});
  EXPECT_THAT(Summary(BuildJudged(Inputs(chips, vnpu::MultiDiePolicy::kUnion))),
              ElementsAre("npu-0-1", "npu-2-3"));
  EXPECT_THAT(Summary(BuildJudged(Inputs(chips, vnpu::MultiDiePolicy::kIndependent))),
              ElementsAre("npu-0", "npu-1", "npu-2", "npu-3"));
  // One sick die makes the module sick, one missing die takes it away.
  std::vector<vnpu::Chip> sick = chips;
  sick[3].health = vnpu::Health::kCritical;
  EXPECT_THAT(Summary(BuildJudged(Inputs(sick, vnpu::MultiDiePolicy::kUnion))),
              ElementsAre("npu-0-1", "npu-2-3:critical"));
  EXPECT_THAT(Summary(BuildJudged(Inputs(Modules({0, 2, 3}), vnpu::MultiDiePolicy::kUnion))),
              ElementsAre("npu-2-3"));
}

TEST(BuilderTest, ATaintPerHealth) {
  const std::pair<vnpu::Health, const char*> cases[] = {
      {vnpu::Health::kOk, "npu-0"},
      {vnpu::Health::kMinor, "npu-0"},
      {vnpu::Health::kMajor, "npu-0:major"},
      {vnpu::Health::kCritical, "npu-0:critical"},
      {vnpu::Health::kUnknown, "npu-0:unknown"},
      {vnpu::Health::kAbsent, "npu-0:absent"},
  };
  for (const auto& [health, expected] : cases) {
    vnpu::Chip chip = Chip(0);
    chip.health = health;
    EXPECT_THAT(Summary(BuildJudged(Inputs({chip, Chip(1)}))), ElementsAre(expected, "npu-1"));
  }
}

TEST(BuilderTest, UnknownHealthNeverHidesAFault) {
  vnpu::Chip critical = Chip(1);
  critical.health = vnpu::Health::kCritical;
  SliceInputs inputs = Inputs({Chip(0), critical});
  inputs.health = Judge(*inputs.inventory, /*agent_known=*/false);
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-0:unknown", "npu-1:critical"));
}

// --- SLC-13: what a claim holds stays, under its allocated name and cost ---

TEST(BuilderTest, AChipInUseThatNobodyHoldsIsTainted) {  // ORD-16
  SliceInputs inputs = Inputs({Chip(0), Chip(1), Chip(2)});
  inputs.busy_chips = {1, 2, 7};
  inputs.records = {Record("npu-2", {2})};
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-0", "npu-1:busy", "npu-2*"));
  // An admin's look holds nothing.
  inputs.records = {Record("npu-2", {2}, /*admin_access=*/true)};
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-0", "npu-1:busy", "npu-2:busy"));
  inputs.server_keeps_taints = false;
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-0"));
}

TEST(BuilderTest, BusyIsWorseThanUnknownAndLessThanAFault) {
  std::vector<vnpu::Chip> chips = {Chip(0), Chip(1)};
  chips[0].health = vnpu::Health::kMajor;
  chips[1].health = vnpu::Health::kUnknown;
  SliceInputs inputs = Inputs(chips);
  inputs.busy_chips = {0, 1};
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-0:major", "npu-1:busy"));
}

TEST(BuilderTest, ChipsThatAreBeingResetAreForNobody) {
  std::vector<vnpu::Chip> chips = {Chip(0), Chip(1), Chip(2)};
  chips[1].health = vnpu::Health::kMajor;
  SliceInputs inputs = Inputs(chips);
  inputs.busy_chips = {1};
  inputs.resetting = {0, 1};
  EXPECT_THAT(Summary(BuildJudged(inputs)),
              ElementsAre("npu-0:resetting", "npu-1:resetting", "npu-2"));
  SliceInputs modules = Inputs(Modules({0, 1, 2, 3}), vnpu::MultiDiePolicy::kUnion);
  modules.resetting = {3};
  EXPECT_THAT(Summary(BuildJudged(modules)), ElementsAre("npu-0-1", "npu-2-3:resetting"));
}

TEST(BuilderTest, OneDieInUseTaintsItsModule) {
  SliceInputs inputs = Inputs(Modules({0, 1, 2, 3}), vnpu::MultiDiePolicy::kUnion);
  inputs.busy_chips = {3};
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-0-1", "npu-2-3:busy"));
}

vnpu::Inventory InUse(const std::vector<int>& busy_chips) {
  vnpu::Inventory inventory;
  inventory.chips = {Chip(0), Chip(1), Chip(2)};
  for (vnpu::Chip& chip : inventory.chips) chip.busy.emplace();
  for (const int id : busy_chips) inventory.chips[id].busy = {4242};
  return inventory;
}

constexpr absl::Duration kStart = absl::Hours(1);
constexpr absl::Duration kSettle = BusyChips::kSettle;

TEST(BusyChipsTest, CountAfterAWhileAndNoLongerAtOnce) {
  BusyChips chips;
  const vnpu::Inventory busy = InUse({1});
  EXPECT_THAT(chips.Update(&busy, {}, kStart), IsEmpty());
  EXPECT_EQ(chips.next_change(), kSettle);
  const absl::Duration almost = kSettle - absl::Milliseconds(1);
  EXPECT_THAT(chips.Update(&busy, {}, kStart + almost), IsEmpty());
  EXPECT_EQ(chips.next_change(), absl::Milliseconds(1));
  EXPECT_THAT(chips.Update(&busy, {}, kStart + kSettle), ElementsAre(1));
  EXPECT_EQ(chips.next_change(), std::nullopt);
  const vnpu::Inventory free = InUse({});
  EXPECT_THAT(chips.Update(&free, {}, kStart + 2 * kSettle), IsEmpty());
  EXPECT_THAT(chips.Update(&busy, {}, kStart + 2 * kSettle), IsEmpty()) << "begins anew";
}

TEST(BusyChipsTest, AnotherProcessDoesNotBeginAnew) {
  BusyChips chips;
  vnpu::Inventory busy = InUse({1});
  EXPECT_THAT(chips.Update(&busy, {}, kStart), IsEmpty());
  busy.chips[1].busy = {17};
  EXPECT_THAT(chips.Update(&busy, {}, kStart + kSettle), ElementsAre(1));
}

TEST(BusyChipsTest, TheLastProcessOfAClaimGivenBackDoesNotCount) {
  BusyChips chips;
  const vnpu::Inventory busy = InUse({1});
  const ClaimRecords held = {Record("npu-1", {1})};
  EXPECT_THAT(chips.Update(&busy, held, kStart), IsEmpty());
  EXPECT_THAT(chips.Update(&busy, held, kStart + 2 * kSettle), IsEmpty());
  EXPECT_EQ(chips.next_change(), std::nullopt);
  EXPECT_THAT(chips.Update(&busy, {}, kStart + 2 * kSettle), IsEmpty());
  EXPECT_THAT(chips.Update(&busy, {}, kStart + 3 * kSettle), ElementsAre(1)) << "it stayed";
}

TEST(BusyChipsTest, UnknownIsNotInUse) {
  BusyChips chips;
  vnpu::Inventory unknown = InUse({1});
  for (vnpu::Chip& chip : unknown.chips) chip.busy.reset();
  EXPECT_THAT(chips.Update(&unknown, {}, kStart), IsEmpty());
  EXPECT_THAT(chips.Update(&unknown, {}, kStart + kSettle), IsEmpty());
  EXPECT_THAT(chips.Update(nullptr, {}, kStart + kSettle), IsEmpty());
  EXPECT_EQ(chips.next_change(), std::nullopt);
}

TEST(HeldDevicesTest, KeepTheirAllocatedForm) {  // SLC-13
  SliceInputs inputs = Inputs({Chip(0), Chip(1)});
  inputs.records = {Record("npu-1", {1})};
  const SlicePlan plan = BuildJudged(inputs);
  EXPECT_THAT(Summary(plan), ElementsAre("npu-0", "npu-1*"));
  EXPECT_EQ(Devices(plan)[1].capacity.at("memory"), "1Gi");
}

TEST(HeldDevicesTest, StayWhenTheirChipIsLost) {  // SLC-13
  SliceInputs inputs = Inputs({Chip(0), Chip(2)});
  inputs.records = {Record("npu-1", {1})};
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-0", "npu-1*:lost", "npu-2"));
  inputs.records.clear();  // unprepared: it may go now
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-0", "npu-2"));
}

TEST(HeldDevicesTest, StayWhenTheirChipIsSick) {  // SLC-13
  vnpu::Chip chip = Chip(1);
  chip.health = vnpu::Health::kMajor;
  SliceInputs inputs = Inputs({Chip(0), chip});
  inputs.records = {Record("npu-1", {1})};
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-0", "npu-1*:major"));
}

TEST(HeldDevicesTest, StayWhenTheirChipIsExcluded) {  // SLC-13
  SliceInputs inputs = Inputs({Chip(0), Chip(1), Chip(2)});
  inputs.devices.excluded_chips = {1, 2};
  inputs.records = {Record("npu-1", {1})};
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-0", "npu-1*:withdrawn"));
}

TEST(HeldDevicesTest, StayWhenThePolicyIsChanged) {  // SLC-13
  SliceInputs inputs = Inputs(Modules({0, 1, 2, 3}), vnpu::MultiDiePolicy::kIndependent);
  inputs.records = {Record("npu-0-1", {0, 1})};
  // Neither die of the module is offered a second time.
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-0-1*:withdrawn", "npu-2", "npu-3"));

  inputs = Inputs(Modules({0, 1, 2, 3}), vnpu::MultiDiePolicy::kUnion);
  inputs.records = {Record("npu-1", {1})};
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-1*:withdrawn", "npu-2-3"));
}

TEST(HeldDevicesTest, AWithdrawnOneStillShowsItsFault) {
  std::vector<vnpu::Chip> chips = Modules({0, 1});
  chips[1].health = vnpu::Health::kCritical;
  SliceInputs inputs = Inputs(chips, vnpu::MultiDiePolicy::kIndependent);
  inputs.records = {Record("npu-0-1", {0, 1})};
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-0-1*:critical"));
}

TEST(HeldDevicesTest, StayWithoutAnInventory) {  // SLC-13
  SliceInputs inputs = Inputs({});
  inputs.inventory = nullptr;
  inputs.records = {Record("npu-3", {3})};
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-3*:unknown"));
}

TEST(HeldDevicesTest, AdminAccessHoldsNothing) {
  SliceInputs inputs = Inputs({Chip(0)});
  inputs.records = {Record("npu-0", {0}, /*admin_access=*/true),
                    Record("npu-1", {1}, /*admin_access=*/true)};
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-0"));
  // With an exclusive holder beside it, that one's form counts, whichever record comes first.
  auto admin = std::make_shared<ClaimRecord>(*Record("npu-0", {0}, /*admin_access=*/true));
  admin->devices[0].published.attributes["model"] = std::string("as-seen-by-admin");
  inputs.records = {admin, Record("npu-0", {0})};
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-0*"));
}

TEST(HeldDevicesTest, NamesOfAnotherVersionStayApart) {  // SLC-13
  SliceInputs inputs = Inputs({Chip(0)});
  inputs.records = {Record("npu-1-vir05-0", {1}), Record("part-b", {1}), Record("part-a", {1})};
  EXPECT_THAT(Summary(BuildJudged(inputs)),
              ElementsAre("npu-0", "npu-1-vir05-0*:lost", "part-a*:lost", "part-b*:lost"));
}

// --- servers without taints ---

TEST(WithoutTaintsTest, OnlySickDevicesThatNobodyHoldsAreWithheld) {  // SLC-12
  vnpu::Chip sick = Chip(1), held = Chip(2), seen = Chip(3);
  for (vnpu::Chip* chip : {&sick, &held, &seen}) chip->health = vnpu::Health::kCritical;
  SliceInputs inputs = Inputs({Chip(0), sick, held, seen});
  inputs.server_keeps_taints = false;
  inputs.records = {Record("npu-2", {2}), Record("npu-3", {3}, /*admin_access=*/true),
                    Record("npu-9", {9})};
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-0", "npu-2*:critical", "npu-9*:lost"));
}

// --- slices ---

TEST(BuilderTest, SplitsLargePools) {  // SLC-01
  for (const auto& [devices, slices] :
       {std::pair<int, size_t>(1, 1), {64, 1}, {65, 2}, {128, 2}, {129, 3}, {1000, 16}}) {
    std::vector<vnpu::Chip> chips;
    for (int i = 0; i < devices; ++i) chips.push_back(Chip(i));
    const SlicePlan plan = BuildJudged(Inputs(chips));
    ASSERT_THAT(plan.slices, SizeIs(slices)) << devices;
    EXPECT_THAT(Devices(plan), SizeIs(devices));
    std::string last;
    for (const kube::ResourceSlice& slice : plan.slices) {
      EXPECT_EQ(slice.pool_slice_count, static_cast<int64_t>(slices));
      EXPECT_GT(slice.name, last);  // the scheduler goes by names
      last = slice.name;
      EXPECT_THAT(CheckSlice(slice), IsOk());
    }
    EXPECT_EQ(Devices(plan).back().name, absl::StrCat("npu-", devices - 1));
  }
}

TEST(BuilderTest, LeavesAnImpossibleDeviceOut) {  // SLC-02, SLC-03
  SliceInputs inputs = Inputs({Chip(0), Chip(1)});
  auto record = std::make_shared<ClaimRecord>(*Record("npu-1", {1}));
  record->devices[0].published.attributes["numa-1"] = true;
  inputs.records = {record};
  const SlicePlan plan = BuildJudged(inputs);
  EXPECT_THAT(Summary(plan), ElementsAre("npu-0"));
  EXPECT_THAT(plan.problems, ElementsAre(HasSubstr("device npu-1")));
}

TEST(BuilderTest, HostileTextsOfTheLibraryStayInsideTheirDevice) {  // SLC-03, SLC-04
  for (size_t length = 63; length <= 70; ++length) {
    vnpu::Chip chip = Chip(0);
    chip.model = std::string(length - 1, 'x') + "\xe4\xbd\xa0";
    chip.serial = "\xff\xfe";
    chip.pci_bus_id = std::string(length, '\n');
    SliceInputs inputs = Inputs({chip, Chip(1)});
    auto inventory = std::make_shared<vnpu::Inventory>(*inputs.inventory);
    for (const char* version : {"25.5.1.b030", "24.1.rc2", "25.0.05", "v1", "", "1.2.3.4", "\xff",
                                "99999999999999999999.0.0"}) {
      inventory->driver_version = version;
      inputs.inventory = inventory;
      const SlicePlan plan = BuildJudged(inputs);
      EXPECT_THAT(Summary(plan), ElementsAre("npu-0", "npu-1")) << version;
      EXPECT_THAT(plan.problems, IsEmpty());
    }
  }
}

TEST(BuilderTest, LogicIdsNeverAppear) {  // they shift when a chip drops
  SliceInputs inputs = Inputs({Chip(0), Chip(1), Chip(2)});
  const SlicePlan plan = BuildJudged(inputs);
  auto moved = std::make_shared<vnpu::Inventory>(*inputs.inventory);
  for (vnpu::Chip& chip : moved->chips) chip.logic_id += 100;
  moved->revision = 77;
  moved->agent_instance = "another";
  inputs.inventory = moved;
  const SlicePlan again = BuildJudged(inputs);
  EXPECT_EQ(kube::ToJson(plan.slices[0]), kube::ToJson(again.slices[0]));
}

TEST(BuilderTest, TheSameInputGivesTheSameSlices) {
  SliceInputs inputs = Inputs({Chip(0), Chip(1), Chip(2)});
  inputs.records = {Record("npu-1", {1}), Record("npu-9", {9})};
  const SlicePlan one = BuildJudged(inputs), two = BuildJudged(inputs);
  ASSERT_EQ(one.slices.size(), two.slices.size());
  EXPECT_EQ(kube::ToJson(one.slices[0]).dump(), kube::ToJson(two.slices[0]).dump());
}

TEST(BuilderTest, LongNodeNamesKeepSlicesApart) {
  SliceInputs inputs = Inputs({Chip(0)});
  std::string label(62, 'n');
  inputs.node_name = absl::StrCat(label, ".", label, ".", label, ".", label);
  ASSERT_EQ(inputs.node_name.size(), 251u);
  const kube::ResourceSlice one = BuildJudged(inputs).slices[0];
  inputs.node_name.back() = 'm';
  const kube::ResourceSlice two = BuildJudged(inputs).slices[0];
  EXPECT_NE(one.name, two.name);
  EXPECT_THAT(CheckSlice(one), IsOk());
  EXPECT_THAT(CheckSlice(two), IsOk());
  // A cut behind a dot must not leave an empty label.
  for (size_t length = 225; length < 245; ++length) {
    inputs.node_name =
        absl::StrCat(std::string(60, 'a'), ".", std::string(60, 'b'), ".", std::string(60, 'c'));
    while (inputs.node_name.size() < length) inputs.node_name += ".d";
    EXPECT_THAT(CheckSlice(BuildJudged(inputs).slices[0]), IsOk()) << length;
  }
}

TEST(BuilderTest, AnAtlas800TA2) {
  std::vector<vnpu::Chip> chips;
  for (int i = 0; i < 8; ++i) {
    vnpu::Chip chip = Chip(i);
    chip.logic_id = 7 - i;
    chip.board_id = 50;
    chip.uuid = absl::StrCat("B1FBEAD0-90B866D8-2C8DFDFC-6331D7CF-34BC9C2", i);
    chip.serial = absl::StrCat("210235658105902", i);
    chip.pci_bus_id = absl::StrCat("0000:c", i, ":00.0");
    chip.pcie_root = absl::StrCat("pci0000:c", i);
    chip.numa_node = i / 2;
    chip.aicpu_count = 7;
    chip.hccs_group = "hccs-0";
    chip.roce_address = absl::StrCat("10.52.33.", 10 + i);
    chips.push_back(chip);
  }
  chips[5].health = vnpu::Health::kCritical;
  SliceInputs inputs = Inputs(chips);
  auto inventory = std::make_shared<vnpu::Inventory>(*inputs.inventory);
  inventory->driver_version = "25.5.1.b030";
  inventory->firmware_version = "7.8.0.5.216";
  inputs.inventory = inventory;
  const SlicePlan plan = BuildJudged(inputs);
  ASSERT_THAT(plan.slices, SizeIs(1));
  const nlohmann::json slice = kube::ToJson(plan.slices[0]);
  EXPECT_EQ(slice["metadata"], nlohmann::json::parse(R"({
    "name": "00000-npu.huawei.com-node-1",
    "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "node-uid",
                         "controller": true}]})"));
  EXPECT_EQ(slice["spec"]["driver"], "npu.huawei.com");
  EXPECT_EQ(slice["spec"]["nodeName"], "node-1");
  EXPECT_EQ(
      slice["spec"]["pool"],
      nlohmann::json::parse(R"({"name": "node-1", "generation": 0, "resourceSliceCount": 1})"));
  ASSERT_THAT(slice["spec"]["devices"], SizeIs(8));
  EXPECT_EQ(slice["spec"]["devices"][5], nlohmann::json::parse(R"({
    "name": "npu-5",
    "attributes": {
      "type": {"string": "npu"},
      "family": {"string": "910B"},
      "model": {"string": "910B3"},
      "uuid": {"string": "B1FBEAD0-90B866D8-2C8DFDFC-6331D7CF-34BC9C25"},
      "serial": {"string": "2102356581059025"},
      "physicalID": {"int": 5},
      "cardID": {"int": 5},
      "boardID": {"int": 50},
      "hccsGroup": {"string": "hccs-0"},
      "driverVersion": {"version": "25.5.1-b030"},
      "driverVersionString": {"string": "25.5.1.b030"},
      "firmwareVersion": {"string": "7.8.0.5.216"},
      "resource.kubernetes.io/numaNode": {"int": 2},
      "resource.kubernetes.io/pcieRoot": {"string": "pci0000:c5"},
      "resource.kubernetes.io/pciBusID": {"string": "0000:c5:00.0"}
    },
    "capacity": {
      "memory": {"value": "64Gi"}, "aicore": {"value": "20"}, "aicpu": {"value": "7"}
    },
    "taints": [{"key": "npu.huawei.com/unhealthy", "value": "critical", "effect": "NoSchedule",
                "timeAdded": "2026-09-21T14:13:20Z"}]
  })"));
  EXPECT_FALSE(slice["spec"]["devices"][4].contains("taints"));
}

// REC-03: chips that an unreadable record may hold are kept from new pods.
TEST(BuilderTest, QuarantinedChipsAreWithheld) {
  SliceInputs inputs = Inputs({Chip(0), Chip(1), Chip(2), Chip(3)});
  inputs.records = {Record("npu-1", {1})};
  inputs.quarantined_chips = {1, 2};
  EXPECT_THAT(Summary(BuildJudged(inputs)),
              ElementsAre("npu-0", "npu-1*", "npu-2:withheld", "npu-3"));
  inputs.withhold_free = "withheld";
  EXPECT_THAT(Summary(BuildJudged(inputs)),
              ElementsAre("npu-0:withheld", "npu-1*", "npu-2:withheld", "npu-3:withheld"));
  inputs.server_keeps_taints = false;
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-1*"));
}

// SLC-06: no capacity is invented, and no pod is sent there until it is known.
TEST(BuilderTest, AChipThatDoesNotTellItsMemoryIsKeptFromPods) {
  std::vector<vnpu::Chip> chips = {Chip(0), Chip(1)};
  chips[1].memory_mib = 0;
  const SlicePlan plan = BuildJudged(Inputs(chips));
  EXPECT_THAT(Summary(plan), ElementsAre("npu-0", "npu-1:unknown"));
  EXPECT_EQ(Devices(plan)[0].capacity.count("memory"), 1u);
  EXPECT_EQ(Devices(plan)[1].capacity.count("memory"), 0u);
  chips[1].memory_mib = 65536;
  EXPECT_THAT(Summary(BuildJudged(Inputs(chips))), ElementsAre("npu-0", "npu-1"));
}

// REG-15: no untainted device while the classic device plugin hands out the same chips.
TEST(BuilderTest, WithTheDevicePluginNothingFreeIsOffered) {
  SliceInputs inputs = Inputs({Chip(0), Chip(1)});
  inputs.records = {Record("npu-1", {1})};
  inputs.withhold_free = "device-plugin";
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-0:device-plugin", "npu-1*"));
  inputs.withhold_free.clear();
  EXPECT_THAT(Summary(BuildJudged(inputs)), ElementsAre("npu-0", "npu-1*"));
}

}  // namespace
}  // namespace ascend::kubeletplugin
