#include "kubeletplugin/service/health_feed.h"

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

class FakeClock : public Clock {
 public:
  absl::Time Now() const override { return now; }
  absl::Duration Monotonic() const override { return monotonic; }
  void Advance(absl::Duration duration) {
    now += duration;
    monotonic += duration;
  }
  absl::Time now = absl::FromCivil(absl::CivilSecond(2026, 11, 30, 12, 0, 0), absl::UTCTimeZone());
  absl::Duration monotonic = absl::Hours(1);
};

class HealthFeedTest : public ::testing::Test {
 protected:
  HealthFeedTest() {
    feed_.Subscribe([this] { ++told_; });
  }

  DeviceHealth Device(const std::string& name, HealthState state, const std::string& message = "") {
    return {.pool = "node-1",
            .device = name,
            .state = state,
            .message = message,
            .checked_at = clock_.now};
  }

  // "npu-0 healthy", or "npu-0 unknown: why".
  std::vector<std::string> Shown() const {
    std::vector<std::string> lines;
    for (const DeviceHealth& device : feed_.Current().value_or(std::vector<DeviceHealth>{})) {
      std::string line = device.device;
      line += device.state == HealthState::kHealthy     ? " healthy"
              : device.state == HealthState::kUnhealthy ? " unhealthy"
                                                        : " unknown";
      if (!device.message.empty()) line += ": " + device.message;
      lines.push_back(line);
    }
    return lines;
  }

  FakeClock clock_;
  HealthFeed feed_{clock_};
  int told_ = 0;
};

TEST_F(HealthFeedTest, NothingIsKnownBeforeTheFirst) {
  EXPECT_EQ(feed_.Current(), std::nullopt);
  feed_.Confirm(clock_.now);  // of nothing
  EXPECT_EQ(feed_.Current(), std::nullopt);
  EXPECT_EQ(told_, 0);
  feed_.Publish({});  // known: there is none
  EXPECT_THAT(feed_.Current(), Optional(IsEmpty()));
  EXPECT_EQ(told_, 1);
}

TEST_F(HealthFeedTest, TellsWhatCanBeSeen) {
  feed_.Publish({Device("npu-1", HealthState::kHealthy), Device("npu-0", HealthState::kUnknown)});
  EXPECT_EQ(told_, 1);
  EXPECT_THAT(Shown(), ElementsAre("npu-0 unknown", "npu-1 healthy"));
  clock_.Advance(absl::Seconds(1));
  feed_.Publish({Device("npu-0", HealthState::kUnknown), Device("npu-1", HealthState::kHealthy)});
  EXPECT_EQ(told_, 1);  // looked at again, nothing new
  EXPECT_EQ(feed_.Current()->front().checked_at, clock_.now);

  feed_.Publish(
      {Device("npu-0", HealthState::kUnhealthy, "sick"), Device("npu-1", HealthState::kHealthy)});
  EXPECT_EQ(told_, 2);
  feed_.Publish(
      {Device("npu-0", HealthState::kUnhealthy, "sicker"), Device("npu-1", HealthState::kHealthy)});
  EXPECT_EQ(told_, 3);
  feed_.Publish({Device("npu-1", HealthState::kHealthy)});
  EXPECT_EQ(told_, 4);
  EXPECT_THAT(Shown(), ElementsAre("npu-1 healthy"));
}

TEST_F(HealthFeedTest, TheLaterOfTwoEntriesCounts) {
  feed_.Publish({Device("npu-0", HealthState::kHealthy), Device("npu-0", HealthState::kUnhealthy)});
  EXPECT_THAT(Shown(), ElementsAre("npu-0 unhealthy"));
}

TEST_F(HealthFeedTest, WhatIsNotConfirmedBecomesUnknown) {
  feed_.Publish(
      {Device("npu-0", HealthState::kHealthy), Device("npu-1", HealthState::kUnhealthy, "sick")});
  clock_.Advance(HealthFeed::kFreshFor);
  EXPECT_THAT(Shown(), ElementsAre("npu-0 healthy", "npu-1 unhealthy: sick"));
  clock_.Advance(absl::Milliseconds(1));
  const std::vector<std::string> stale = {
      "npu-0 unknown: not checked since 2026-11-30T12:00:00Z",
      "npu-1 unknown: not checked since 2026-11-30T12:00:00Z; before: sick"};
  EXPECT_EQ(Shown(), stale);
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(Shown(), stale);  // word for word, or it would look like a change each time
  EXPECT_EQ(told_, 1);

  feed_.Confirm(clock_.now - absl::Seconds(2));
  EXPECT_EQ(told_, 2);
  EXPECT_THAT(Shown(), ElementsAre("npu-0 healthy", "npu-1 unhealthy: sick"));
  EXPECT_EQ(feed_.Current()->front().checked_at, clock_.now - absl::Seconds(2));
  clock_.Advance(HealthFeed::kFreshFor - absl::Seconds(1));  // from when it was checked
  EXPECT_EQ(Shown().front(), "npu-0 unknown: not checked since 2026-11-30T13:00:13Z");
}

TEST_F(HealthFeedTest, AConfirmationThatIsOlderTakesNothingBack) {
  feed_.Publish({Device("npu-0", HealthState::kHealthy)});
  feed_.Confirm(clock_.now - absl::Hours(1));
  EXPECT_THAT(Shown(), ElementsAre("npu-0 healthy"));
  EXPECT_EQ(feed_.Current()->front().checked_at, clock_.now);
}

TEST_F(HealthFeedTest, EachDeviceHasAnAgeOfItsOwn) {
  const DeviceHealth stuck = Device("npu-0", HealthState::kHealthy);
  clock_.Advance(absl::Seconds(10));
  feed_.Publish({stuck, Device("npu-1", HealthState::kHealthy)});
  clock_.Advance(absl::Seconds(6));
  EXPECT_THAT(Shown(), ElementsAre(HasSubstr("npu-0 unknown"), "npu-1 healthy"));
}

TEST_F(HealthFeedTest, PublishingWhatIsOldMakesNothingFresh) {
  DeviceHealth device = Device("npu-0", HealthState::kHealthy);
  clock_.Advance(absl::Minutes(1));
  feed_.Publish({device});
  EXPECT_THAT(Shown(), ElementsAre(HasSubstr("unknown: not checked since 2026-11-30T12:00:00Z")));
  device.checked_at = absl::InfinitePast();
  feed_.Publish({device});
  EXPECT_THAT(Shown(), ElementsAre("npu-0 unknown: never checked"));
}

TEST_F(HealthFeedTest, TheWallClockMayJump) {
  feed_.Publish({Device("npu-0", HealthState::kHealthy)});
  clock_.now += absl::Hours(24);
  EXPECT_THAT(Shown(), ElementsAre("npu-0 healthy"));
  clock_.now -= absl::Hours(48);
  clock_.monotonic += absl::Seconds(16);
  EXPECT_THAT(Shown(), ElementsAre(HasSubstr("unknown")));
  // A time to come is now, not a promise of more freshness.
  DeviceHealth device = Device("npu-0", HealthState::kHealthy);
  device.checked_at = clock_.now + absl::Hours(24);
  feed_.Publish({device});
  clock_.Advance(absl::Seconds(16));
  EXPECT_THAT(Shown(), ElementsAre(HasSubstr("unknown")));
}

TEST_F(HealthFeedTest, NobodyIsToldAfterUnsubscribe) {
  int other = 0;
  const int64_t subscription = feed_.Subscribe([&] { ++other; });
  feed_.Publish({Device("npu-0", HealthState::kHealthy)});
  feed_.Unsubscribe(subscription);
  feed_.Publish({Device("npu-0", HealthState::kUnhealthy)});
  EXPECT_EQ(other, 1);
  EXPECT_EQ(told_, 2);
}

}  // namespace
}  // namespace ascend::kubeletplugin
