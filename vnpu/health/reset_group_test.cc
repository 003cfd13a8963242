#include "vnpu/health/reset_group.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "vnpu/family.h"

namespace ascend::vnpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// As the discovery fills them in.
Inventory Node(Family family, int chips, uint32_t board = 0x30) {
  Inventory inventory;
  for (int i = 0; i < chips; ++i) {
    Chip chip = {.physical_id = i, .card_id = i, .device_id = 0, .family = family};
    chip.board_id = board;
    chip.hccs_group = HccsGroup(family, board, i);
    chip.pci_bus_id = absl::StrCat("0000:", i, ":00.0");
    if (family == Family::kA3) {
      chip.module = absl::StrCat("module-", i / 2);
      chip.module_peer_physical_id = i ^ 1;
    }
    inventory.chips.push_back(chip);
  }
  return inventory;
}

Inventory Duos(int cards) {
  Inventory inventory = Node(Family::k310P, 2 * cards);
  for (Chip& chip : inventory.chips) {
    chip.card_id = chip.physical_id / 2;
    chip.device_id = chip.physical_id % 2;
    chip.module = absl::StrCat("card-", chip.card_id);
    chip.pci_bus_id = absl::StrCat("0000:", chip.card_id, ":00.0");
  }
  return inventory;
}

void Remove(Inventory& inventory, int physical_id) {
  auto& chips = inventory.chips;
  chips.erase(std::remove_if(chips.begin(), chips.end(),
                             [=](const Chip& chip) { return chip.physical_id == physical_id; }),
              chips.end());
}

TEST(ResetGroupTest, ChipsWithoutPartnersGoAlone) {
  for (const Family family : {Family::k310, Family::k310B, Family::k950}) {
    EXPECT_THAT(ResetGroup(Node(family, 8), 3), ElementsAre(3)) << FamilyName(family);
  }
}

TEST(ResetGroupTest, TheRingOf910A) {
  const Inventory node = Node(Family::k910A, 8);
  EXPECT_THAT(ResetGroup(node, 2), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ResetGroup(node, 4), ElementsAre(4, 5, 6, 7));
}

TEST(ResetGroupTest, TheMeshOf910B) {
  EXPECT_THAT(ResetGroup(Node(Family::k910B, 8), 0), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(ResetGroup(Node(Family::k910B, 16), 9), ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
}

TEST(ResetGroupTest, WithoutAMeshAllChipsOfTheNode) {
  Inventory node = Node(Family::k910B, 16);
  for (Chip& chip : node.chips) chip.hccs_group.clear();
  EXPECT_THAT(ResetGroup(node, 0), SizeIs(16));
  // More than the tables know.
  node = Node(Family::k910B, 16);
  for (Chip& chip : node.chips) chip.hccs_group = "hccs-0";
  EXPECT_THAT(ResetGroup(node, 0), SizeIs(16));
}

TEST(ResetGroupTest, AnA3ModuleAndItsBrother) {
  const Inventory node = Node(Family::kA3, 16);
  EXPECT_THAT(ResetGroup(node, 0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ResetGroup(node, 7), ElementsAre(4, 5, 6, 7));
  Inventory independent = node;
  for (Chip& chip : independent.chips) chip.module_peer_physical_id.reset();
  EXPECT_THAT(ResetGroup(independent, 13), ElementsAre(12, 13, 14, 15));
}

TEST(ResetGroupTest, BothChipsOfADuo) {
  const Inventory node = Duos(2);
  EXPECT_THAT(ResetGroup(node, 0), ElementsAre(0, 1));
  EXPECT_THAT(ResetGroup(node, 3), ElementsAre(2, 3));
  // The name alone is not all that tells it.
  Inventory unnamed = node;
  for (Chip& chip : unnamed.chips) chip.module.clear();
  EXPECT_THAT(ResetGroup(unnamed, 3), ElementsAre(2, 3));
  // Cards with one chip.
  EXPECT_THAT(ResetGroup(Node(Family::k310P, 4), 1), ElementsAre(1));
}

TEST(ResetGroupTest, WhatIsLostBelongsToTheGroup) {
  Inventory ring = Node(Family::k910A, 8);
  Remove(ring, 3);
  EXPECT_THAT(ResetGroup(ring, 0), ElementsAre(0, 1, 2, 3));
  Inventory mesh = Node(Family::k910B, 8);
  mesh.chips.resize(1);
  EXPECT_THAT(ResetGroup(mesh, 0), SizeIs(8));
  Inventory a3 = Node(Family::kA3, 16);
  for (const int gone : {4, 6, 7}) Remove(a3, gone);
  EXPECT_THAT(ResetGroup(a3, 5), ElementsAre(4, 5, 6, 7));
  // A lone die of a Duo looks like a card with one chip.
  Inventory duo = Duos(2);
  Remove(duo, 1);
  duo.chips.front().module.clear();
  EXPECT_THAT(ResetGroup(duo, 0), ElementsAre(0, 1));
  // Absent, but still listed.
  Inventory absent = Duos(2);
  absent.chips[1].health = Health::kAbsent;
  EXPECT_THAT(ResetGroup(absent, 0), ElementsAre(0, 1));
}

TEST(ResetGroupTest, OfWhatNobodyKnows) {
  EXPECT_THAT(ResetGroup(Node(Family::kUnknown, 5), 2), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(ResetGroup(Node(Family::k910B, 8), 8), IsEmpty());
  EXPECT_THAT(ResetGroup({}, 0), IsEmpty());
}

TEST(BootWaitTest, ByProduct) {
  EXPECT_EQ(BootWait(Family::k910B), absl::Seconds(150));
  EXPECT_EQ(BootWait(Family::k910A), absl::Seconds(150));
  EXPECT_EQ(BootWait(Family::k310P), absl::Seconds(150));
  EXPECT_EQ(BootWait(Family::kA3), absl::Seconds(360));
  EXPECT_EQ(BootWait(Family::k950), absl::Seconds(600));
  EXPECT_EQ(BootWait(Family::kUnknown), absl::Seconds(600));
}

}  // namespace
}  // namespace ascend::vnpu
