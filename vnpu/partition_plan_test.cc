#include "vnpu/partition_plan.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::vnpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const Product& BuiltIn(const std::string& name) {
  for (const Product& product : Catalog::BuiltIn().products()) {
    if (product.name == name) return product;
  }
  ADD_FAILURE() << "no product " << name;
  static const Product none;
  return none;
}

PartitionPlan PlanOf(const std::string& name) {
  return PlanPartitions(BuiltIn(name), BuiltIn(name).budget, std::nullopt);
}

// "vir01/0" ...: every partition of the plan in its order.
std::vector<std::string> Names(const PartitionPlan& plan) {
  std::vector<std::string> names;
  for (const PartitionDevice& device : plan.devices) {
    names.push_back(absl::StrCat(device.template_name, "/", device.index));
  }
  return names;
}

const PartitionDevice& Device(const PartitionPlan& plan, const std::string& name, int index) {
  for (const PartitionDevice& device : plan.devices) {
    if (device.template_name == name && device.index == index) return device;
  }
  ADD_FAILURE() << "no device " << name << "/" << index;
  static const PartitionDevice none;
  return none;
}

TEST(PlanPartitions, CountsTheBudgetAndTheSlots) {
  EXPECT_THAT(
      PlanOf("910B-bin2").counters,
      ElementsAre(Pair("aicore", 20), Pair("aicpu", 7), Pair("jpegd", 24), Pair("jpege", 4),
                  Pair("memory", 28672), Pair("vdec", 2), Pair("vnpus", 16), Pair("vpc", 9)));
  EXPECT_THAT(PlanOf("910A-32g").counters,
              ElementsAre(Pair("aicore", 32), Pair("memory", 32768), Pair("vnpus", 16)));
}

TEST(PlanPartitions, OffersAsManyOfATemplateAsFitAlone) {
  const PartitionPlan plan = PlanOf("910B-bin2");
  EXPECT_THAT(Names(plan), ElementsAre("vir05_1c_8g/0", "vir05_1c_8g/1", "vir05_1c_8g/2",
                                       "vir05_1c_8g/3", "vir10_3c_16g_nm/0", "vir10_3c_16g_nm/1",
                                       "vir10_3c_16g/0", "vir10_3c_16g/1", "vir10_4c_16g_m/0"));
  for (const PartitionDevice& device : plan.devices) EXPECT_THAT(device.vgroups, IsEmpty());
  EXPECT_THAT(Device(plan, "vir05_1c_8g", 3).consumes,
              ElementsAre(Pair("aicore", 5), Pair("aicpu", 1), Pair("jpegd", 6), Pair("jpege", 1),
                          Pair("memory", 7168), Pair("vnpus", 1), Pair("vpc", 2)));
  // What the budget does not limit is not counted, though the template has it.
  EXPECT_THAT(Device(PlanOf("910A-32g"), "vir16", 1).consumes,
              ElementsAre(Pair("aicore", 16), Pair("memory", 16384), Pair("vnpus", 1)));
}

TEST(PlanPartitions, FollowsTheBudgetOfTheChip) {
  const Product& product = BuiltIn("910B-bin1");
  Amounts budget = product.budget;
  budget[Resource::kAicpu] = 3;
  PartitionPlan plan = PlanPartitions(product, budget, std::nullopt);
  EXPECT_EQ(plan.counters["aicpu"], 3);
  EXPECT_THAT(Names(plan),
              ElementsAre("vir05_1c_16g/0", "vir05_1c_16g/1", "vir05_1c_16g/2", "vir10_3c_32g/0"));
  budget[Resource::kAicore] = 4;
  EXPECT_THAT(Names(PlanPartitions(product, budget, std::nullopt)), IsEmpty());
  Product few = product;
  few.max_vnpus = 1;
  plan = PlanPartitions(few, product.budget, std::nullopt);
  EXPECT_EQ(plan.counters["vnpus"], 1);
  EXPECT_THAT(Names(plan), ElementsAre("vir05_1c_16g/0", "vir10_3c_32g/0"));
}

TEST(PlanPartitions, OffersOnlyWhatIsWanted) {
  const Product& product = BuiltIn("910B-bin2");
  const PartitionPlan all = PlanPartitions(product, product.budget, std::nullopt);
  const PartitionPlan some =
      PlanPartitions(product, product.budget, {{"vir10_3c_16g", "no_such_template"}});
  EXPECT_EQ(some.counters, all.counters);
  EXPECT_THAT(Names(some), ElementsAre("vir10_3c_16g/0", "vir10_3c_16g/1"));
  EXPECT_EQ(some.devices[1].consumes, Device(all, "vir10_3c_16g", 1).consumes);
  EXPECT_THAT(Names(PlanPartitions(product, product.budget, std::set<std::string>())), IsEmpty());
}

TEST(PlanPartitions, GivesEveryPlaceInTheVGroupsADevice) {
  const PartitionPlan plan = PlanOf("310P-24g");
  EXPECT_THAT(plan.counters,
              ElementsAre(Pair("aicore", 8), Pair("aicpu", 7), Pair("jpegd", 16), Pair("jpege", 8),
                          Pair("memory", 24576), Pair("vdec", 12), Pair("venc", 3),
                          Pair("vgroup-0", 2), Pair("vgroup-1", 2), Pair("vgroup-2", 2),
                          Pair("vgroup-3", 2), Pair("vnpus", 16), Pair("vpc", 12)));
  const auto vgroups = [&plan](const std::string& name) {
    std::vector<std::vector<int>> result;
    for (const PartitionDevice& device : plan.devices) {
      if (device.template_name == name) result.push_back(device.vgroups);
    }
    return result;
  };
  const std::vector<std::vector<int>> halves = {{0}, {0}, {1}, {1}, {2}, {2}, {3}, {3}};
  const std::vector<std::vector<int>> singles = {{0}, {1}, {2}, {3}};
  const std::vector<std::vector<int>> pairs = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  EXPECT_EQ(vgroups("vir01"), halves);
  for (const char* name : {"vir02", "vir02_1c"}) EXPECT_EQ(vgroups(name), singles) << name;
  for (const char* name : {"vir04", "vir04_3c", "vir04_3c_ndvpp", "vir04_4c_dvpp"}) {
    EXPECT_EQ(vgroups(name), pairs) << name;
  }
  EXPECT_EQ(plan.devices.size(), 8U + 2 * 4 + 4 * 6);
  EXPECT_THAT(Device(plan, "vir01", 5).consumes,
              ElementsAre(Pair("aicore", 1), Pair("aicpu", 1), Pair("jpegd", 2), Pair("jpege", 1),
                          Pair("memory", 3072), Pair("vdec", 1), Pair("vgroup-2", 1),
                          Pair("vnpus", 1), Pair("vpc", 1)));
  EXPECT_THAT(Device(plan, "vir04_3c_ndvpp", 3).consumes,
              ElementsAre(Pair("aicore", 4), Pair("aicpu", 3), Pair("memory", 12288),
                          Pair("vgroup-1", 2), Pair("vgroup-2", 2), Pair("vnpus", 1)));
}

// A partition that does not fill its groups has them for itself.
TEST(PlanPartitions, CountsVGroupsWholeForOddSizes) {
  Product product = BuiltIn("310P-24g");
  product.templates = {{"vir03", {}, 0}, {"vir08", {}, 0}};
  product.templates[0].amounts[Resource::kAicore] = 3;
  product.templates[1].amounts[Resource::kAicore] = 8;
  const PartitionPlan plan = PlanPartitions(product, product.budget, std::nullopt);
  EXPECT_EQ(plan.devices.size(), 6U + 1);
  EXPECT_THAT(
      Device(plan, "vir03", 0).consumes,
      ElementsAre(Pair("aicore", 3), Pair("vgroup-0", 2), Pair("vgroup-1", 2), Pair("vnpus", 1)));
  EXPECT_THAT(Device(plan, "vir08", 0).vgroups, ElementsAre(0, 1, 2, 3));
}

TEST(PlanPartitions, StaysWithinTheLimitsOfTheApi) {
  for (const Product& product : Catalog::BuiltIn().products()) {
    Amounts most = product.budget;
    for (const Resource resource : product.uncertain) most[resource] = 1000;
    const PartitionPlan plan = PlanPartitions(product, most, std::nullopt);
    EXPECT_LE(plan.devices.size(), 63U) << product.name;  // and the whole chip
    EXPECT_LE(plan.counters.size(), 32U) << product.name;
    std::set<std::string> names;
    for (const PartitionDevice& device : plan.devices) {
      EXPECT_TRUE(names.insert(absl::StrCat(device.template_name, "/", device.index)).second);
      for (const auto& [name, value] : device.consumes) {
        const auto counter = plan.counters.find(name);
        ASSERT_NE(counter, plan.counters.end()) << product.name << " " << name;
        EXPECT_GT(value, 0) << product.name << " " << name;
        EXPECT_LE(value, counter->second) << product.name << " " << name;
      }
    }
    for (const auto& [name, value] : plan.counters) {
      EXPECT_GT(value, 0) << product.name << " " << name;
      EXPECT_THAT(name, ::testing::MatchesRegex("[a-z]([-a-z0-9]*[a-z0-9])?")) << product.name;
      EXPECT_LE(name.size(), 63U);
    }
  }
  EXPECT_EQ(PlanOf("910A-32g").devices.size() + 1, 31U);
}

TEST(FindPartition, IsTheOneOfThePlan) {
  int found = 0;
  for (const Product& product : Catalog::BuiltIn().products()) {
    for (const PartitionDevice& device :
         PlanPartitions(product, product.budget, std::nullopt).devices) {
      const auto partition =
          FindPartition(product, product.budget, device.template_name, device.index);
      ASSERT_TRUE(partition.has_value()) << product.name << " " << device.template_name;
      EXPECT_EQ(partition->template_name, device.template_name);
      EXPECT_EQ(partition->index, device.index);
      EXPECT_EQ(partition->vgroups, device.vgroups);
      EXPECT_EQ(partition->consumes, device.consumes);
      ++found;
    }
  }
  EXPECT_EQ(found, 2 * 40 + 2 * (16 + 8 + 4 + 2) + 2 * (15 + 7 + 3 + 1) + 5 * 6 + 9);
}

TEST(FindPartition, KnowsNoOthers) {
  const Product& product = BuiltIn("310P-24g");
  EXPECT_TRUE(FindPartition(product, product.budget, "vir01", 7).has_value());
  EXPECT_FALSE(FindPartition(product, product.budget, "vir01", 8).has_value());
  EXPECT_FALSE(FindPartition(product, product.budget, "vir01", -1).has_value());
  EXPECT_FALSE(FindPartition(product, product.budget, "vir08", 0).has_value());
  EXPECT_FALSE(FindPartition(product, product.budget, "", 0).has_value());
  Amounts budget = product.budget;
  budget[Resource::kAicpu] = 3;
  EXPECT_FALSE(FindPartition(product, budget, "vir04", 0).has_value());
}

Vnpu Foreign(const std::string& name, int vgroup = -1) {
  Vnpu vnpu;
  vnpu.template_name = name;
  vnpu.vgroup = vgroup;
  return vnpu;
}

Counters Remaining(const std::string& product, const std::vector<Vnpu>& foreign,
                   const Counters& live = {}) {
  return RemainingCounters(BuiltIn(product), PlanOf(product), foreign, live);
}

TEST(RemainingCounters, AreThePlansWithoutForeignVnpus) {
  EXPECT_EQ(Remaining("310P-24g", {}), PlanOf("310P-24g").counters);
  EXPECT_EQ(Remaining("910B-bin2", {}, {{"aicore", 5}, {"vnpus", 1}}),
            PlanOf("910B-bin2").counters);
}

TEST(RemainingCounters, TakeTheTemplateFromTheCatalog) {
  Vnpu vnpu = Foreign("vir05_1c_8g");
  vnpu.amounts[Resource::kMemory] = 8192;  // the library's number is the advertised one
  vnpu.amounts[Resource::kAicpu] = 7;
  EXPECT_THAT(
      Remaining("910B-bin2", {vnpu}),
      ElementsAre(Pair("aicore", 15), Pair("aicpu", 6), Pair("jpegd", 18), Pair("jpege", 3),
                  Pair("memory", 21504), Pair("vdec", 2), Pair("vnpus", 15), Pair("vpc", 7)));
}

TEST(RemainingCounters, BelieveTheLibraryAboutAnUnknownTemplate) {
  Vnpu vnpu = Foreign("vir07_2c_9g");
  vnpu.amounts[Resource::kAicore] = 7;
  vnpu.amounts[Resource::kMemory] = 9216;
  vnpu.amounts[Resource::kAicpu] = -1;  // never more than there is
  Counters expected = PlanOf("910B-bin2").counters;
  expected["aicore"] = 13;
  expected["memory"] = 28672 - 9216;
  expected["vnpus"] = 15;
  EXPECT_EQ(Remaining("910B-bin2", {vnpu}), expected);
}

TEST(RemainingCounters, LeaveNothingBesideAVnpuOfWhichNothingIsKnown) {
  const Counters live = {{"aicore", 5}, {"memory", 7168}, {"vnpus", 1}};
  for (const auto& [name, value] : Remaining("910B-bin2", {Foreign("")}, live)) {
    EXPECT_EQ(value, live.count(name) > 0 ? live.at(name) : 0) << name;
  }
  EXPECT_EQ(Remaining("310P-24g", {Foreign("")}).size(), PlanOf("310P-24g").counters.size());
}

TEST(RemainingCounters, AreNeverBelowLiveUseNorZero) {
  const std::vector<Vnpu> foreign(3, Foreign("vir10_3c_16g"));  // more than there can be
  const Counters live = {{"aicore", 10}, {"aicpu", 3}, {"memory", 14336}, {"vnpus", 1}};
  EXPECT_THAT(
      Remaining("910B-bin2", foreign, live),
      ElementsAre(Pair("aicore", 10), Pair("aicpu", 3), Pair("jpegd", 0), Pair("jpege", 0),
                  Pair("memory", 14336), Pair("vdec", 0), Pair("vnpus", 13), Pair("vpc", 0)));
  // Claims that are older than the catalog: more than the plan has, and what it does not have.
  EXPECT_THAT(
      Remaining("910A-32g", {}, {{"aicore", 40}, {"aicpu", 2}}),
      ElementsAre(Pair("aicore", 40), Pair("aicpu", 2), Pair("memory", 32768), Pair("vnpus", 16)));
}

// Values of vgroup-0 ... vgroup-3.
std::vector<int64_t> VGroupsOf(const Counters& counters) {
  return {counters.at("vgroup-0"), counters.at("vgroup-1"), counters.at("vgroup-2"),
          counters.at("vgroup-3")};
}

TEST(RemainingCounters, CountForeignVGroupsFromTheHighestFreeOne) {
  const auto vgroups = [](const std::vector<Vnpu>& foreign, const Counters& live = {}) {
    return VGroupsOf(Remaining("310P-24g", foreign, live));
  };
  EXPECT_THAT(vgroups({Foreign("vir02", 0)}), ElementsAre(2, 2, 2, 0));
  EXPECT_THAT(vgroups({Foreign("vir04", 0)}), ElementsAre(2, 2, 0, 0));
  EXPECT_THAT(vgroups({Foreign("vir04"), Foreign("vir01")}), ElementsAre(2, 0, 0, 0));
  EXPECT_THAT(vgroups({Foreign("vir01", 2), Foreign("vir01", 2)}), ElementsAre(2, 2, 2, 0));
  EXPECT_THAT(vgroups({Foreign("vir01", 2), Foreign("vir01", 1)}), ElementsAre(2, 2, 0, 0));
  EXPECT_THAT(vgroups({Foreign("vir01"), Foreign("vir01")}), ElementsAre(2, 2, 0, 0));
  EXPECT_THAT(vgroups({Foreign("vir04", 0)}, {{"vgroup-3", 1}, {"vgroup-1", 2}}),
              ElementsAre(0, 2, 0, 2));
  EXPECT_THAT(vgroups({Foreign("vir04", 0)}, {{"vgroup-3", 0}}), ElementsAre(2, 2, 0, 0));
  // More than there are groups free of live use.
  EXPECT_THAT(vgroups({Foreign("vir04"), Foreign("vir04_3c")}, {{"vgroup-0", 1}}),
              ElementsAre(2, 0, 0, 0));
}

}  // namespace
}  // namespace ascend::vnpu
