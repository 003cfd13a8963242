#include "vnpu/dcmi/mock/reset_rules.h"

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "gtest/gtest.h"
#include "vnpu/dcmi/mock/edit_json.h"
#include "vnpu/dcmi/mock/test_node.h"

namespace ascend::dcmi::mock {
namespace {

using ::testing::ElementsAre;

std::vector<int> Group(const Node& node, int physical_id) {
  std::vector<int> ids;
  for (const Chip* chip : ResetGroup(node, *node.FindPhysical(physical_id))) {
    ids.push_back(chip->physical_id.value_or(-1));
  }
  return ids;
}

Node Shipped(const char* name) {
  TestNode node(name);
  auto parsed = NodeOf(node.directory());
  EXPECT_THAT(parsed, IsOk());
  return *std::move(parsed);
}

TEST(ResetRulesTest, ProductsResetTheirGroups) {
  EXPECT_THAT(Group(Shipped("8x910A"), 5), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(Group(Shipped("8x910B3"), 5), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(Group(Shipped("16x910B2C"), 9), ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_THAT(Group(Shipped("16xA3"), 6), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(Group(Shipped("2x300IDuo"), 1), ElementsAre(0, 1));
  EXPECT_THAT(Group(Shipped("4x310P3"), 1), ElementsAre(1));
  EXPECT_THAT(Group(Shipped("1x950PR"), 0), ElementsAre(0));
}

TEST(ResetRulesTest, ANodeMaySayOtherwise) {
  Node node = Shipped("16xA3");
  node.reset.unit = ResetUnit::kModule;
  EXPECT_THAT(Group(node, 6), ElementsAre(6, 7));
  node.reset.unit = ResetUnit::kChip;
  EXPECT_THAT(Group(node, 6), ElementsAre(6));
  // A chip without a number is in no block.
  node.reset.unit = ResetUnit::kMesh;
  node.chips[0].physical_id.reset();
  EXPECT_EQ(ResetGroup(node, node.chips[0]).size(), 1u);
  EXPECT_THAT(Group(node, 1), ElementsAre(1, 2, 3, 4, 5, 6, 7));
}

TEST(ResetRulesTest, BootsStepByStep) {
  ResetRun reset = {.physical_id = 0, .started_ms = 1000, .duration_ms = 100};
  std::vector<int> statuses;
  for (const int64_t now : {1000, 1025, 1050, 1075, 1099, 1100, 9999}) {
    statuses.push_back(BootStatusAt(reset, now));
  }
  EXPECT_THAT(statuses, ElementsAre(0, 1, 2, 3, 3, 16, 16));
  EXPECT_EQ(BootStatusAt(reset, 10), 16) << "the host has booted since";
  reset.stops_at = 2;
  EXPECT_EQ(BootStatusAt(reset, 1000), 0);
  EXPECT_EQ(BootStatusAt(reset, 9999), 2);
  reset.waits_for_rescan = true;
  EXPECT_EQ(BootStatusAt(reset, 9999), 0);
  reset = {.started_ms = 1000, .duration_ms = 0};
  EXPECT_EQ(BootStatusAt(reset, 1000), 16);
}

}  // namespace
}  // namespace ascend::dcmi::mock
