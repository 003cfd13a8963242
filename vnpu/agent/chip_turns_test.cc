#include "vnpu/agent/chip_turns.h"

#include <atomic>
#include <thread>

#include "gmock/gmock.h"

namespace ascend::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr dcmi::ChipAddress kChip = {.card = 3, .device = 1};
constexpr dcmi::ChipAddress kOther = {.card = 3, .device = 0};

class TestClock : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch() + Monotonic(); }
  absl::Duration Monotonic() const override { return absl::Seconds(seconds.load()); }
  std::atomic<int> seconds = 1000;
};

class ChipTurnsTest : public ::testing::Test {
 protected:
  TestClock clock_;
  ChipTurns turns_{absl::Seconds(10), clock_};
};

TEST_F(ChipTurnsTest, TheReaderOnlyTries) {
  auto turn = turns_.Take(kChip);
  EXPECT_FALSE(turns_.TryTake(kChip));
  EXPECT_TRUE(turns_.TryTake(kOther)) << "another chip of the card";
  turn.reset();
  EXPECT_TRUE(turns_.TryTake(kChip));
  EXPECT_FALSE(turns_.TryTake(kChip));
  turns_.Release(kChip);
  EXPECT_TRUE(turns_.TryTake(kChip));
}

TEST_F(ChipTurnsTest, ACallWaitsForTheReader) {
  ASSERT_TRUE(turns_.TryTake(kChip));
  std::atomic<bool> reading = true;
  std::thread call([&] {
    const auto turn = turns_.Take(kChip);
    EXPECT_NE(turn, nullptr);
    EXPECT_FALSE(reading);
  });
  reading = false;
  turns_.Release(kChip);
  call.join();
}

TEST_F(ChipTurnsTest, AWaitMayHaveABound) {
  auto turn = turns_.TakeWithin(kChip, absl::ZeroDuration());
  ASSERT_NE(turn, nullptr) << "it is free";
  EXPECT_EQ(turns_.TakeWithin(kChip, absl::Milliseconds(1)), nullptr);
  EXPECT_NE(turns_.TakeWithin(kOther, absl::ZeroDuration()), nullptr);
  std::thread call([&] { EXPECT_NE(turns_.TakeWithin(kChip, absl::Seconds(30)), nullptr); });
  turn.reset();
  call.join();
  turn = turns_.Take(kChip);
  std::thread closed([&] { EXPECT_EQ(turns_.TakeWithin(kChip, absl::Seconds(30)), nullptr); });
  turns_.Close();
  closed.join();
}

TEST_F(ChipTurnsTest, CloseEndsTheWaitAndThoseToCome) {
  const auto turn = turns_.Take(kChip);
  std::thread call([&] { EXPECT_EQ(turns_.Take(kChip), nullptr); });
  turns_.Close();
  call.join();
  EXPECT_EQ(turns_.Take(kOther), nullptr);
  EXPECT_FALSE(turns_.TryTake(kOther));
}

TEST_F(ChipTurnsTest, SaysWhatKeepsTheChip) {
  EXPECT_EQ(turns_.Doing(kChip), "");
  ASSERT_TRUE(turns_.TryTake(kChip));
  clock_.seconds += 3;
  EXPECT_EQ(turns_.Doing(kChip), "the chip has been read for 3 s");
  turns_.Reading(kChip, "its health");
  EXPECT_EQ(turns_.Doing(kChip), "the chip has been read for 3 s, now its health");
  turns_.Reading(kOther, "its health");
  EXPECT_EQ(turns_.Doing(kOther), "");
  clock_.seconds += 12;
  EXPECT_EQ(turns_.Doing(kChip), "reading its health has not returned for 12 s");
  EXPECT_EQ(turns_.Stuck(kChip), "reading its health has not returned for 10 s");
  turns_.Release(kChip);
  const auto turn = turns_.Take(kChip);
  turn->Calling("dcmi_get_device_info");
  clock_.seconds += 2;
  turn->Calling("dcmi_create_vdevice");
  EXPECT_THAT(turns_.Doing(kChip), AllOf(HasSubstr("2 s"), HasSubstr("dcmi_create_vdevice")));
  clock_.seconds += 28;
  EXPECT_EQ(turns_.Doing(kChip), "dcmi_create_vdevice has not returned for 28 s");
  EXPECT_EQ(turns_.Doing(kOther), "");
}

TEST_F(ChipTurnsTest, ALongTurnIsStuckInStepsOfTenSeconds) {
  auto turn = turns_.Take(kChip);
  turn->Calling("dcmi_set_destroy_vdevice");
  clock_.seconds += 10;
  EXPECT_EQ(turns_.Stuck(kChip), "");
  EXPECT_FALSE(turns_.IsStuck(kChip));
  clock_.seconds += 1;
  EXPECT_EQ(turns_.Stuck(kChip), "dcmi_set_destroy_vdevice has not returned for 10 s");
  EXPECT_TRUE(turns_.IsStuck(kChip));
  clock_.seconds += 8;
  EXPECT_EQ(turns_.Stuck(kChip), "dcmi_set_destroy_vdevice has not returned for 10 s");
  clock_.seconds += 1;
  EXPECT_EQ(turns_.Stuck(kChip), "dcmi_set_destroy_vdevice has not returned for 20 s");
  EXPECT_EQ(turns_.Stuck(kOther), "");
  turn.reset();
  EXPECT_EQ(turns_.Stuck(kChip), "");
}

TEST_F(ChipTurnsTest, ManySlowCallsAreStuckAsWell) {
  const auto turn = turns_.Take(kChip);
  for (int i = 0; i < 4; ++i) {
    turn->Calling("dcmi_get_device_info");
    clock_.seconds += 5;
  }
  EXPECT_EQ(turns_.Stuck(kChip),
            "calls about the chip have gone on for 20 s, the last is dcmi_get_device_info");
}

}  // namespace
}  // namespace ascend::agent
