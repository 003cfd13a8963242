#include "kubeletplugin/claims/claim_gate.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ClaimGateTest : public ::testing::Test {
 protected:
  ClaimGate Open() {
    absl::StatusOr<ClaimGate> gate = ClaimGate::Open(path_);
    EXPECT_THAT(gate, IsOk());
    return *std::move(gate);
  }
  TempDir dir_;
  const std::string path_ = dir_.File("claim-1");
};

TEST_F(ClaimGateTest, LetsOneInAtATime) {
  ClaimGate first = Open(), second = Open();
  ASSERT_THAT(first.Enter(absl::Seconds(10)), IsOk());
  EXPECT_THAT(second.Enter(absl::ZeroDuration()),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr(path_)));
}

TEST_F(ClaimGateTest, OpenHoldsNothing) {
  ClaimGate waiting = Open();
  EXPECT_THAT(EnterNewest(path_, absl::ZeroDuration()), IsOk());
}

// ORD-04: who opened before an Unprepare ended is turned away.
TEST_F(ClaimGateTest, AnOlderGenerationIsTurnedAway) {
  ClaimGate late = Open();
  {
    absl::StatusOr<ClaimGate> unprepare = EnterNewest(path_, absl::Seconds(10));
    ASSERT_THAT(unprepare, IsOk());
    ASSERT_THAT(unprepare->EndGeneration(), IsOk());
  }
  EXPECT_THAT(late.Enter(absl::Seconds(10)),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("unprepared")));
  // ... and stays away although the claim has a new generation by now.
  ClaimGate next = Open();
  EXPECT_THAT(next.Enter(absl::ZeroDuration()), IsOk());
}

// ORD-04: also who already waits at the gate while the Unprepare is inside.
TEST_F(ClaimGateTest, AWaiterIsTurnedAway) {
  ClaimGate late = Open();
  absl::StatusOr<ClaimGate> unprepare = EnterNewest(path_, absl::Seconds(10));
  ASSERT_THAT(unprepare, IsOk());
  absl::Status entered;
  std::thread waiter([&] { entered = late.Enter(absl::Seconds(30)); });
  ASSERT_THAT(unprepare->EndGeneration(), IsOk());
  unprepare = absl::CancelledError();  // leaves
  waiter.join();
  EXPECT_THAT(entered, StatusIs(absl::StatusCode::kAborted));
}

TEST_F(ClaimGateTest, ANewGenerationBeginsAtOnce) {
  absl::StatusOr<ClaimGate> unprepare = EnterNewest(path_, absl::Seconds(10));
  ASSERT_THAT(unprepare, IsOk());
  ASSERT_THAT(unprepare->EndGeneration(), IsOk());
  // Even while the Unprepare has not quite left.
  ClaimGate next = Open();
  EXPECT_THAT(next.Enter(absl::ZeroDuration()), IsOk());
}

TEST_F(ClaimGateTest, EndLeavesNoFileAndMayComeTwice) {
  ClaimGate gate = Open();
  ASSERT_THAT(gate.Enter(absl::ZeroDuration()), IsOk());
  EXPECT_THAT(gate.EndGeneration(), IsOk());
  EXPECT_THAT(gate.EndGeneration(), IsOk());
  EXPECT_THAT(ListDirectory(dir_.path()), IsOkAndHolds(IsEmpty()));
}

TEST_F(ClaimGateTest, OpenExistingMakesNoGeneration) {
  EXPECT_THAT(ClaimGate::OpenExisting(path_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path_)));
  EXPECT_THAT(ListDirectory(dir_.path()), IsOkAndHolds(IsEmpty()));
  Open();
  absl::StatusOr<ClaimGate> gate = ClaimGate::OpenExisting(path_);
  ASSERT_THAT(gate, IsOk());
  EXPECT_THAT(gate->Enter(absl::ZeroDuration()), IsOk());
}

TEST_F(ClaimGateTest, OpenMakesTheFileYoung) {
  Open();
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), old, 0), 0);
  Open();
  struct stat info;
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_GT(info.st_mtime, 1000);
}

TEST_F(ClaimGateTest, MissingDirectoryIsNamed) {
  EXPECT_THAT(ClaimGate::Open(dir_.File("none/claim-1")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none/claim-1")));
}

// Every generation ends exactly once, and nobody is inside together with somebody else.
TEST_F(ClaimGateTest, Concurrency) {
  // Atomic only for TSan: who enters a new generation is ordered behind the end of the one before
  // by the file system, which it does not see.
  std::atomic<int> inside = 0, entered = 0, ended = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        absl::StatusOr<ClaimGate> gate = EnterNewest(path_, absl::Seconds(60));
        ASSERT_THAT(gate, IsOk());
        EXPECT_EQ(++inside, 1);
        ++entered;
        --inside;
        if ((i + t) % 5 == 0) {
          ++ended;
          ASSERT_THAT(gate->EndGeneration(), IsOk());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(entered, 400);
  EXPECT_EQ(ended, 80);
}

}  // namespace
}  // namespace ascend::kubeletplugin
