#include "vnpu/dcmi/mock/vnpu_rules.h"

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "gtest/gtest.h"
#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/mock/test_node.h"

namespace ascend::dcmi::mock {
namespace {

using ::testing::ElementsAre;

VnpuRules RulesOf(const std::string& shipped) {
  TestNode copy(shipped);
  Node node;
  std::string error;
  EXPECT_TRUE(ParseNode(*ReadFile(NodeFile(copy.directory())), &node, &error)) << error;
  EXPECT_TRUE(node.vnpu.has_value());
  return node.vnpu.value_or(VnpuRules());
}

// vNPUs on one chip after another wish.
class ChipUnderTest {
 public:
  explicit ChipUnderTest(VnpuRules of_node, int id = 2)
      : rules(std::move(of_node)), physical_id(id) {}

  int Add(const std::string& name, std::optional<int> id = std::nullopt,
          std::optional<int> vgroup = std::nullopt) {
    Vnpu made;
    const int code = PlanVnpu(rules, physical_id, vnpus,
                              {.template_name = name, .id = id, .vgroup = vgroup}, &made);
    if (code == DCMI_OK) vnpus.push_back(made);
    return code;
  }
  // The codes of several.
  std::vector<int> AddAll(const std::vector<std::string>& names) {
    std::vector<int> codes;
    codes.reserve(names.size());
    for (const std::string& name : names) codes.push_back(Add(name));
    return codes;
  }
  std::vector<int> Ids() const {
    std::vector<int> ids;
    for (const Vnpu& vnpu : vnpus) ids.push_back(vnpu.id);
    return ids;
  }
  std::vector<int> VGroups() const {
    std::vector<int> groups;
    for (const Vnpu& vnpu : vnpus) groups.push_back(vnpu.vgroup);
    return groups;
  }

  VnpuRules rules;
  int physical_id;
  std::vector<Vnpu> vnpus;
};

std::vector<std::string> Times(int count, const std::string& name) {
  return std::vector<std::string>(static_cast<size_t>(count), name);
}

// How many of the template a fresh chip holds.
int Capacity(const VnpuRules& rules, const std::string& name) {
  ChipUnderTest chip(rules);
  while (chip.Add(name) == DCMI_OK) {
  }
  return static_cast<int>(chip.vnpus.size());
}

TEST(VnpuRulesTest, FillsChipsAsTheProductsDo) {
  const std::pair<const char*, std::pair<const char*, int>> kCases[] = {
      {"8x910B4", {"vir05_1c_8g", 4}},
      {"8x910B4", {"vir10_3c_16g", 2}},
      {"8x910B4", {"vir10_4c_16g_m", 1}},
      {"8x910B4", {"vir10_3c_16g_nm", 2}},
      {"8x910B3", {"vir05_1c_16g", 4}},
      {"8x910B3", {"vir10_3c_32g", 2}},
      {"8x910B1", {"vir06_1c_16g", 4}},
      {"8x910B2", {"vir12_3c_32g", 2}},
      {"16x910B2C", {"vir12_3c_32g", 2}},
      {"16xA3", {"vir06_1c_16g", 4}},
      {"8x910A", {"vir02", 16}},
      {"8x910A", {"vir04", 8}},
      {"8x910A", {"vir16", 2}},
      {"4x310P3", {"vir01", 7}},
      {"4x310P3", {"vir02", 3}},
      {"4x310P3", {"vir02_1c", 4}},
      {"4x310P3", {"vir04", 1}},
      {"4x310P3", {"vir04_3c", 2}},
      {"4x310P3", {"vir04_4c_dvpp", 1}},
      {"4x310P3", {"vir04_3c_ndvpp", 2}},
      {"2x300I-sparse", {"vir02_1c", 4}},
      {"2x300IDuo", {"vir01", 7}},
      {"2x300IDuo", {"vir04_3c_ndvpp", 2}}};
  for (const auto& [node, expected] : kCases) {
    EXPECT_EQ(Capacity(RulesOf(node), expected.first), expected.second)
        << node << " " << expected.first;
  }
}

TEST(VnpuRulesTest, MixesTemplatesWithinTheBudget) {
  ChipUnderTest m(RulesOf("8x910B4"));
  EXPECT_THAT(m.AddAll({"vir10_4c_16g_m", "vir10_3c_16g", "vir05_1c_8g", "vir10_3c_16g_nm"}),
              ElementsAre(DCMI_OK, DCMI_INNER_ERR, DCMI_INNER_ERR, DCMI_OK))
      << "with the media engines gone, only what needs none";
  ChipUnderTest dvpp(RulesOf("4x310P3"));
  EXPECT_THAT(dvpp.AddAll({"vir04_4c_dvpp", "vir04_3c", "vir04_3c_ndvpp"}),
              ElementsAre(DCMI_OK, DCMI_INNER_ERR, DCMI_OK));
  ChipUnderTest mixed(RulesOf("8x910B3"));
  EXPECT_THAT(mixed.AddAll({"vir10_3c_32g", "vir05_1c_16g", "vir05_1c_16g", "vir05_1c_16g"}),
              ElementsAre(DCMI_OK, DCMI_OK, DCMI_OK, DCMI_INNER_ERR));
  const VnpuAmounts used = UsedAmounts(mixed.rules, mixed.physical_id, mixed.vnpus);
  EXPECT_EQ(used.aicore, 20);
  EXPECT_EQ(used.aicpu, 5);
  EXPECT_EQ(used.memory, 61440);
  EXPECT_EQ(UsedAmounts(mixed.rules, 3, mixed.vnpus).aicore, 0) << "another chip";
}

TEST(VnpuRulesTest, KnowsOnlyTheTemplatesOfTheBoard) {
  ChipUnderTest chip(RulesOf("8x910B3"));
  EXPECT_THAT(chip.AddAll({"vir05_1c_8g", "vir02", ""}),
              ElementsAre(DCMI_INVALID_PARAMETER, DCMI_INVALID_PARAMETER, DCMI_INVALID_PARAMETER));
}

TEST(VnpuRulesTest, GivesTheIdsOfTheChip) {
  ChipUnderTest chip(RulesOf("8x910B3"), 4);
  EXPECT_EQ(chip.Add("vir05_1c_16g"), DCMI_OK);
  EXPECT_EQ(chip.Add("vir05_1c_16g", 170), DCMI_OK);
  EXPECT_EQ(chip.Add("vir05_1c_16g"), DCMI_OK);
  EXPECT_THAT(chip.Ids(), ElementsAre(164, 170, 165));
  EXPECT_EQ(chip.Add("vir05_1c_16g", 170), DCMI_RESOURCE_OCCUPIED);
  EXPECT_EQ(chip.Add("vir05_1c_16g", 163), DCMI_INVALID_PARAMETER) << "of chip 3";
  EXPECT_EQ(chip.Add("vir05_1c_16g", 180), DCMI_INVALID_PARAMETER) << "of chip 5";
  chip.rules.explicit_ids = ExplicitIds::kRefuses;
  EXPECT_EQ(chip.Add("vir05_1c_16g", 171), DCMI_INVALID_PARAMETER);
  chip.rules.explicit_ids = ExplicitIds::kIgnores;
  EXPECT_EQ(chip.Add("vir05_1c_16g", 171), DCMI_OK);
  EXPECT_EQ(chip.vnpus.back().id, 166);
  ChipUnderTest small(RulesOf("4x310P3"), 1);
  EXPECT_EQ(small.Add("vir01", 123), DCMI_OK);
  EXPECT_EQ(small.Add("vir01", 124), DCMI_INVALID_PARAMETER) << "a 310P has eight ids";
}

TEST(VnpuRulesTest, CountsVnpus) {
  VnpuRules rules = RulesOf("8x910A");
  rules.max_vnpus = 3;
  EXPECT_EQ(Capacity(rules, "vir02"), 3);
}

TEST(VnpuRulesTest, PairsTheSmallestInVGroups) {
  ChipUnderTest chip(RulesOf("4x310P3"));
  EXPECT_THAT(chip.AddAll({"vir01", "vir02_1c", "vir01", "vir01", "vir02_1c"}),
              ElementsAre(DCMI_OK, DCMI_OK, DCMI_OK, DCMI_OK, DCMI_OK));
  EXPECT_THAT(chip.VGroups(), ElementsAre(0, 1, 0, 2, 3));
  EXPECT_EQ(VGroupBitmap(chip.physical_id, chip.vnpus), 0b1111u);
  EXPECT_EQ(VGroupBitmap(3, chip.vnpus), 0u);
}

TEST(VnpuRulesTest, ALonelySmallOneTakesAWholeVGroup) {
  // Three lonely ones in groups of their own leave one group of two cores, although five cores are
  // free.
  ChipUnderTest chip(RulesOf("4x310P3"));
  for (const int group : {0, 1, 3}) EXPECT_EQ(chip.Add("vir01", std::nullopt, group), DCMI_OK);
  EXPECT_EQ(chip.Add("vir04_3c_ndvpp"), DCMI_INNER_ERR);
  EXPECT_EQ(chip.Add("vir02_1c"), DCMI_OK);
  EXPECT_EQ(chip.Add("vir02_1c"), DCMI_INNER_ERR);
  EXPECT_EQ(chip.Add("vir01"), DCMI_OK);
  EXPECT_THAT(chip.VGroups(), ElementsAre(0, 1, 3, 2, 0));
}

TEST(VnpuRulesTest, TakesTheVGroupThatWasAskedFor) {
  ChipUnderTest chip(RulesOf("4x310P3"));
  EXPECT_EQ(chip.Add("vir02_1c", std::nullopt, 2), DCMI_OK);
  EXPECT_EQ(chip.Add("vir02_1c", std::nullopt, 2), DCMI_INNER_ERR) << "taken";
  EXPECT_EQ(chip.Add("vir01", std::nullopt, 2), DCMI_INNER_ERR) << "full";
  EXPECT_EQ(chip.Add("vir01", std::nullopt, 4), DCMI_INVALID_PARAMETER);
  EXPECT_EQ(chip.Add("vir01", std::nullopt, 3), DCMI_OK);
  EXPECT_EQ(chip.Add("vir01", std::nullopt, 3), DCMI_OK);
  EXPECT_EQ(chip.Add("vir01", std::nullopt, 3), DCMI_INNER_ERR);
  ChipUnderTest without(RulesOf("8x910B3"));
  EXPECT_EQ(without.Add("vir05_1c_16g", std::nullopt, 1), DCMI_OK);
  EXPECT_THAT(without.VGroups(), ElementsAre(-1)) << "this product has none";
}

TEST(VnpuRulesTest, NoVGroupsLimitLargeOnes) {
  ChipUnderTest chip(RulesOf("4x310P3"));
  EXPECT_THAT(chip.AddAll({"vir04_3c", "vir02_1c", "vir01", "vir01", "vir01"}),
              ElementsAre(DCMI_OK, DCMI_OK, DCMI_OK, DCMI_OK, DCMI_INNER_ERR));
  EXPECT_THAT(chip.VGroups(), ElementsAre(0, 1, 2, 2));
  EXPECT_THAT(ChipUnderTest(chip.rules).AddAll(Times(2, "vir04_3c")),
              ElementsAre(DCMI_OK, DCMI_OK));
}

}  // namespace
}  // namespace ascend::dcmi::mock
