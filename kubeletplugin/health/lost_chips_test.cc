#include "kubeletplugin/health/lost_chips.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

vnpu::Inventory Node(std::vector<std::pair<int, std::string>> chips) {
  vnpu::Inventory inventory;
  inventory.library = vnpu::LibraryState::kReady;
  for (const auto& [physical_id, uuid] : chips) {
    vnpu::Chip& chip = inventory.chips.emplace_back();
    chip.physical_id = physical_id;
    chip.uuid = uuid;
    chip.health = vnpu::Health::kOk;
    chip.busy = {{17}};
    chip.faults.emplace();
    chip.memory_mib = 65536;
  }
  return inventory;
}

std::vector<std::pair<int, vnpu::Health>> HealthOf(const vnpu::Inventory& inventory) {
  std::vector<std::pair<int, vnpu::Health>> result;
  for (const vnpu::Chip& chip : inventory.chips) result.emplace_back(chip.physical_id, chip.health);
  return result;
}

TEST(LostChipsTest, WhatIsNotListedAnyMoreIsAbsentInItsPlace) {
  const vnpu::Inventory before = Node({{0, "A"}, {1, "B"}, {2, "C"}});
  const vnpu::Inventory now = WithLostChips(Node({{0, "A"}, {2, "C"}}), &before);
  EXPECT_THAT(HealthOf(now), ElementsAre(Pair(0, vnpu::Health::kOk), Pair(1, vnpu::Health::kAbsent),
                                         Pair(2, vnpu::Health::kOk)));
  EXPECT_EQ(now.chips[1].memory_mib, 65536);  // what it was stays known
  EXPECT_FALSE(now.chips[1].busy.has_value());
  EXPECT_FALSE(now.chips[1].faults.has_value());
  EXPECT_FALSE(now.chips[1].faults_error.empty());
}

TEST(LostChipsTest, StaysLostFromLookToLookAndComesBack) {
  const vnpu::Inventory first = Node({{0, "A"}, {1, "B"}});
  const vnpu::Inventory second = WithLostChips(Node({{0, "A"}}), &first);
  const vnpu::Inventory third = WithLostChips(Node({{0, "A"}}), &second);
  EXPECT_EQ(third, second);
  const vnpu::Inventory back = WithLostChips(Node({{0, "A"}, {1, "B"}}), &third);
  EXPECT_EQ(back, first);
}

TEST(LostChipsTest, ChipThatReturnsInAnotherPlaceIsNotLost) {
  const vnpu::Inventory before = Node({{0, "A"}, {1, "B"}});
  const vnpu::Inventory now = WithLostChips(Node({{0, "A"}, {5, "B"}}), &before);
  EXPECT_THAT(HealthOf(now), ElementsAre(Pair(0, vnpu::Health::kOk), Pair(5, vnpu::Health::kOk)));
}

TEST(LostChipsTest, AnotherChipInThePlaceReplacesIt) {
  const vnpu::Inventory before = Node({{0, "A"}, {1, "B"}});
  const vnpu::Inventory now = WithLostChips(Node({{0, "A"}, {1, "D"}}), &before);
  EXPECT_THAT(HealthOf(now), ElementsAre(Pair(0, vnpu::Health::kOk), Pair(1, vnpu::Health::kOk)));
  EXPECT_EQ(now.chips[1].uuid, "D");
}

TEST(LostChipsTest, ChipsWithoutUuidGoByTheirPlace) {
  const vnpu::Inventory before = Node({{0, ""}, {1, ""}});
  const vnpu::Inventory now = WithLostChips(Node({{0, ""}}), &before);
  EXPECT_THAT(HealthOf(now),
              ElementsAre(Pair(0, vnpu::Health::kOk), Pair(1, vnpu::Health::kAbsent)));
}

TEST(LostChipsTest, OnlyALibraryThatIsReadyLosesChips) {
  const vnpu::Inventory before = Node({{0, "A"}, {1, "B"}});
  for (const vnpu::LibraryState state :
       {vnpu::LibraryState::kMissing, vnpu::LibraryState::kStarting, vnpu::LibraryState::kFailed,
        vnpu::LibraryState::kNotResponding}) {
    vnpu::Inventory now = Node({{0, "A"}});
    now.library = state;
    EXPECT_EQ(WithLostChips(now, &before), now);
  }
  const vnpu::Inventory now = Node({{0, "A"}});
  EXPECT_EQ(WithLostChips(now, nullptr), now);
}

}  // namespace
}  // namespace ascend::kubeletplugin
