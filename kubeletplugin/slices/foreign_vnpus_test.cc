#include "kubeletplugin/slices/foreign_vnpus.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kSettle = ForeignVnpus::kSettle;

class ForeignVnpusTest : public ::testing::Test {
 protected:
  ForeignVnpusTest() {
    inventory_.chips.resize(1);
    inventory_.chips[0].physical_id = 3;
    inventory_.chips[0].partitioning.emplace();
  }

  void List(const std::vector<int>& ids, const std::string& template_name = "vir01") {
    inventory_.chips[0].partitioning.emplace();
    for (const int id : ids) {
      vnpu::Vnpu vnpu;
      vnpu.id = id;
      vnpu.template_name = template_name;
      inventory_.chips[0].partitioning->vnpus.push_back(vnpu);
    }
  }

  std::shared_ptr<const ClaimRecord> Record(int id, const std::string& boot_id = "boot",
                                            std::vector<int> before = {}) {
    auto record = std::make_shared<ClaimRecord>();
    record->boot_id = boot_id;
    record->state = id < 0 ? ClaimState::kStarted : ClaimState::kCompleted;
    RecordedDevice& device = record->devices.emplace_back();
    device.chips = {{.physical_id = 3}};
    device.vnpu =
        RecordedVnpu{.template_name = "vir01", .id = id, .begun = id < 0, .ids_before = before};
    return record;
  }

  std::vector<int> Update(absl::Duration now) {
    std::vector<int> ids;
    for (const auto& [chip, vnpus] : foreign_.Update(&inventory_, records_, now)) {
      EXPECT_EQ(chip, 3);
      for (const vnpu::Vnpu& vnpu : vnpus) ids.push_back(vnpu.id);
    }
    return ids;
  }

  vnpu::Inventory inventory_;
  std::vector<std::shared_ptr<const ClaimRecord>> records_;
  ForeignVnpus foreign_{"boot"};
};

TEST_F(ForeignVnpusTest, ThoseOfTheFirstLookCountAtOnce) {
  List({148, 149});
  records_ = {Record(149)};
  EXPECT_THAT(Update(absl::Seconds(100)), ElementsAre(148));
  EXPECT_EQ(foreign_.next_change(), std::nullopt);
}

TEST_F(ForeignVnpusTest, LaterOnesHaveToStay) {
  EXPECT_THAT(Update(absl::Seconds(100)), IsEmpty());
  List({148});
  EXPECT_THAT(Update(absl::Seconds(101)), IsEmpty());
  EXPECT_EQ(foreign_.next_change(), kSettle);
  EXPECT_THAT(Update(absl::Seconds(101) + kSettle), ElementsAre(148));
  List({});
  EXPECT_THAT(Update(absl::Seconds(102) + kSettle), IsEmpty());
  // Coming back begins anew: the claim that it was made for may be the next one.
  List({148});
  EXPECT_THAT(Update(absl::Seconds(103) + kSettle), IsEmpty());
}

// The library lists what a claim makes before the record knows its id.
TEST_F(ForeignVnpusTest, WhatIsBeingMadeIsNobodysElse) {
  EXPECT_THAT(Update(absl::Seconds(100)), IsEmpty());
  List({148, 149});
  records_ = {Record(-1, "boot", {148})};
  Update(absl::Seconds(101));
  EXPECT_THAT(Update(absl::Seconds(101) + kSettle), ElementsAre(148));
  List({148, 149}, "vir02");  // not what the claim asked for
  Update(absl::Seconds(110));
  EXPECT_THAT(Update(absl::Seconds(110) + kSettle), ElementsAre(148, 149));
}

TEST_F(ForeignVnpusTest, IdsOfAnotherBootMeanNothing) {
  List({148});
  records_ = {Record(148, "former boot")};
  EXPECT_THAT(Update(absl::Seconds(100)), ElementsAre(148));
}

TEST_F(ForeignVnpusTest, AChipThatCannotBeAskedKeepsWhatItHad) {
  List({148});
  EXPECT_THAT(Update(absl::Seconds(100)), ElementsAre(148));
  inventory_.chips[0].partitioning.reset();
  inventory_.chips[0].partitioning_error = "time-out";
  EXPECT_THAT(Update(absl::Seconds(101)), ElementsAre(148));
  List({148});
  EXPECT_THAT(Update(absl::Seconds(102)), ElementsAre(148));
  inventory_.chips[0].partitioning.reset();
  inventory_.chips[0].partitioning_error.clear();  // the product has none
  EXPECT_THAT(Update(absl::Seconds(103)), IsEmpty());
  EXPECT_THAT(foreign_.Update(nullptr, {}, absl::Seconds(104)), IsEmpty());
}

TEST_F(ForeignVnpusTest, AChipThatIsAwayComesBackAsItWas) {
  List({148});
  EXPECT_THAT(Update(absl::Seconds(100)), ElementsAre(148));
  const vnpu::Inventory before = inventory_;
  inventory_.chips.clear();
  EXPECT_THAT(Update(absl::Seconds(101)), ElementsAre(148));
  inventory_ = before;
  EXPECT_THAT(Update(absl::Seconds(102)), ElementsAre(148));
}

}  // namespace
}  // namespace ascend::kubeletplugin
