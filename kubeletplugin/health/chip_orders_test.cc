#include "kubeletplugin/health/chip_orders.h"

#include <string>

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ChipOrdersTest : public ::testing::Test {
 protected:
  const ChipOrder isolate_ = {.action = ChipOrder::Action::kIsolate,
                              .physical_id = 3,
                              .uuid = "AB",
                              .reason = "换风扇, ticket \"42\"",
                              .at = absl::FromUnixMillis(1'790'000'000'123)};
  const ChipOrder release_ = {
      .action = ChipOrder::Action::kRelease, .physical_id = 3, .at = absl::UnixEpoch()};

  TempDir temp_;
  const std::string directory_ = temp_.path() + "/plugins/orders";
};

TEST_F(ChipOrdersTest, AreReadAsWritten) {
  ASSERT_TRUE(WriteChipOrder(directory_, isolate_).ok());
  ASSERT_TRUE(
      WriteChipOrder(directory_, {.physical_id = 11, .reason = "hot", .at = absl::UnixEpoch()})
          .ok());
  const auto read = ReadChipOrders(directory_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->orders,
              ElementsAre(isolate_,
                          ChipOrder{.physical_id = 11, .reason = "hot", .at = absl::UnixEpoch()}));
  EXPECT_THAT(read->problems, IsEmpty());
}

TEST_F(ChipOrdersTest, TheLaterOneOfAChipCounts) {
  ASSERT_TRUE(WriteChipOrder(directory_, isolate_).ok());
  ASSERT_TRUE(WriteChipOrder(directory_, release_).ok());
  EXPECT_THAT(ReadChipOrders(directory_)->orders, ElementsAre(release_));
}

TEST_F(ChipOrdersTest, NoDirectoryMeansNoOrders) {
  const auto read = ReadChipOrders(directory_);
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(read->orders, IsEmpty());
}

TEST_F(ChipOrdersTest, WhatIsNoOrderStaysAndIsTold) {
  ASSERT_TRUE(WriteChipOrder(directory_, isolate_).ok());
  const std::string good = *ReadFile(directory_ + "/chip-3");
  const auto put = [&](const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(directory_ + "/" + name, text).ok());
  };
  put("chip-4", good);  // of another chip
  put("chip-5", "{");
  put("chip-6",
      R"({"action": "reset", "physicalID": 6, "uuid": "", "reason": "", "at": "2026-01-01T00:00:00Z"})");
  put("chip-7",
      R"({"action": "isolate", "physicalID": 7, "uuid": "", "reason": "a\nb", "at": "2026-01-01T00:00:00Z"})");
  put("chip-9", R"({"action": "release", "physicalID": 9, "uuid": "", "reason": "", "at": "now"})");
  put("chip-08", "{}");
  put("README", "");
  put(".chip-9.1234.tmp", "{");  // a writer is at it
  const auto read = ReadChipOrders(directory_);
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(read->orders, ElementsAre(isolate_));
  EXPECT_THAT(read->problems,
              ElementsAre(HasSubstr("/README "), HasSubstr("/chip-08 "), HasSubstr("/chip-4: "),
                          HasSubstr("/chip-5: "), HasSubstr("/chip-6: "), HasSubstr("/chip-7: "),
                          HasSubstr("/chip-9: ")));
}

TEST_F(ChipOrdersTest, RefusesWhatCannotBeShown) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(WriteChipOrder(directory_, {.physical_id = -1, .reason = "x"})));
  EXPECT_TRUE(absl::IsInvalidArgument(WriteChipOrder(directory_, {.physical_id = 1})));
  EXPECT_TRUE(absl::IsInvalidArgument(
      WriteChipOrder(directory_, {.physical_id = 1, .reason = std::string(257, 'x')})));
  EXPECT_TRUE(absl::IsInvalidArgument(
      WriteChipOrder(directory_, {.physical_id = 1, .reason = "two\nlines"})));
  EXPECT_TRUE(WriteChipOrder(directory_, {.physical_id = 1, .reason = std::string(256, 'x')}).ok());
}

}  // namespace
}  // namespace ascend::kubeletplugin
