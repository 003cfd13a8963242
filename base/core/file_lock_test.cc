#include "base/core/file_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend {
namespace {

using ::testing::HasSubstr;

TEST(FileLockTest, ExcludesThreads) {
  TempDir dir;
  int counter = 0;  // not atomic: the lock protects it
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        auto lock = FileLock::Acquire(dir.File("l"), absl::Seconds(30));
        ASSERT_THAT(lock, IsOk());
        ++counter;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter, 800);
}

TEST(FileLockTest, TimesOutWhileAnotherProcessHoldsItAndFollowsWhenThatDies) {
  TempDir dir;
  int locked[2], done[2];
  ASSERT_EQ(::pipe(locked), 0);
  ASSERT_EQ(::pipe(done), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto lock = FileLock::Acquire(dir.File("l"), absl::Seconds(5));
    char byte = lock.ok() ? '1' : '0';
    (void)!::write(locked[1], &byte, 1);
    (void)!::read(done[0], &byte, 1);
    ::_exit(0);  // no clean-up: the kernel drops the lock
  }
  char byte = 0;
  ASSERT_EQ(::read(locked[0], &byte, 1), 1);
  ASSERT_EQ(byte, '1');
  EXPECT_THAT(FileLock::Acquire(dir.File("l"), absl::Milliseconds(30)),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr(dir.File("l"))));
  std::thread release([&] { (void)!::write(done[1], "x", 1); });
  EXPECT_THAT(FileLock::Acquire(dir.File("l"), absl::Seconds(10)), IsOk());
  release.join();
  ::waitpid(child, nullptr, 0);
  for (int fd : {locked[0], locked[1], done[0], done[1]}) ::close(fd);
}

TEST(FileLockTest, UnlinkedFileIsNoticed) {
  TempDir dir;
  auto lock = FileLock::Acquire(dir.File("l"), absl::Seconds(1));
  ASSERT_THAT(lock, IsOk());
  EXPECT_TRUE(lock->StillLinked());
  ASSERT_EQ(::unlink(dir.File("l").c_str()), 0);
  EXPECT_FALSE(lock->StillLinked());
  // A new file of the same name is another lock.
  EXPECT_THAT(FileLock::Acquire(dir.File("l"), absl::ZeroDuration()), IsOk());
}

TEST(FileLockTest, MoveKeepsAndAssignmentReleases) {
  TempDir dir;
  FileLock kept;
  {
    auto lock = FileLock::Acquire(dir.File("l"), absl::Seconds(1));
    ASSERT_THAT(lock, IsOk());
    kept = *std::move(lock);
  }
  EXPECT_TRUE(kept.held());
  EXPECT_THAT(FileLock::Acquire(dir.File("l"), absl::ZeroDuration()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  kept = FileLock();
  EXPECT_THAT(FileLock::Acquire(dir.File("l"), absl::ZeroDuration()), IsOk());
}

TEST(FileLockTest, MissingDirectoryIsAnErrorWithThePath) {
  TempDir dir;
  EXPECT_THAT(FileLock::Acquire(dir.File("none/l"), absl::ZeroDuration()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none/l")));
}

}  // namespace
}  // namespace ascend
