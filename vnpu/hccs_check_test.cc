#include "vnpu/hccs_check.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "vnpu/fake_dcmi.h"

namespace ascend::vnpu {
namespace {

using ::ascend::dcmi::TopologyType;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class Dcmi : public FakeDcmi {
 public:
  Dcmi() : FakeDcmi(16) {}
  absl::StatusOr<TopologyType> Topology(Address one, Address other) override {
    asked.emplace_back(one.card, other.card);
    return answer(one.card, other.card);
  }
  std::function<absl::StatusOr<TopologyType>(int, int)> answer;
  std::vector<std::pair<int, int>> asked;
};

// Groups of two.
Inventory Chips(int count) {
  Inventory inventory;
  for (int i = 0; i < count; ++i) {
    inventory.chips.push_back({.physical_id = i,
                               .card_id = i,
                               .device_id = 0,
                               .health = Health::kOk,
                               .hccs_group = "hccs-" + std::to_string(i / 2)});
  }
  return inventory;
}

TopologyType AsInTheTables(int one, int other) {
  return one / 2 == other / 2 ? TopologyType::kHccs : TopologyType::kSys;
}

TEST(HccsCheckTest, AsksNeighboursAndAcrossGroups) {
  Dcmi dcmi;
  dcmi.answer = AsInTheTables;
  EXPECT_EQ(HccsContradiction(dcmi, Chips(4)), "");
  EXPECT_THAT(dcmi.asked, ElementsAre(Pair(0, 1), Pair(0, 2), Pair(2, 3)));
}

TEST(HccsCheckTest, TellsTheFirstPairThatDoesNotFit) {
  Dcmi dcmi;
  dcmi.answer = [](int, int) { return TopologyType::kPix; };
  EXPECT_THAT(HccsContradiction(dcmi, Chips(4)),
              AllOf(HasSubstr("chips 0 and 1 are not joined by HCCS"), HasSubstr("hccs-0")));
  dcmi.answer = [](int, int) { return TopologyType::kHccsSwitch; };
  EXPECT_THAT(HccsContradiction(dcmi, Chips(4)),
              HasSubstr("chips 0 and 2 are joined by HCCS, their groups are hccs-0 and hccs-1"));
}

TEST(HccsCheckTest, WhatTheLibraryDoesNotTellIsNoContradiction) {
  Dcmi dcmi;
  dcmi.answer = [](int, int) { return absl::UnimplementedError("not on 910A"); };
  EXPECT_EQ(HccsContradiction(dcmi, Chips(4)), "");
  dcmi.answer = [](int, int) { return TopologyType::kUnknown; };
  EXPECT_EQ(HccsContradiction(dcmi, Chips(4)), "");
}

TEST(HccsCheckTest, ChipsThatCannotAnswerAreNotAsked) {
  Dcmi dcmi;
  dcmi.answer = AsInTheTables;
  Inventory inventory = Chips(4);
  inventory.chips[0].health = Health::kAbsent;
  inventory.chips[2].stuck = "no answer";
  inventory.chips[3].hccs_group = "";
  EXPECT_EQ(HccsContradiction(dcmi, inventory), "");
  EXPECT_TRUE(dcmi.asked.empty());
}

}  // namespace
}  // namespace ascend::vnpu
