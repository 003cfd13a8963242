// Who holds a chip: of several claims, and of two instances of the plugin.
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/file_lock.h"
#include "base/core/status_matchers.h"
#include "base/runtime/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/claims/prepare_error.h"
#include "kubeletplugin/testing/engine_fixture.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// ------------------------------------------------------------------------------- who holds a chip

// ORD-03
TEST_F(EngineTest, AdminAccessNeitherHoldsNorIsHeldOff) {
  auto plugin = Start();
  Claim("before", {AdminResult("npu-0")});
  Claim("work", {Result("npu-0")});
  Claim("during", {AdminResult("npu-0")});
  Claim("after", {AdminResult("npu-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("before")), IsOk());
  ASSERT_THAT(plugin->engine.Prepare(Ref("work")), IsOk());
  ASSERT_THAT(plugin->engine.Prepare(Ref("during")), IsOk());
  // CDI-10: two claims on one chip, each with a file and names of its own.
  EXPECT_EQ(Spec("before").devices[0].name, "before-npu-0");
  EXPECT_EQ(Spec("during").devices[0].name, "during-npu-0");

  const std::string record = Bytes(RecordPath("work")), cdi = Bytes(CdiPath("work"));
  ASSERT_THAT(plugin->engine.Unprepare(Ref("before")), IsOk());
  EXPECT_EQ(Bytes(RecordPath("work")), record);
  EXPECT_EQ(Bytes(CdiPath("work")), cdi);
  ASSERT_THAT(plugin->engine.Unprepare(Ref("work")), IsOk());
  ASSERT_THAT(plugin->engine.Prepare(Ref("after")), IsOk());
  // Admin claims are still there and keep nobody out.
  Claim("next", {Result("npu-0")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("next")), IsOk());
}

// A claim that has a chip both ways holds it.
TEST_F(EngineTest, AdminAccessBesideNormalUseHolds) {
  auto plugin = Start();
  Claim("a", {AdminResult("npu-0", "watch"), Result("npu-0", "use")});
  const auto answer = plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->size(), 2u);
  Claim("b", {Result("npu-0")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")), Refused("default/claim-a"));
}

// ORD-01, ORD-02
TEST_F(EngineTest, AHeldChipIsRefusedAndTheHolderNamed) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  Claim("b", {Result("npu-1"), Result("npu-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(StartsWith("claim default/claim-b: chip 0 is still prepared"),
                             HasSubstr("default/claim-a"), HasSubstr("UID a"))));
  EXPECT_FALSE(HasRecord("b"));
  EXPECT_FALSE(HasCdi("b"));
  // The one that is free was not taken along.
  Claim("c", {Result("npu-1")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("c")), IsOk());
}

// ORD-02: the pair of dies of a module, and the policy changes while it is held.
TEST_F(EngineTest, ADieOfAHeldModuleIsHeld) {
  AddChips(4, vnpu::Family::kA3);
  auto plugin = Start();
  Claim("a", {Result("npu-2-3")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  vnpu::Inventory independent = inventory();
  independent.multi_die_policy = vnpu::MultiDiePolicy::kIndependent;
  SetInventory(independent);
  Claim("b", {Result("npu-3")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")), Refused("default/claim-a"));
  Claim("c", {Result("npu-1")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("c")), IsOk());
}

// ORD-01: the holder goes while the next claim waits; it is woken, it does not sleep.
TEST_F(EngineTest, AHolderThatLeavesInTimeIsWaitedFor) {
  options_.holder_wait = absl::Seconds(60);
  options_.prepare_budget = absl::Seconds(60);
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  Claim("b", {Result("npu-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  const absl::Duration start = Clock::Real().Monotonic();
  absl::StatusOr<std::vector<PreparedDevice>> answer;
  std::thread waiting([&] { answer = plugin->engine.Prepare(Ref("b")); });
  EXPECT_TRUE(client_.WaitUntil([&] { return client_.gets() >= 2; }));
  EXPECT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  waiting.join();
  EXPECT_THAT(answer, IsOk());
  EXPECT_LT(Clock::Real().Monotonic() - start, absl::Seconds(30));
  EXPECT_FALSE(HasRecord("a"));
  EXPECT_TRUE(HasRecord("b"));
}

// ORD-02
TEST_F(EngineTest, OfTwoConcurrentPreparesOneWins) {
  auto plugin = Start();
  for (int round = 0; round < 20; ++round) {
    Claim("a", {Result("npu-0")});
    Claim("b", {Result("npu-0")});
    absl::StatusOr<std::vector<PreparedDevice>> a, b;
    std::thread first([&] { a = plugin->engine.Prepare(Ref("a")); });
    std::thread second([&] { b = plugin->engine.Prepare(Ref("b")); });
    first.join();
    second.join();
    ASSERT_NE(a.ok(), b.ok()) << a.status() << " " << b.status();
    EXPECT_THAT(a.ok() ? b : a, Refused(a.ok() ? "default/claim-a" : "default/claim-b"));
    EXPECT_EQ(HasRecord("a"), a.ok());
    EXPECT_EQ(HasRecord("b"), b.ok());
    EXPECT_EQ(HasCdi("a"), a.ok());
    EXPECT_EQ(HasCdi("b"), b.ok());
    ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
    ASSERT_THAT(plugin->engine.Unprepare(Ref("b")), IsOk());
  }
  ExpectNothingLeft();
}

// ORD-12: a chip that is being worked on delays no other chip.
TEST_F(EngineTest, ABusyChipDelaysOnlyItself) {
  options_.lock_wait = absl::Milliseconds(20);
  auto plugin = Start();
  absl::StatusOr<FileLock> busy = FileLock::Acquire(paths_.chip_lock(0), absl::ZeroDuration());
  ASSERT_THAT(busy, IsOk());
  for (int chip = 1; chip < 8; ++chip) {
    const std::string uid = absl::StrCat("free-", chip);
    Claim(uid, {Result(absl::StrCat("npu-", chip))});
    EXPECT_THAT(plugin->engine.Prepare(Ref(uid)), IsOk());
  }
  Claim("busy", {Result("npu-0")});
  const absl::Status refused = plugin->engine.Prepare(Ref("busy")).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("chip 0")));
  EXPECT_EQ(ReasonOf(refused), PrepareError::kLock);
  busy->Release();
  EXPECT_THAT(plugin->engine.Prepare(Ref("busy")), IsOk());
}

TEST_F(EngineTest, AChipThatIsBeingResetIsSaidToBe) {
  options_.lock_wait = absl::Milliseconds(20);
  options_.resetting = [] { return std::set<int>{0, 1}; };
  auto plugin = Start();
  absl::StatusOr<FileLock> reset = FileLock::Acquire(paths_.chip_lock(0), absl::ZeroDuration());
  absl::StatusOr<FileLock> other = FileLock::Acquire(paths_.chip_lock(2), absl::ZeroDuration());
  ASSERT_THAT(reset, IsOk());
  ASSERT_THAT(other, IsOk());
  // An administrator's pod waits as well.
  for (const kube::DeviceResult& result : {Result("npu-0"), AdminResult("npu-0")}) {
    Claim("a", {result});
    const absl::Status refused = plugin->engine.Prepare(Ref("a")).status();
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("chip 0 is being reset because of a fault")));
    EXPECT_EQ(ReasonOf(refused), PrepareError::kLock);
  }
  Claim("b", {Result("npu-2")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("chip 2")));
  reset->Release();
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), IsOk()) << "the lock decides";
}

// ------------------------------------------------------------------------------- two instances

// ORD-13
TEST_F(EngineTest, TwoInstancesShareTheirClaims) {
  auto old_plugin = Start(), new_plugin = Start();
  Claim("a", {Result("npu-0")});
  Claim("b", {Result("npu-0")});
  const auto first = old_plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(first, IsOk());
  // A retry may go to the other one.
  const auto again = new_plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(*again, *first);
  EXPECT_THAT(new_plugin->engine.Prepare(Ref("b")), Refused("default/claim-a"));
  // Any instance unprepares what another one prepared.
  EXPECT_THAT(new_plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(old_plugin->engine.Prepare(Ref("b")), IsOk());
  EXPECT_THAT(old_plugin->engine.Unprepare(Ref("b")), IsOk());
  ExpectNothingLeft();
}

// ORD-13, ORD-02
TEST_F(EngineTest, OfTwoInstancesOneWins) {
  auto one = Start(), two = Start();
  for (int round = 0; round < 20; ++round) {
    Claim("a", {Result("npu-0")});
    Claim("b", {Result("npu-0")});
    absl::StatusOr<std::vector<PreparedDevice>> a, b;
    std::thread first([&] { a = one->engine.Prepare(Ref("a")); });
    std::thread second([&] { b = two->engine.Prepare(Ref("b")); });
    first.join();
    second.join();
    ASSERT_NE(a.ok(), b.ok()) << a.status() << " " << b.status();
    ASSERT_THAT(two->engine.Unprepare(Ref("a")), IsOk());
    ASSERT_THAT(one->engine.Unprepare(Ref("b")), IsOk());
  }
}

// ORD-13, ORD-01: the holder leaves through the other instance.
TEST_F(EngineTest, AChangeByTheOtherInstanceWakesAWaiter) {
  options_.holder_wait = absl::Seconds(60);
  options_.prepare_budget = absl::Seconds(60);
  auto one = Start(), two = Start();
  Claim("a", {Result("npu-0")});
  Claim("b", {Result("npu-0")});
  ASSERT_THAT(one->engine.Prepare(Ref("a")), IsOk());
  absl::StatusOr<std::vector<PreparedDevice>> answer;
  std::thread waiting([&] { answer = one->engine.Prepare(Ref("b")); });
  EXPECT_TRUE(client_.WaitUntil([&] { return client_.gets() >= 2; }));
  EXPECT_THAT(two->engine.Unprepare(Ref("a")), IsOk());
  one->engine.NotifyChange();  // as the watch on the records' directory does
  waiting.join();
  EXPECT_THAT(answer, IsOk());
}

// ORD-13, ORD-04: across instances, too.
TEST_F(EngineTest, UnprepareInOneInstanceStopsALatePrepareInTheOther) {
  auto one = Start(), two = Start();
  Claim("a", {Result("npu-0")});
  client_.BlockGets();
  absl::StatusOr<std::vector<PreparedDevice>> late;
  std::thread first([&] { late = one->engine.Prepare(Ref("a")); });
  ASSERT_TRUE(client_.WaitForBlockedGets(1));
  ASSERT_THAT(two->engine.Unprepare(Ref("a")), IsOk());
  client_.ReleaseGets();
  first.join();
  EXPECT_THAT(late, StatusIs(absl::StatusCode::kAborted));
  ExpectNothingLeft();
}

// ORD-18: starts that race with Prepares lose nothing.
TEST_F(EngineTest, AStartLeavesClaimsInProgressAlone) {
  auto plugin = Start();
  std::atomic<bool> stop = false;
  std::thread starts([&] {
    while (!stop) Start();
  });
  for (int i = 0; i < 50; ++i) {
    const std::string uid = absl::StrCat("uid-", i);
    Claim(uid, {Result("npu-0")});
    const auto answer = plugin->engine.Prepare(Ref(uid));
    EXPECT_THAT(answer, IsOk());
    EXPECT_TRUE(HasRecord(uid) && HasCdi(uid)) << uid;
    ASSERT_THAT(plugin->engine.Unprepare(Ref(uid)), IsOk());
  }
  stop = true;
  starts.join();
  ExpectNothingLeft();
}

}  // namespace
}  // namespace ascend::kubeletplugin
