#include "kubeletplugin/slices/publisher_role.h"

#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::IsEmpty;

class PublisherRoleTest : public ::testing::Test {
 protected:
  std::unique_ptr<PublisherRole> Start(int64_t start) {
    return std::make_unique<PublisherRole>(dir_.path(), start);
  }
  std::vector<std::string> Files() {
    const auto names = ListDirectory(dir_.path());
    EXPECT_THAT(names, IsOk());
    return *names;
  }
  // Runs `use` in another process, which then dies without any clean-up.
  template <typename Use>
  static void CrashAfter(Use use) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(use() ? 0 : 1);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  TempDir dir_;
};

TEST_F(PublisherRoleTest, AloneHoldsIt) {
  auto role = Start(1);
  EXPECT_FALSE(role->held());
  EXPECT_THAT(Files(), IsEmpty());  // takes part in nothing before it is asked
  EXPECT_THAT(role->Update(), IsOkAndHolds(true));
  EXPECT_TRUE(role->held());
  EXPECT_TRUE(role->newest());
  EXPECT_THAT(role->Update(), IsOkAndHolds(true));
}

TEST_F(PublisherRoleTest, TheOlderStepsBackForTheNewest) {  // SLC-09
  auto old_one = Start(1);
  ASSERT_THAT(old_one->Update(), IsOkAndHolds(true));
  auto new_one = Start(2);
  EXPECT_THAT(new_one->Update(), IsOkAndHolds(false));  // never two at once
  EXPECT_TRUE(new_one->newest());
  EXPECT_THAT(old_one->Update(), IsOkAndHolds(false));
  EXPECT_FALSE(old_one->held());
  EXPECT_FALSE(old_one->newest());
  EXPECT_THAT(new_one->Update(), IsOkAndHolds(true));
}

TEST_F(PublisherRoleTest, AnOlderNewcomerWaits) {
  auto new_one = Start(2);
  ASSERT_THAT(new_one->Update(), IsOkAndHolds(true));
  auto old_one = Start(1);
  for (int i = 0; i < 20; ++i) {  // no ping-pong
    EXPECT_THAT(old_one->Update(), IsOkAndHolds(false));
    EXPECT_FALSE(old_one->newest());
    EXPECT_THAT(new_one->Update(), IsOkAndHolds(true));
  }
}

TEST_F(PublisherRoleTest, NothingChangesHandsTwice) {
  auto old_one = Start(1);
  ASSERT_THAT(old_one->Update(), IsOkAndHolds(true));
  auto new_one = Start(2);
  bool had = false;
  int changes = 0;
  for (int i = 0; i < 50; ++i) {
    const auto a = old_one->Update(), b = new_one->Update();
    ASSERT_THAT(a, IsOk());
    ASSERT_THAT(b, IsOk());
    ASSERT_FALSE(*a && *b);
    if (*b != had) ++changes;
    had = *b;
  }
  EXPECT_EQ(changes, 1);
}

TEST_F(PublisherRoleTest, TheNextFollowsTheNewest) {
  auto first = Start(1), second = Start(2), third = Start(3);
  // In the order in which the queue of an earlier design let the middle one block the newest.
  ASSERT_THAT(first->Update(), IsOkAndHolds(true));
  ASSERT_THAT(second->Update(), IsOkAndHolds(false));
  ASSERT_THAT(third->Update(), IsOkAndHolds(false));
  ASSERT_THAT(first->Update(), IsOkAndHolds(false));
  ASSERT_THAT(second->Update(), IsOkAndHolds(false));  // free, but not for the middle one
  ASSERT_THAT(first->Update(), IsOkAndHolds(false));
  ASSERT_THAT(third->Update(), IsOkAndHolds(true));
  third.reset();
  EXPECT_THAT(first->Update(), IsOkAndHolds(false));
  EXPECT_THAT(second->Update(), IsOkAndHolds(true));
  second.reset();
  EXPECT_THAT(first->Update(), IsOkAndHolds(true));
  first.reset();
  for (const std::string& name : Files()) EXPECT_FALSE(absl::StartsWith(name, "instance")) << name;
}

TEST_F(PublisherRoleTest, ACrashFreesIt) {
  CrashAfter([&] {
    PublisherRole role(dir_.path(), 9);
    const auto held = role.Update();
    return held.ok() && *held && (::_exit(0), true);
  });
  EXPECT_THAT(Files(), ::testing::Contains("instance-9"));
  auto role = Start(1);  // as after a reboot: the clock began again
  EXPECT_THAT(role->Update(), IsOkAndHolds(true));
  EXPECT_THAT(Files(), ::testing::Not(::testing::Contains("instance-9")));  // no litter
}

TEST_F(PublisherRoleTest, ACrashOfTheWaitingOneLeavesItToTheHolder) {
  auto holder = Start(1);
  ASSERT_THAT(holder->Update(), IsOkAndHolds(true));
  CrashAfter([&] {
    PublisherRole role(dir_.path(), 2);
    const auto held = role.Update();
    return held.ok() && !*held && (::_exit(0), true);
  });
  EXPECT_THAT(holder->Update(), IsOkAndHolds(true));
}

TEST_F(PublisherRoleTest, TheSameStartTimeTwice) {
  auto first = Start(1), second = Start(1);
  ASSERT_THAT(first->Update(), IsOkAndHolds(true));
  EXPECT_THAT(second->Update(), IsOkAndHolds(false));
  EXPECT_TRUE(second->newest());
  EXPECT_THAT(first->Update(), IsOkAndHolds(false));
  EXPECT_THAT(second->Update(), IsOkAndHolds(true));
}

TEST_F(PublisherRoleTest, SurvivesAnEmptiedDirectory) {
  auto first = Start(1);
  ASSERT_THAT(first->Update(), IsOkAndHolds(true));
  for (const std::string& name : Files()) ASSERT_EQ(::unlink(dir_.File(name).c_str()), 0);
  auto second = Start(2);
  ASSERT_THAT(second->Update(), IsOkAndHolds(true));
  EXPECT_THAT(first->Update(), IsOkAndHolds(false));  // its lock keeps nobody out
  EXPECT_THAT(second->Update(), IsOkAndHolds(true));
}

TEST_F(PublisherRoleTest, OtherFilesAreNoInstances) {
  for (const char* name : {"instance-", "instance-x", "instance--5", "readme"}) {
    ASSERT_THAT(WriteFileAtomically(dir_.File(name), ""), IsOk());
  }
  auto role = Start(1);
  EXPECT_THAT(role->Update(), IsOkAndHolds(true));
  EXPECT_THAT(Files(), ::testing::IsSupersetOf({"instance-x", "readme"}));
}

TEST(PublisherRoleErrorTest, NamesTheDirectory) {
  TempDir dir;
  PublisherRole role(dir.File("missing"), 1);
  EXPECT_THAT(role.Update(),
              StatusIs(absl::StatusCode::kNotFound, ::testing::HasSubstr("missing")));
}

TEST(BootTimeTest, Grows) {
  const int64_t before = BootTimeNanos();
  EXPECT_LE(before, BootTimeNanos());
  EXPECT_GT(before, 0);
}

}  // namespace
}  // namespace ascend::kubeletplugin
