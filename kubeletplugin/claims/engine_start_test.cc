// The start, and CDI files that go missing while claims are prepared.
#include <fcntl.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/claims/claim_gate.h"
#include "kubeletplugin/testing/engine_fixture.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// ----------------------------------------------------------------------- CDI files that go missing

// CDI-01 (c): the kubelet will not ask.
TEST_F(EngineTest, CdiFilesComeBackByThemselves) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  Claim("b", {Result("npu-1")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  ASSERT_THAT(plugin->engine.Prepare(Ref("b")), IsOk());
  const std::string a = Bytes(CdiPath("a")), b = Bytes(CdiPath("b"));
  // Emptied.
  ASSERT_EQ(::unlink(CdiPath("a").c_str()), 0);
  ASSERT_EQ(::unlink(CdiPath("b").c_str()), 0);
  EXPECT_TRUE(WaitFor([&] { return HasCdi("a") && HasCdi("b"); }));
  // Removed and made again by somebody else. In one step, for it is filled while it is emptied.
  std::filesystem::rename(paths_.cdi_root(), dir_.File("gone"));
  ::mkdir(paths_.cdi_root().c_str(), 0755);
  EXPECT_TRUE(WaitFor([&] { return HasCdi("a") && HasCdi("b"); }));
  // Removed for good.
  std::filesystem::rename(paths_.cdi_root(), dir_.File("away"));
  EXPECT_TRUE(WaitFor([&] { return HasCdi("a") && HasCdi("b"); }));
  EXPECT_EQ(Bytes(CdiPath("a")), a);
  EXPECT_EQ(Bytes(CdiPath("b")), b);
  EXPECT_THAT(ClaimLocks(), UnorderedElementsAre("claim-a", "claim-b"));
}

// Claims that are unprepared while they are being restored: no file comes back, no lock is left.
TEST_F(EngineTest, RestoringLeavesNothingOfUnpreparedClaims) {
  auto plugin = Start();
  for (int round = 0; round < 20; ++round) {
    for (int chip = 0; chip < 8; ++chip) {
      const std::string uid = absl::StrCat("uid-", chip);
      Claim(uid, {Result(absl::StrCat("npu-", chip))});
      ASSERT_THAT(plugin->engine.Prepare(Ref(uid)), IsOk());
    }
    for (int chip = 0; chip < 8; ++chip) ::unlink(CdiPath(absl::StrCat("uid-", chip)).c_str());
    // They are restored in ascending order, from a list that was made before.
    for (int chip = 7; chip >= 0; --chip) {
      ASSERT_THAT(plugin->engine.Unprepare(Ref(absl::StrCat("uid-", chip))), IsOk());
    }
  }
  plugin.reset();
  ExpectNothingLeft();
}

// What stood in the way may go by itself: a kernel driver that is loaded late, for example.
TEST_F(EngineTest, RestoringIsTriedAgain) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  plugin.reset();
  ASSERT_EQ(::unlink(CdiPath("a").c_str()), 0);  // a reboot
  host_.ProcDevices("Character devices:\n  1 mem\n");
  plugin = Start();
  EXPECT_FALSE(HasCdi("a"));
  host_.ProcDevices("Character devices:\n236 devdrv-cdev\n");
  EXPECT_TRUE(WaitFor([&] { return HasCdi("a"); }));
}

// -------------------------------------------------------------------------------------- start-up

// ORD-10, REC-11: a CDI file without a record is swept; what is not ours is not touched.
TEST_F(EngineTest, StartSweepsOrphanedCdiFiles) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  plugin.reset();
  ASSERT_THAT(WriteFileAtomically(CdiPath("orphan"), Bytes(CdiPath("a"))), IsOk());
  const std::vector<std::string> foreign = {
      "vendor.com-gpu.json", "k8s.gpu.example.com-claim_orphan.json",
      "k8s.npu.huawei.com-claim_.json", "k8s.npu.huawei.com-claim_orphan.yaml"};
  for (const std::string& name : foreign) {
    ASSERT_THAT(WriteFileAtomically(JoinPath(paths_.cdi_root(), name), "{}"), IsOk());
  }
  plugin = Start();
  EXPECT_FALSE(HasCdi("orphan"));
  EXPECT_TRUE(HasCdi("a"));
  for (const std::string& name : foreign) {
    EXPECT_TRUE(std::filesystem::exists(JoinPath(paths_.cdi_root(), name))) << name;
  }
  EXPECT_THAT(ClaimLocks(), ElementsAre("claim-a"));
}

// ORD-18: the other instance is between writing the CDI file and the record.
TEST_F(EngineTest, StartLeavesTheCdiFileOfAClaimInProgress) {
  auto plugin = Start();
  absl::StatusOr<ClaimGate> inside = EnterNewest(paths_.claim_lock("busy"), absl::ZeroDuration());
  ASSERT_THAT(inside, IsOk());
  ASSERT_THAT(WriteFileAtomically(CdiPath("busy"), "{}"), IsOk());
  auto second = Start();
  EXPECT_TRUE(HasCdi("busy"));
}

// CDI-01 (b), CDI-02: all CDI files are made anew, the missing and the stale.
TEST_F(EngineTest, StartMakesCdiFilesAnew) {
  auto plugin = Start();
  for (const char* uid : {"0", "1", "2"}) {
    Claim(uid, {Result(absl::StrCat("npu-", uid))});
    ASSERT_THAT(plugin->engine.Prepare(Ref(uid)), IsOk());
  }
  const std::string good = Bytes(CdiPath("0"));
  plugin.reset();
  ASSERT_EQ(::unlink(CdiPath("0").c_str()), 0);
  ASSERT_THAT(WriteFileAtomically(CdiPath("1"), "half a fi"), IsOk());
  host_.Remove("/dev/devmm_svm");
  plugin = Start();
  for (const char* uid : {"0", "1", "2"}) {
    EXPECT_EQ(Spec(uid).container_edits.device_nodes.size(), 2u) << uid;
  }
}

// The kernel's limits on inotify are shared with everything else on the node.
TEST_F(EngineTest, WithoutRoomForAWatchItLooksNowAndThen) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr int kNoNamespace = 77;
  const auto run_without_inotify = [&] {
    // For single-threaded programs only: this one, started anew for the test.
    if (::unshare(CLONE_NEWUSER) != 0) std::_Exit(kNoNamespace);
    std::ofstream("/proc/sys/user/max_inotify_instances") << 0;
    if (::inotify_init1(IN_CLOEXEC) >= 0) std::_Exit(kNoNamespace);
    auto plugin = Start();
    Claim("a", {Result("npu-0")});
    bool good = plugin->engine.Prepare(Ref("a")).ok() && ::unlink(CdiPath("a").c_str()) == 0;
    good = good && WaitFor([&] { return HasCdiFile("a"); });
    good = good && plugin->engine.Unprepare(Ref("a")).ok();
    std::_Exit(good ? 0 : 1);
  };
  int code = -1;
  const auto ended = [&code](int status) {
    code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return code == 0 || code == kNoNamespace;
  };
  EXPECT_EXIT(run_without_inotify(), ended, "");
  if (code == kNoNamespace) GTEST_SKIP() << "user namespaces are refused";
}

// REC-05, CDI-01: a reboot. The CDI directory was on a tmpfs, the record survives.
TEST_F(EngineTest, ClaimsSurviveAReboot) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  const auto before = plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(before, IsOk());
  const std::string cdi = Bytes(CdiPath("a"));
  plugin.reset();
  std::filesystem::remove_all(paths_.cdi_root());
  options_.boot_id = "boot-2";
  plugin = Start();
  EXPECT_EQ(Bytes(CdiPath("a")), cdi);
  Claim("b", {Result("npu-0")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")), Refused("default/claim-a"));
  const auto after = plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(after, IsOk());
  EXPECT_EQ(*after, *before);
  EXPECT_EQ(Record("a").boot_id, "boot-2");
}

// CDI-05: after a reboot the nodes have other numbers: the file follows the chip, and until it can,
// there is none rather than one with somebody else's chip.
TEST_F(EngineTest, AfterARebootTheFileFollowsTheChip) {
  const auto chips_at = [&](int node_of_0, int node_of_1) {
    AddChips(2, vnpu::Family::k950);
    vnpu::Inventory moved = inventory();
    moved.chips[0].node_number = moved.chips[0].logic_id = node_of_0;
    moved.chips[1].node_number = moved.chips[1].logic_id = node_of_1;
    SetInventory(moved);
    host_.Chip(node_of_0, 0);
    host_.Chip(node_of_1, 1);
  };
  chips_at(0, 1);
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  plugin.reset();
  std::filesystem::remove_all(paths_.cdi_root());
  chips_at(1, 0);
  options_.boot_id = "boot-2";
  plugin = Start();
  EXPECT_FALSE(HasCdi("a"));
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  const cdi::Spec spec = Spec("a");
  ASSERT_EQ(spec.devices.size(), 2u);
  EXPECT_EQ(spec.devices[0].container_edits.device_nodes.at(0).path, "/dev/davinci1");
  EXPECT_EQ(Record("a").devices.at(0).chips.at(0).node_number, 1);
}

// A Prepare that failed and was never unprepared leaves its lock.
TEST_F(EngineTest, StartSweepsStaleClaimLocks) {
  auto plugin = Start();
  Claim("live", {Result("npu-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("live")), IsOk());
  EXPECT_FALSE(plugin->engine.Prepare(Ref("young")).ok());
  EXPECT_FALSE(plugin->engine.Prepare(Ref("stale")).ok());
  absl::StatusOr<ClaimGate> inside = EnterNewest(paths_.claim_lock("busy"), absl::ZeroDuration());
  ASSERT_THAT(inside, IsOk());
  for (const char* uid : {"live", "stale", "busy"}) {
    const timespec old[2] = {{1000, 0}, {1000, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, paths_.claim_lock(uid).c_str(), old, 0), 0);
  }
  auto second = Start();
  EXPECT_THAT(ClaimLocks(), UnorderedElementsAre("claim-busy", "claim-live", "claim-young"));
}

TEST_F(EngineTest, StartRemovesTemporaries) {
  Start();
  const std::string record = JoinPath(paths_.claims_directory(), ".a.0123456789abcdef.tmp");
  const std::string cdi =
      JoinPath(paths_.cdi_root(), absl::StrCat(".", paths_.cdi_file("a"), ".0123456789abcdef.tmp"));
  const std::string foreign = JoinPath(paths_.cdi_root(), ".other.json.0123456789abcdef.tmp");
  for (const std::string& path : {record, cdi, foreign}) {
    ASSERT_THAT(WriteFileAtomically(path, "half"), IsOk());
  }
  Start();  // they are young: another instance may be at work
  EXPECT_TRUE(std::filesystem::exists(record) && std::filesystem::exists(cdi));
  for (const std::string& path : {record, cdi, foreign}) {
    const timespec old[2] = {{1000, 0}, {1000, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), old, 0), 0);
  }
  Start();
  EXPECT_FALSE(std::filesystem::exists(record));
  EXPECT_FALSE(std::filesystem::exists(cdi));
  EXPECT_TRUE(std::filesystem::exists(foreign));
}

TEST_F(EngineTest, AStateDirectoryThatCannotBeMadeStopsTheStart) {
  ASSERT_THAT(WriteFileAtomically(dir_.File("kubelet"), "no directory"), IsOk());
  EXPECT_FALSE(NotStarted()->engine.Start().ok());
}

}  // namespace
}  // namespace ascend::kubeletplugin
