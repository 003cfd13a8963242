#include "test/bench/callers.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::bench {
namespace {

using ::testing::ElementsAre;

std::vector<std::vector<sim::ClaimRef>> Claims(int callers, int each) {
  std::vector<std::vector<sim::ClaimRef>> claims(callers);
  for (int caller = 0; caller < callers; ++caller) {
    for (int i = 0; i < each; ++i) {
      claims[caller].push_back({.name = absl::StrCat(caller, "-", i)});
    }
  }
  return claims;
}

TEST(CallersTest, EachClaimIsPreparedThenUnprepared) {
  std::vector<std::string> calls;
  const absl::StatusOr<CallTimes> times =
      RunCallers(Claims(1, 2), {.prepare =
                                    [&](const sim::ClaimRef& claim) {
                                      calls.push_back("prepare " + claim.name);
                                      return absl::OkStatus();
                                    },
                                .unprepare =
                                    [&](const sim::ClaimRef& claim) {
                                      calls.push_back("unprepare " + claim.name);
                                      return absl::OkStatus();
                                    }});
  ASSERT_THAT(times, IsOk());
  EXPECT_THAT(calls, ElementsAre("prepare 0-0", "unprepare 0-0", "prepare 0-1", "unprepare 0-1"));
  EXPECT_EQ(times->prepare.size(), 2u);
  EXPECT_EQ(times->unprepare.size(), 2u);
}

// Would never end if the callers came one after the other.
TEST(CallersTest, CallersWorkSideBySide) {
  constexpr int kCallers = 4;
  Mutex mutex;
  CondVar changed;
  int inside = 0;
  const absl::StatusOr<CallTimes> times = RunCallers(
      Claims(kCallers, 1), {.prepare =
                                [&](const sim::ClaimRef&) {
                                  MutexLock lock(&mutex);
                                  ++inside;
                                  changed.SignalAll();
                                  while (inside < kCallers) changed.Wait(&mutex);
                                  return absl::OkStatus();
                                },
                            .unprepare = [](const sim::ClaimRef&) { return absl::OkStatus(); }});
  ASSERT_THAT(times, IsOk());
  EXPECT_EQ(times->prepare.size(), static_cast<size_t>(kCallers));
}

TEST(CallersTest, AnErrorEndsTheRun) {
  std::atomic<int> prepared = 0;
  const absl::StatusOr<CallTimes> times = RunCallers(
      Claims(1, 1000), {.prepare =
                            [&](const sim::ClaimRef& claim) {
                              ++prepared;
                              return claim.name == "0-3" ? absl::InternalError("no chip")
                                                         : absl::OkStatus();
                            },
                        .unprepare = [](const sim::ClaimRef&) { return absl::OkStatus(); }});
  EXPECT_THAT(times, StatusIs(absl::StatusCode::kInternal, "no chip"));
  EXPECT_EQ(prepared, 4);
}

TEST(CallersTest, Throughput) {
  CallTimes times;
  EXPECT_EQ(times.claims_per_second(), 0);
  CallTimes more;
  for (int i = 0; i < 10; ++i) more.prepare.Add(absl::Milliseconds(1));
  more.total = absl::Seconds(2);
  times.Merge(more);
  times.Merge(more);
  EXPECT_DOUBLE_EQ(times.claims_per_second(), 5);
  EXPECT_EQ(times.prepare.size(), 20u);
}

}  // namespace
}  // namespace ascend::bench
