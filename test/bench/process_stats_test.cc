#include "test/bench/process_stats.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "base/core/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::bench {
namespace {

using ::testing::Contains;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

TEST(ProcessStatsTest, CountsOpenFiles) {
  const absl::StatusOr<ProcessStats> before = LookAt(::getpid());
  ASSERT_THAT(before, IsOk());
  const UniqueFd a(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd b(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const absl::StatusOr<ProcessStats> after = LookAt(::getpid());
  ASSERT_THAT(after, IsOk());
  EXPECT_EQ(after->open_files, before->open_files + 2);
}

// Two threads hand a turn to and fro: each turn is one wake-up of each.
TEST(ProcessStatsTest, CountsWakeUpsByThread) {
  constexpr int kTurns = 200;
  Mutex mutex;
  CondVar changed;
  int turn = 0;
  const auto take_turns = [&](int parity) {
    MutexLock lock(&mutex);
    while (turn < 2 * kTurns) {
      if (turn % 2 == parity) {
        ++turn;
        changed.SignalAll();
      } else {
        changed.Wait(&mutex);
      }
    }
  };
  const absl::StatusOr<ProcessStats> before = LookAt(::getpid());
  ASSERT_THAT(before, IsOk());
  bool looked = false;
  std::thread other([&] {
    pthread_setname_np(pthread_self(), "turns");
    take_turns(1);
    MutexLock lock(&mutex);
    while (!looked) changed.Wait(&mutex);
  });
  take_turns(0);
  const absl::StatusOr<ProcessStats> after = LookAt(::getpid());
  {
    MutexLock lock(&mutex);
    looked = true;
    changed.SignalAll();
  }
  other.join();
  ASSERT_THAT(after, IsOk());
  const Activity activity = Between(*before, *after);
  const double seconds = absl::ToDoubleSeconds(after->when - before->when);
  EXPECT_THAT(activity.by_thread, Contains(Pair("turns", Ge(kTurns / 2 / seconds))));
  EXPECT_GE(activity.wakeups_per_second * seconds, kTurns);
}

TEST(ProcessStatsTest, ActivityIsTheDifference) {
  ProcessStats before, after;
  before.when = absl::UnixEpoch();
  after.when = before.when + absl::Seconds(10);
  before.threads[1] = {.name = "old", .switches = 1000, .cpu = absl::Seconds(50)};
  before.threads[2] = {.name = "ended", .switches = 70, .cpu = absl::Seconds(7)};
  after.threads[1] = {.name = "old", .switches = 1020, .cpu = absl::Seconds(51)};
  after.threads[3] = {.name = "new", .switches = 10, .cpu = absl::Milliseconds(500)};
  after.threads[4] = {.name = "quiet"};
  const Activity activity = Between(before, after);
  EXPECT_DOUBLE_EQ(activity.wakeups_per_second, 3);
  EXPECT_DOUBLE_EQ(activity.cpu_percent, 15);
  EXPECT_THAT(activity.by_thread, Contains(Pair("old", 2)));
  EXPECT_THAT(activity.by_thread, Contains(Pair("new", 1)));
  EXPECT_THAT(activity.by_thread, Not(Contains(Key("quiet"))));
}

TEST(ProcessStatsTest, NoTimeIsNoActivity) {
  ProcessStats look;
  look.threads[1] = {.name = "main", .switches = 5};
  EXPECT_EQ(Between(look, look).wakeups_per_second, 0);
}

TEST(ProcessStatsTest, EndedProcess) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_GT(child, 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_THAT(LookAt(child),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(std::to_string(child))));
}

}  // namespace
}  // namespace ascend::bench
