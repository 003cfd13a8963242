// Slices of nodes whose chips are divided.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/slice_device.h"
#include "kubeletplugin/slices/builder.h"
#include "kubeletplugin/slices/limits.h"
#include "kubeletplugin/testing/judged.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

struct Kind {
  vnpu::Family family;
  const char* model;
  uint32_t board;
  int aicore;
  int64_t memory;
};
constexpr Kind k910B4 = {vnpu::Family::k910B, "910B4", 0x33, 20, 32768};
constexpr Kind k910A = {vnpu::Family::k910A, "910ProA", 2, 32, 32768};
constexpr Kind k310P = {vnpu::Family::k310P, "310P3", 0x1e, 8, 24576};
constexpr Kind kA3 = {vnpu::Family::kA3, "Ascend910_9392", 0xb1, 24, 65536};

std::shared_ptr<vnpu::Inventory> Node(const Kind& kind, int count) {
  auto inventory = std::make_shared<vnpu::Inventory>();
  inventory->library = vnpu::LibraryState::kReady;
  inventory->vnpu_recovery = false;
  inventory->vdevice_mode = vnpu::VdeviceMode::kContainer;
  for (int id = 0; id < count; ++id) {
    vnpu::Chip& chip = inventory->chips.emplace_back();
    chip.physical_id = chip.logic_id = chip.node_number = chip.card_id = id;
    chip.device_id = 0;
    chip.family = kind.family;
    chip.model = kind.model;
    chip.board_id = kind.board;
    chip.uuid = absl::StrCat("UUID-", id);
    chip.aicore_count = kind.aicore;
    chip.memory_mib = kind.memory;
    chip.health = vnpu::Health::kOk;
    chip.partitioning.emplace();
  }
  return inventory;
}

SliceInputs Inputs(std::shared_ptr<vnpu::Inventory> inventory, VnpuMode mode = VnpuMode::kDynamic) {
  SliceInputs inputs;
  inputs.driver = "npu.huawei.com";
  inputs.node_name = "node-1";
  inputs.node_uid = "uid";
  inputs.inventory = std::move(inventory);
  inputs.devices.vnpu_mode = mode;
  return inputs;
}

std::vector<kube::SliceDevice> Devices(const SlicePlan& plan) {
  std::vector<kube::SliceDevice> devices;
  for (const auto& slice : plan.slices) {
    devices.insert(devices.end(), slice.devices.begin(), slice.devices.end());
  }
  return devices;
}

// "npu-0", "npu-0:divided" with a taint.
std::vector<std::string> Names(const SlicePlan& plan) {
  std::vector<std::string> names;
  for (const kube::SliceDevice& device : Devices(plan)) {
    std::string name = device.name;
    for (const auto& taint : device.taints) absl::StrAppend(&name, ":", taint.value);
    names.push_back(name);
  }
  return names;
}

std::string Counter(const SlicePlan& plan, const std::string& set, const std::string& counter) {
  for (const auto& slice : plan.slices) {
    for (const kube::CounterSet& candidate : slice.shared_counters) {
      if (candidate.name != set) continue;
      const auto found = candidate.counters.find(counter);
      return found == candidate.counters.end() ? "no counter" : found->second;
    }
  }
  return "no set";
}

const kube::SliceDevice* Find(const SlicePlan& plan, const std::string& name) {
  for (const auto& slice : plan.slices) {
    for (const kube::SliceDevice& device : slice.devices) {
      if (device.name == name) return &device;
    }
  }
  return nullptr;
}

// A claim that was given `name` while the node was published as `inputs` says.
std::shared_ptr<const ClaimRecord> Holder(const SliceInputs& inputs, const std::string& name) {
  auto record = std::make_shared<ClaimRecord>();
  record->claim_uid = "uid-of-" + name;
  record->claim_namespace = "default";
  record->claim_name = "job";
  const auto device = FindDevice(*inputs.inventory, inputs.devices, name);
  EXPECT_TRUE(device.has_value()) << name;
  if (!device) return record;
  RecordedDevice& recorded = record->devices.emplace_back();
  recorded.device = name;
  for (const vnpu::Chip* chip : device->chips) {
    recorded.chips.push_back({.physical_id = chip->physical_id});
  }
  if (device->partition) {
    recorded.vnpu = RecordedVnpu{.template_name = device->partition->kind.name,
                                 .index = device->partition->index,
                                 .id = 100};
  }
  recorded.published = ToSliceDevice(*device, *inputs.inventory);
  return record;
}

vnpu::Vnpu Foreign(int id, const std::string& template_name) {
  vnpu::Vnpu vnpu;
  vnpu.id = id;
  vnpu.template_name = template_name;
  return vnpu;
}

void ExpectPublishable(const SlicePlan& plan) {
  EXPECT_THAT(plan.problems, IsEmpty());
  std::set<std::string> sets, names, chips_seen;
  for (const auto& slice : plan.slices) {
    EXPECT_THAT(CheckSlice(slice), IsOk());
    EXPECT_EQ(slice.pool_slice_count, static_cast<int64_t>(plan.slices.size()));
    for (const auto& set : slice.shared_counters) EXPECT_TRUE(sets.insert(set.name).second);
    std::set<std::string> chips;
    for (const auto& device : slice.devices) {
      EXPECT_TRUE(names.insert(device.name).second) << device.name;
      for (const int id : PhysicalIdsOf(device.name)) chips.insert(absl::StrCat(id));
      for (const auto& used : device.consumes_counters) {
        EXPECT_EQ(sets.count(used.name), 1u) << device.name << ": counter sets come first";
      }
    }
    for (const std::string& chip : chips) {
      EXPECT_TRUE(chips_seen.insert(chip).second) << "chip " << chip << " is in two slices";
    }
  }
}

TEST(PartitionSlicesTest, CountersAndParts) {
  const SlicePlan plan = BuildJudged(Inputs(Node(k910B4, 2)));
  ExpectPublishable(plan);
  EXPECT_THAT(plan.warnings, IsEmpty());
  EXPECT_EQ(Counter(plan, "npu-1", "aicore"), "20");
  EXPECT_EQ(Counter(plan, "npu-1", "memory"), "28Gi");
  EXPECT_EQ(Counter(plan, "npu-1", "vnpus"), "16");
  const std::vector<std::string> names = Names(plan);
  EXPECT_EQ(names.front(), "npu-0");
  EXPECT_EQ(names.at(1), "npu-0-vir05-1c-8g-0") << "small parts first: they pack together";
  EXPECT_THAT(names, Contains("npu-1-vir10-4c-16g-m-0"));

  const kube::SliceDevice* whole = Find(plan, "npu-1");
  ASSERT_NE(whole, nullptr);
  ASSERT_THAT(whole->consumes_counters, SizeIs(1));
  EXPECT_EQ(whole->consumes_counters[0].name, "npu-1");
  EXPECT_EQ(whole->consumes_counters[0].counters.at("aicore"), "20");
  EXPECT_EQ(whole->attributes.at("type"), kube::AttributeValue(std::string("npu")));

  const kube::SliceDevice* part = Find(plan, "npu-1-vir05-1c-8g-3");
  ASSERT_NE(part, nullptr);
  EXPECT_EQ(part->attributes.at("type"), kube::AttributeValue(std::string("vnpu")));
  EXPECT_EQ(part->attributes.at("template"), kube::AttributeValue(std::string("vir05_1c_8g")));
  EXPECT_EQ(part->attributes.at("parentUUID"), kube::AttributeValue(std::string("UUID-1")));
  EXPECT_EQ(part->attributes.count("uuid"), 0u);
  EXPECT_EQ(part->capacity.at("aicore"), "5");
  EXPECT_EQ(part->capacity.at("memory"), "7Gi");
  EXPECT_EQ(part->consumes_counters.at(0).counters.at("aicore"), "5");
}

TEST(PartitionSlicesTest, WithinTheLimitsOfTheLargestNodes) {
  for (const Kind& kind : {k910A, k310P, k910B4}) {
    const SlicePlan plan = BuildJudged(Inputs(Node(kind, 16)));
    ExpectPublishable(plan);
    EXPECT_THAT(plan.warnings, IsEmpty()) << kind.model;
    EXPECT_THAT(plan.slices.front().shared_counters, SizeIs(8));
  }
  EXPECT_THAT(Devices(BuildJudged(Inputs(Node(k910A, 16)))), SizeIs(16 * 31));
}

// Counters halve the speed of the scheduler: only where they are needed.
TEST(PartitionSlicesTest, OffHasNoCounters) {
  const SlicePlan plan = BuildJudged(Inputs(Node(k910B4, 2), VnpuMode::kOff));
  EXPECT_THAT(Names(plan), ElementsAre("npu-0", "npu-1"));
  EXPECT_THAT(plan.slices, SizeIs(1));
  EXPECT_THAT(Devices(plan)[0].consumes_counters, IsEmpty());
}

// VNP-08: claims come and go, slices stay.
TEST(PartitionSlicesTest, AHeldDeviceChangesNothing) {
  SliceInputs inputs = Inputs(Node(k310P, 4));
  const SlicePlan before = BuildJudged(inputs);
  inputs.records = {Holder(inputs, "npu-0-vir01-1"), Holder(inputs, "npu-0-vir04-3"),
                    Holder(inputs, "npu-2")};
  const SlicePlan after = BuildJudged(inputs);
  ASSERT_EQ(after.slices.size(), before.slices.size());
  for (size_t i = 0; i < before.slices.size(); ++i) {
    EXPECT_EQ(after.slices[i].devices, before.slices[i].devices);
    EXPECT_EQ(after.slices[i].shared_counters, before.slices[i].shared_counters);
  }
}

TEST(PartitionSlicesTest, OnlyTheTemplatesOnOffer) {
  SliceInputs inputs = Inputs(Node(k910B4, 1));
  inputs.devices.vnpu_templates = {"vir10_3c_16g"};
  EXPECT_THAT(Names(BuildJudged(inputs)),
              ElementsAre("npu-0", "npu-0-vir10-3c-16g-0", "npu-0-vir10-3c-16g-1"));
  // One that is held stays, at its cost.
  const SliceInputs all = Inputs(inputs.inventory == nullptr ? nullptr : Node(k910B4, 1));
  inputs.records = {Holder(all, "npu-0-vir05-1c-8g-2")};
  const SlicePlan plan = BuildJudged(inputs);
  ExpectPublishable(plan);
  EXPECT_THAT(Names(plan), ElementsAre("npu-0", "npu-0-vir10-3c-16g-0", "npu-0-vir10-3c-16g-1",
                                       "npu-0-vir05-1c-8g-2:withdrawn"));
  EXPECT_EQ(Counter(plan, "npu-0", "aicore"), "20");

  inputs.devices.vnpu_templates = {"vir01"};  // of another product
  inputs.records.clear();
  const SlicePlan none = BuildJudged(inputs);
  EXPECT_THAT(Names(none), ElementsAre("npu-0"));
  EXPECT_THAT(none.warnings, ElementsAre(HasSubstr("none of the templates in vnpuTemplates")));
}

// VNP-04, VNP-11
TEST(PartitionSlicesTest, ForeignOnesAreTakenOffTheCounters) {
  SliceInputs inputs = Inputs(Node(k910B4, 2));
  inputs.foreign_vnpus[0] = {Foreign(105, "vir10_3c_16g")};
  SlicePlan plan = BuildJudged(inputs);
  ExpectPublishable(plan);
  EXPECT_EQ(Counter(plan, "npu-0", "aicore"), "10");
  EXPECT_EQ(Counter(plan, "npu-0", "memory"), "14Gi");
  EXPECT_EQ(Counter(plan, "npu-1", "aicore"), "20");
  EXPECT_EQ(Names(plan).front(), "npu-0:divided");
  EXPECT_THAT(Names(plan), Contains("npu-0-vir05-1c-8g-0"));
  EXPECT_THAT(Names(plan), Contains("npu-1"));
  inputs.server_keeps_taints = false;
  EXPECT_THAT(Names(BuildJudged(inputs)), Not(Contains(HasSubstr("npu-0:divided"))));
  inputs.server_keeps_taints = true;

  // SLC-13: never below what claims hold, else the scheduler takes the whole pool for invalid.
  inputs.records = {Holder(inputs, "npu-0-vir05-1c-8g-0"), Holder(inputs, "npu-0-vir05-1c-8g-1"),
                    Holder(inputs, "npu-0-vir05-1c-8g-2")};
  EXPECT_EQ(Counter(BuildJudged(inputs), "npu-0", "aicore"), "15");
  inputs.records = {Holder(inputs, "npu-0")};
  plan = BuildJudged(inputs);
  EXPECT_EQ(Counter(plan, "npu-0", "aicore"), "20");
  EXPECT_EQ(Names(plan).front(), "npu-0") << "held: it stays as it is";

  // Without counters, too.
  SliceInputs off = Inputs(Node(k910B4, 2), VnpuMode::kOff);
  off.foreign_vnpus[1] = {Foreign(116, "vir05_1c_8g")};
  EXPECT_THAT(Names(BuildJudged(off)), ElementsAre("npu-0", "npu-1:divided"));
}

// SLC-13: less than what is allocated stops the whole pool.
TEST(PartitionSlicesTest, CountersCoverWhatIsAllocatedWithoutARecord) {
  SliceInputs inputs = Inputs(Node(k910B4, 1));
  inputs.foreign_vnpus[0] = {Foreign(105, "vir10_3c_16g")};
  EXPECT_EQ(Counter(BuildJudged(inputs), "npu-0", "aicore"), "10");
  inputs.pending = {Holder(inputs, "npu-0")->devices[0].published};
  EXPECT_EQ(Counter(BuildJudged(inputs), "npu-0", "aicore"), "20");
  inputs.pending.clear();
  inputs.quarantined_chips = {0};  // the vNPU may be that claim's
  EXPECT_EQ(Counter(BuildJudged(inputs), "npu-0", "aicore"), "20");
  EXPECT_THAT(Names(BuildJudged(inputs)), Each(HasSubstr(":withheld")));
}

TEST(PartitionSlicesTest, WhatNobodyTellsIsNotOffered) {
  auto node = Node(k910B4, 2);
  node->chips[1].partitioning.reset();
  node->chips[1].partitioning_error = "time-out";
  const SliceInputs inputs = Inputs(node);
  const std::vector<std::string> names = Names(BuildJudged(inputs));
  EXPECT_THAT(names, Contains("npu-0"));
  EXPECT_THAT(names, Contains("npu-1:unknown"));
  EXPECT_THAT(names, Contains("npu-1-vir05-1c-8g-0:unknown"));
  EXPECT_THAT(Names(BuildJudged(Inputs(node, VnpuMode::kOff))), ElementsAre("npu-0", "npu-1"));
}

TEST(PartitionSlicesTest, AChangedModeWaitsForTheClaims) {
  const SliceInputs dynamic = Inputs(Node(k910B4, 2));
  const SliceInputs off = Inputs(Node(k910B4, 2), VnpuMode::kOff);
  // Dynamic to off: what is held stays, at its cost, and the rest of the chip is not offered.
  SliceInputs inputs = off;
  inputs.records = {Holder(dynamic, "npu-0-vir05-1c-8g-2"), Holder(dynamic, "npu-1")};
  SlicePlan plan = BuildJudged(inputs);
  ExpectPublishable(plan);
  EXPECT_THAT(Names(plan), ElementsAre("npu-0-vir05-1c-8g-2:withdrawn", "npu-1"));
  EXPECT_THAT(plan.warnings,
              ElementsAre(HasSubstr("chip 0 is not offered as configured: claim default/job has "
                                    "npu-0-vir05-1c-8g-2 of it"),
                          HasSubstr("chip 1 is not offered as configured")));
  EXPECT_EQ(Counter(plan, "npu-0", "aicore"), "5");
  EXPECT_EQ(Counter(plan, "npu-1", "aicore"), "20");
  // Off to dynamic: the whole chip costs nothing of the counters, so no part may be offered.
  inputs = dynamic;
  inputs.records = {Holder(off, "npu-0")};
  plan = BuildJudged(inputs);
  ExpectPublishable(plan);
  EXPECT_THAT(Names(plan), Not(Contains(HasSubstr("npu-0-"))));
  EXPECT_THAT(Names(plan), Contains("npu-0"));
  EXPECT_THAT(Names(plan), Contains("npu-1-vir05-1c-8g-0"));
  EXPECT_EQ(Counter(plan, "npu-0", "aicore"), "no set");
  inputs.records.clear();
  EXPECT_THAT(Names(BuildJudged(inputs)), Contains("npu-0-vir05-1c-8g-0"));
}

TEST(PartitionSlicesTest, AChangedCatalogCheapensNothing) {
  const SliceInputs before = Inputs(Node(k910B4, 1));
  SliceInputs inputs = before;
  const auto catalog = vnpu::Catalog::WithOverrides(
      "- product: site\n  family: 910B\n  boards: [0x33]\n"
      "  budget: {aicore: 20, aicpu: 7, memory: 28672}\n"
      "  templates: [{name: vir05_1c_8g, aicore: 4, aicpu: 1, memory: 7168}]\n");
  ASSERT_THAT(catalog, IsOk());
  inputs.devices.catalog = std::make_shared<const vnpu::Catalog>(*catalog);
  EXPECT_THAT(Names(BuildJudged(inputs)), Contains("npu-0-vir05-1c-8g-3"));
  inputs.records = {Holder(before, "npu-0-vir05-1c-8g-2")};
  const SlicePlan plan = BuildJudged(inputs);
  EXPECT_THAT(Names(plan), ElementsAre("npu-0-vir05-1c-8g-2"));
  EXPECT_EQ(Counter(plan, "npu-0", "aicore"), "5");
}

TEST(PartitionSlicesTest, AChipThatIsGoneKeepsItsAccount) {
  const SliceInputs before = Inputs(Node(k910B4, 2));
  SliceInputs inputs = Inputs(Node(k910B4, 1));
  inputs.records = {Holder(before, "npu-1-vir05-1c-8g-2")};
  vnpu::HealthPolicy policy(vnpu::FaultTable::BuiltIn(), "boot");
  policy.Update(before.inventory.get(), /*agent_known=*/true, absl::UnixEpoch());
  policy.Update(inputs.inventory.get(), /*agent_known=*/true, absl::UnixEpoch());
  inputs.health = std::make_shared<const ChipVerdicts>(policy.verdicts());
  const SlicePlan plan = BuildJudged(inputs);
  ExpectPublishable(plan);
  EXPECT_THAT(Names(plan), Contains("npu-1-vir05-1c-8g-2:lost"));
  EXPECT_EQ(Counter(plan, "npu-1", "aicore"), "5");
}

TEST(PartitionSlicesTest, StaticOffersWhatThereIs) {
  auto inventory = Node(k910B4, 3);
  inventory->chips[1].partitioning->vnpus = {Foreign(116, "vir05_1c_8g"),
                                             Foreign(118, "vir10_3c_16g"), Foreign(119, "")};
  SliceInputs inputs = Inputs(inventory, VnpuMode::kStatic);
  SlicePlan plan = BuildJudged(inputs);
  ExpectPublishable(plan);
  EXPECT_THAT(Names(plan), ElementsAre("npu-0", "npu-1:divided", "npu-1-vir05-1c-8g-0",
                                       "npu-1-vir10-3c-16g-2", "npu-2"));
  EXPECT_THAT(plan.warnings, ElementsAre(HasSubstr("vNPU 119 of chip 1 is not offered")));
  EXPECT_EQ(Counter(plan, "npu-1", "aicore"), "no set");
  EXPECT_EQ(Find(plan, "npu-1-vir10-3c-16g-2")->capacity.at("memory"), "14Gi");

  inputs.records = {Holder(inputs, "npu-1-vir05-1c-8g-0")};
  auto changed = std::make_shared<vnpu::Inventory>(*inventory);
  changed->chips[1].partitioning->vnpus.clear();
  inputs.inventory = changed;
  EXPECT_THAT(Names(BuildJudged(inputs)),
              ElementsAre("npu-0", "npu-1-vir05-1c-8g-0:withdrawn", "npu-2"))
      << "the chip is not free as long as the claim has its part";
  inputs.records = {Holder(Inputs(Node(k910B4, 3), VnpuMode::kStatic), "npu-1")};
  inputs.inventory = inventory;
  EXPECT_THAT(Names(BuildJudged(inputs)), ElementsAre("npu-0", "npu-1", "npu-2"))
      << "parts of a chip that is held whole are not offered";
}

TEST(PartitionSlicesTest, WholeChipsWhereDivisionIsImpossible) {
  const auto expect_whole = [](const SliceInputs& inputs, const char* reason) {
    const SlicePlan plan = BuildJudged(inputs);
    EXPECT_THAT(Names(plan), ElementsAre("npu-0", "npu-1")) << reason;
    EXPECT_THAT(plan.warnings, AllOf(Not(IsEmpty()), Each(HasSubstr(reason))));
    EXPECT_THAT(Devices(plan)[0].consumes_counters, IsEmpty());
  };
  Kind unknown_board = k910B4;
  unknown_board.board = 0x77;
  expect_whole(Inputs(Node(unknown_board, 2)), "with board 0x77");
  expect_whole(Inputs(Node({vnpu::Family::k310, "310", 0, 2, 8192}, 2)), "no templates are known");
  auto node = Node(k910B4, 2);
  node->vnpu_recovery = true;
  expect_whole(Inputs(node), "vNPU recovery is on");
  node = Node(k910B4, 2);
  node->vdevice_mode = vnpu::VdeviceMode::kVm;
  expect_whole(Inputs(node), "vNPU mode is VM");
  node = Node(k910B4, 2);
  for (vnpu::Chip& chip : node->chips) chip.partitioning.reset();
  expect_whole(Inputs(node), "the driver has no vNPUs");
  SliceInputs old_server = Inputs(Node(k910B4, 2));
  old_server.server_keeps_counters = false;
  expect_whole(old_server, "DRAPartitionableDevices");
  // The cores that the chip reports are not the product's: the table is another chip's.
  node = Node(k910B4, 2);
  for (vnpu::Chip& chip : node->chips) {
    chip.partitioning->total[vnpu::Resource::kAicore] = 24;
  }
  expect_whole(Inputs(node), "reports 24 AI cores");
}

TEST(PartitionSlicesTest, DiesOfAnA3) {
  auto node = Node(kA3, 4);
  node->multi_die_policy = vnpu::MultiDiePolicy::kIndependent;
  SliceInputs inputs = Inputs(node);
  SlicePlan plan = BuildJudged(inputs);
  EXPECT_THAT(Names(plan), ElementsAre("npu-0", "npu-1", "npu-2", "npu-3"));
  EXPECT_THAT(plan.warnings, ElementsAre(HasSubstr("unless vnpuOnA3 is set")));

  // A module is one device over the counters of both dies.
  inputs.devices.vnpus_on_a3 = true;
  inputs.devices.a3_unit = A3Unit::kModule;
  plan = BuildJudged(inputs);
  ExpectPublishable(plan);
  EXPECT_THAT(plan.warnings, IsEmpty());
  const kube::SliceDevice* module = Find(plan, "npu-2-3");
  ASSERT_NE(module, nullptr);
  ASSERT_THAT(module->consumes_counters, SizeIs(2));
  EXPECT_EQ(module->consumes_counters[0].name, "npu-2");
  EXPECT_EQ(module->consumes_counters[1].name, "npu-3");
  EXPECT_EQ(Find(plan, "npu-2"), nullptr);
  EXPECT_NE(Find(plan, "npu-3-vir06-1c-16g-0"), nullptr);
  inputs.devices.a3_unit = A3Unit::kPolicy;
  EXPECT_NE(Find(BuildJudged(inputs), "npu-2"), nullptr);

  // Under the policy union a die alone is useless.
  node = Node(kA3, 4);
  node->multi_die_policy = vnpu::MultiDiePolicy::kUnion;
  for (vnpu::Chip& chip : node->chips) chip.module_peer_physical_id = chip.physical_id ^ 1;
  inputs.inventory = node;
  inputs.devices.a3_unit = A3Unit::kDie;
  plan = BuildJudged(inputs);
  EXPECT_THAT(Names(plan), ElementsAre("npu-0-1", "npu-2-3"));
  EXPECT_THAT(plan.warnings, ElementsAre(HasSubstr("a3Unit is die"), HasSubstr("in pairs")));
}

TEST(PartitionSlicesTest, SickChipsTaintTheirParts) {
  auto node = Node(k910B4, 2);
  node->chips[0].health = vnpu::Health::kCritical;
  node->chips[1].stuck = "dcmi_set_destroy_vdevice has not returned for 20 s";
  SliceInputs inputs = Inputs(node);
  inputs.devices.vnpu_templates = {"vir10_3c_16g"};
  EXPECT_THAT(Names(BuildJudged(inputs)),
              ElementsAre("npu-0:critical", "npu-0-vir10-3c-16g-0:critical",
                          "npu-0-vir10-3c-16g-1:critical", "npu-1:stuck",
                          "npu-1-vir10-3c-16g-0:stuck", "npu-1-vir10-3c-16g-1:stuck"));
}

}  // namespace
}  // namespace ascend::kubeletplugin
