// What the engine does with records that cannot be read, and with failures on the way.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/claims/prepare_error.h"
#include "kubeletplugin/testing/engine_fixture.h"
#include "nlohmann/json.hpp"

namespace ascend::kubeletplugin {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// ---------------------------------------------------------------------------- unreadable records

// REC-03, REC-04: its chips are withheld, as far as the claim's CDI file tells them.
TEST_F(EngineTest, AnUnreadableRecordWithholdsItsChips) {
  auto plugin = Start();
  Claim("a", {Result("npu-0"), Result("npu-2")});
  Claim("b", {Result("npu-2")});
  Claim("c", {Result("npu-1")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  const std::string good = Bytes(RecordPath("a"));
  for (const std::string& bad :
       {std::string("{"), good.substr(0, good.size() / 2), std::string()}) {
    ASSERT_THAT(WriteFileAtomically(RecordPath("a"), bad), IsOk());
    EXPECT_THAT(
        plugin->engine.Prepare(Ref("b")),
        StatusIs(absl::StatusCode::kFailedPrecondition,
                 AllOf(HasSubstr("chip 2"), HasSubstr("UID a"), HasSubstr("cannot be read"))));
    EXPECT_THAT(plugin->engine.Prepare(Ref("c")), IsOk());
  }
  // Also after a restart.
  plugin.reset();
  plugin = Start();
  EXPECT_TRUE(HasCdi("a"));
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")), Refused("cannot be read"));
  EXPECT_EQ(Bytes(RecordPath("a")), "");
  // The kubelet's Unprepare ends it.
  EXPECT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_FALSE(HasRecord("a"));
  EXPECT_FALSE(HasCdi("a"));
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")), IsOk());
}

// REC-03, REC-04: a record that tells nothing may be of any chip that no other record holds.
TEST_F(EngineTest, AnUnreadableRecordWithoutACdiFileWithholdsWhatNobodyHolds) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  Claim("b", {Result("npu-1")});
  Claim("c", {Result("npu-2")});
  Claim("monitor", {AdminResult("npu-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  ASSERT_THAT(plugin->engine.Prepare(Ref("b")), IsOk());
  plugin.reset();
  ASSERT_THAT(WriteFileAtomically(RecordPath("a"), "garbage"), IsOk());
  std::filesystem::remove(CdiPath("a"));
  plugin = Start();
  EXPECT_THAT(plugin->engine.Prepare(Ref("c")),
              Refused(absl::StrCat("chip 2 is withheld: it may belong to the claim with UID a, "
                                   "whose record cannot be read")));
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")), IsOk());  // its own record says that it holds it
  EXPECT_THAT(plugin->engine.Prepare(Ref("monitor")), IsOk());
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(plugin->engine.Prepare(Ref("c")), IsOk());
}

// REC-03: the share's part of a name does not hide the chip.
TEST_F(EngineTest, AnUnreadableRecordOfAShareWithholdsItsChip) {
  auto plugin = Start();
  kube::DeviceResult share = Result("npu-1");
  share.share_id = "deadbeef-0000-4000-8000-000000000000";
  Claim("a", {share});
  Claim("b", {Result("npu-1")});
  Claim("c", {Result("npu-2")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  ASSERT_THAT(WriteFileAtomically(RecordPath("a"), "garbage"), IsOk());
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")), Refused("chip 1 is withheld"));
  EXPECT_THAT(plugin->engine.Prepare(Ref("c")), IsOk());
}

// Consumable capacity: shares of a chip live side by side, but not beside an exclusive claim.
TEST_F(EngineTest, SharesOfAChipArePreparedSideBySide) {
  auto plugin = Start();
  const auto share = [&](const std::string& id) {
    kube::DeviceResult result = Result("npu-1");
    result.share_id = id;
    result.consumed_capacity = {{absl::StrCat(kDriver, "/memory"), "16Gi"}, {"aicore", "4"}};
    return result;
  };
  Claim("a", {share("aaaaaaaa-0000-4000-8000-000000000000")});
  Claim("b", {share("bbbbbbbb-0000-4000-8000-000000000000")});
  Claim("whole", {Result("npu-1")});
  const auto a = plugin->engine.Prepare(Ref("a"));
  const auto b = plugin->engine.Prepare(Ref("b"));
  ASSERT_THAT(a, IsOk());
  ASSERT_THAT(b, IsOk());
  EXPECT_EQ(a->at(0).share_id, "aaaaaaaa-0000-4000-8000-000000000000");
  EXPECT_THAT(a->at(0).cdi_device_ids, Ids({"a-npu-1-aaaaaaaa", "a-metadata-npu"}));
  EXPECT_THAT(b->at(0).cdi_device_ids, Ids({"b-npu-1-bbbbbbbb", "b-metadata-npu"}));
  // SLC-11: one spelling, whichever the scheduler wrote.
  EXPECT_THAT(Record("a").devices.at(0).consumed_capacity,
              ElementsAre(Pair("aicore", "4"), Pair("memory", "16Gi")));
  const auto whole = plugin->engine.Prepare(Ref("whole"));
  EXPECT_THAT(whole, Refused("is still prepared for claim"));
  EXPECT_EQ(ReasonOf(whole.status()), PrepareError::kChipHeld);
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(plugin->engine.Prepare(Ref("whole")), Refused("default/claim-b"));
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")), IsOk());
  ASSERT_THAT(plugin->engine.Unprepare(Ref("b")), IsOk());
  ASSERT_THAT(plugin->engine.Prepare(Ref("whole")), IsOk());
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), Refused("default/claim-whole"));
}

// KEP-5304
TEST_F(EngineTest, ContainersAreToldWhatTheyWereGiven) {
  auto plugin = Start();
  kube::ResourceClaim claim = Claim("a", {Result("npu-1", "train/large"),
                                          Result("npu-2", "train/large"), Result("npu-3", "eval")});
  claim.pod_claim_name = "npus";
  client_.SetClaim(claim);
  const auto answer = plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(answer->at(0).cdi_device_ids, Ids({"a-npu-1", "a-metadata-train"}));
  EXPECT_THAT(answer->at(1).cdi_device_ids, Ids({"a-npu-2"}));
  EXPECT_THAT(answer->at(2).cdi_device_ids, Ids({"a-npu-3", "a-metadata-eval"}));
  const cdi::Spec spec = Spec("a");
  ASSERT_EQ(spec.devices.size(), 5u);
  const cdi::Mount& mount = spec.devices[3].container_edits.mounts.at(0);
  EXPECT_EQ(mount.container_path,
            "/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/npus/train/"
            "npu.huawei.com-metadata.json");
  EXPECT_THAT(mount.options, Contains("ro"));
  std::istringstream text(Bytes(mount.host_path));
  for (const char* version : {"v1beta1", "v1alpha1"}) {
    std::string line;
    ASSERT_TRUE(std::getline(text, line));
    const nlohmann::json object = nlohmann::json::parse(line);
    EXPECT_EQ(object["kind"], "DeviceMetadata");
    EXPECT_EQ(object["apiVersion"], absl::StrCat("metadata.resource.k8s.io/", version));
    EXPECT_EQ(object["metadata"]["uid"], "a");
    EXPECT_EQ(object["podClaimName"], "npus");
    ASSERT_EQ(object["requests"].size(), 1u);
    const nlohmann::json& request = object["requests"][0];
    EXPECT_EQ(request["name"], "train/large");
    ASSERT_EQ(request["devices"].size(), 2u);
    EXPECT_EQ(request["devices"][0]["name"], "npu-1");
    EXPECT_EQ(request["devices"][0]["pool"], kNode);
    EXPECT_EQ(request["devices"][0]["driver"], kDriver);
    EXPECT_EQ(request["devices"][0]["attributes"]["physicalID"]["int"], 1);
    EXPECT_EQ(request["devices"][0]["networkData"]["ips"][0], "10.0.0.1/32");
  }
  // Lost, it comes back with the next Prepare and with the next start.
  for (const bool restart : {false, true}) {
    const std::string before = Bytes(mount.host_path);
    std::filesystem::remove_all(paths_.device_metadata_directory());
    if (restart) {
      plugin.reset();
      plugin = Start();
    } else {
      ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
    }
    EXPECT_EQ(Bytes(mount.host_path), before);
  }
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  ExpectNothingLeft();
}

// A pod whose claim was never prepared can end, also without room for a lock file.
TEST_F(EngineTest, UnprepareOfWhatWasNeverPreparedNeedsNoRoom) {
  auto plugin = Start();
  rlimit old_limit;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old_limit), 0);
  // No descriptor left is no evidence that nothing was prepared.
  rlimit none = old_limit;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status without_descriptors = plugin->engine.Unprepare(Ref("a"));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old_limit), 0);
  EXPECT_FALSE(without_descriptors.ok());
  EXPECT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
}

TEST_F(EngineTest, StartSweepsOrphanedMetadata) {
  auto plugin = Start();
  Claim("live", {Result("npu-1")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("live")), IsOk());
  const std::string directory = paths_.device_metadata_directory();
  ASSERT_THAT(
      WriteFileAtomically(JoinPath(directory, Paths::device_metadata_file("gone", "npu")), "{}"),
      IsOk());
  ASSERT_THAT(WriteFileAtomically(JoinPath(directory, "a-strangers-file"), ""), IsOk());
  plugin.reset();
  plugin = Start();
  EXPECT_THAT(ClaimsWithMetadata(paths_), IsOkAndHolds(ElementsAre("live")));
}

// ORD-16
TEST_F(EngineTest, AChipThatAStrayProcessUsesIsRefusedAndTheProcessNamed) {
  options_.busy_wait = absl::Milliseconds(20);
  auto plugin = NotStarted();
  std::vector<vnpu::Process> processes = {{.pid = 4242, .name = "python3"}};
  bool known = true;
  plugin->engine.SetProcessSource(
      [&](const std::vector<int>& ids) -> absl::StatusOr<std::vector<vnpu::ChipProcesses>> {
        std::vector<vnpu::ChipProcesses> answer;
        for (const int id : ids) {
          answer.push_back({.physical_id = id, .known = known});
          if (known) answer.back().processes = processes;
        }
        return answer;
      });
  ASSERT_THAT(plugin->engine.Start(), IsOk());
  const auto last_look = [&](std::vector<int> pids) {
    vnpu::Inventory now = inventory();
    now.chips[2].busy = std::move(pids);
    SetInventory(now);
    plugin->engine.NotifyChange();
  };
  last_look({4242});
  Claim("a", {Result("npu-2")});
  Claim("other", {Result("npu-1")});
  Claim("monitor", {AdminResult("npu-2")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")),
              Refused("chip 2 is in use by process 4242 (python3) on the node"));
  EXPECT_FALSE(HasRecord("a"));
  EXPECT_FALSE(HasCdi("a"));
  EXPECT_THAT(plugin->engine.Prepare(Ref("other")), IsOk());
  // It ends: the next look, or the question that is asked before, tells.
  processes.clear();
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  // The claim's own process is no stranger.
  processes = {{.pid = 4243}};
  last_look({4243});
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), Refused("by process 4243 on the node"));
  // Nor is a monitor's, and what nobody knows refuses nothing.
  ASSERT_THAT(plugin->engine.Prepare(Ref("monitor")), IsOk());
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  ASSERT_THAT(plugin->engine.Unprepare(Ref("monitor")), IsOk());
  known = false;
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
}

// A stop does not wait for what may never come.
TEST_F(EngineTest, AStopEndsWaits) {
  options_.holder_wait = absl::Minutes(10);
  options_.prepare_budget = absl::Minutes(10);
  auto plugin = Start();
  Claim("a", {Result("npu-1")});
  Claim("b", {Result("npu-1")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  absl::Status status;
  std::thread waiting([&] { status = plugin->engine.Prepare(Ref("b")).status(); });
  plugin->engine.Stop();
  waiting.join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               AllOf(HasSubstr("default/claim-a"), HasSubstr("stopped"))));
}

// REC-03: one damaged record among five.
TEST_F(EngineTest, StartsInSpiteOfABadRecord) {
  auto plugin = Start();
  for (int i = 0; i < 5; ++i) {
    const std::string uid = absl::StrCat("uid-", i);
    Claim(uid, {Result(absl::StrCat("npu-", i))});
    ASSERT_THAT(plugin->engine.Prepare(Ref(uid)), IsOk());
  }
  plugin.reset();
  ASSERT_THAT(WriteFileAtomically(RecordPath("uid-2"), "garbage"), IsOk());
  plugin = Start();
  for (const char* uid : {"uid-0", "uid-1", "uid-3", "uid-4"}) {
    EXPECT_THAT(plugin->engine.Prepare(Ref(uid)), IsOk());
  }
  EXPECT_EQ(Bytes(RecordPath("uid-2")), "garbage");
}

// The claim's own Prepare proves from the API what it was given.
TEST_F(EngineTest, ADamagedRecordIsReplacedByItsOwnClaim) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  ClaimRecord good = Record("a");
  ASSERT_THAT(WriteFileAtomically(RecordPath("a"), "garbage"), IsOk());
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  good.prepared_at = Record("a").prepared_at;  // when it was prepared first is lost
  EXPECT_EQ(Record("a"), good);
}

// ... unless the claim was allocated anew meanwhile, or nobody knows what it held: a container may
// still run on that.
TEST_F(EngineTest, ADamagedRecordIsNotReplacedByAnotherAllocation) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  ASSERT_THAT(WriteFileAtomically(RecordPath("a"), "garbage"), IsOk());
  Claim("a", {Result("npu-1")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("held chip 0"), HasSubstr("delete the claim's pods"))));
  EXPECT_EQ(Bytes(RecordPath("a")), "garbage");
  EXPECT_TRUE(HasCdiFile("a"));

  ASSERT_EQ(::unlink(CdiPath("a").c_str()), 0);
  Claim("a", {Result("npu-0")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("nothing tells")));
  // The way out that the message names.
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  EXPECT_EQ(Record("a").devices[0].device, "npu-0");
}

// ... but what a newer driver wrote is not replaced by what an older one knows.
TEST_F(EngineTest, ARecordOfANewerVersionIsNotReplaced) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  std::string line = Bytes(RecordPath("a"));
  line = absl::StrReplaceAll(line.substr(0, line.find('\n')),
                             {{"\"formatVersion\":1", "\"formatVersion\":2"}});
  const std::string newer =
      absl::StrCat(line, "\ncrc32c:", absl::Hex(Crc32c(line), absl::kZeroPad8), "\n");
  ASSERT_THAT(WriteFileAtomically(RecordPath("a"), newer), IsOk());
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("newer")));
  EXPECT_EQ(Bytes(RecordPath("a")), newer);
  Claim("b", {Result("npu-0")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")), Refused("newer"));
}

// ------------------------------------------------------------------- failures on the way, undone

// ORD-10
TEST_F(EngineTest, NoRecordWithoutACdiFile) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  Claim("b", {Result("npu-0")});
  // Others may write there: such a directory is not used.
  ASSERT_EQ(::chmod(paths_.cdi_root().c_str(), 0777), 0);
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("CDI"), HasSubstr(paths_.cdi_root()))));
  EXPECT_FALSE(HasRecord("a"));
  std::filesystem::remove_all(paths_.cdi_root());
  ASSERT_THAT(WriteFileAtomically(paths_.cdi_root(), "no directory"), IsOk());
  EXPECT_FALSE(plugin->engine.Prepare(Ref("a")).ok());
  EXPECT_FALSE(HasRecord("a"));
  ASSERT_EQ(::unlink(paths_.cdi_root().c_str()), 0);
  // The chip is free.
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")), IsOk());
}

// CDI-04: the start goes on, and a directory that was missing is made.
TEST_F(EngineTest, AnUnusableCdiDirectoryDoesNotStopTheStart) {
  ASSERT_THAT(WriteFileAtomically(paths_.cdi_root(), "no directory"), IsOk());
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  EXPECT_FALSE(plugin->engine.Prepare(Ref("a")).ok());
  EXPECT_FALSE(HasRecord("a"));
  ASSERT_EQ(::unlink(paths_.cdi_root().c_str()), 0);
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  struct stat info;
  ASSERT_EQ(::stat(paths_.cdi_root().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0755u);  // CDI-20
  ASSERT_EQ(::stat(CdiPath("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0644u);
}

// ORD-15: the record does not fit on the disk any more; the CDI file goes again.
TEST_F(EngineTest, NoCdiFileWithoutARecord) {
  auto plugin = Start();
  kube::DeviceResult share = Result("npu-0");
  for (int i = 0; i < 500; ++i) {  // makes the record much longer than the CDI file
    share.consumed_capacity[absl::StrCat("a-capacity-with-a-long-name-", i)] = "1Gi";
  }
  Claim("a", {share});
  struct sigaction ignore = {}, old_action;
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGXFSZ, &ignore, &old_action), 0);
  rlimit old_limit;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit low = old_limit;
  low.rlim_cur = 8192;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  const absl::Status status = plugin->engine.Prepare(Ref("a")).status();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  ::sigaction(SIGXFSZ, &old_action, nullptr);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("claim record"));
  EXPECT_FALSE(HasCdi("a"));
  EXPECT_FALSE(HasRecord("a"));
  Claim("b", {Result("npu-0")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")), IsOk());
}

// CDI-03
TEST_F(EngineTest, AMissingNodeIsNamedAndNothingIsLeft) {
  auto plugin = Start();
  Claim("a", {Result("npu-0"), Result("npu-1")});
  host_.Remove("/dev/davinci1");
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), Refused("/dev/davinci1 is missing"));
  EXPECT_FALSE(HasRecord("a"));
  EXPECT_FALSE(HasCdi("a"));
  host_.Chip(1, 1);
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  // A repeated Prepare looks again.
  host_.Node("/dev/davinci1", FakeHost::kMajor, 7);
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), Refused("minor number 7"));
  EXPECT_TRUE(HasRecord("a"));
}

}  // namespace
}  // namespace ascend::kubeletplugin
