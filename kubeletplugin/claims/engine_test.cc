#include "kubeletplugin/claims/engine.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/core/file.h"
#include "base/core/file_lock.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "base/runtime/clock.h"
#include "cdi/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/claims/claim_gate.h"
#include "kubeletplugin/claims/prepare_error.h"
#include "kubeletplugin/testing/engine_fixture.h"
#include "kubeletplugin/testing/fake_host.h"
#include "kubeletplugin/testing/fake_kube_client.h"
#include "nlohmann/json.hpp"

namespace ascend::kubeletplugin {

bool operator==(const PreparedDevice& a, const PreparedDevice& b) {
  return a.requests == b.requests && a.pool == b.pool && a.device == b.device &&
         a.share_id == b.share_id && a.cdi_device_ids == b.cdi_device_ids;
}

namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// --------------------------------------------------------------------------------------- success

TEST_F(EngineTest, PrepareAnswersAndLeavesCdiFileAndRecord) {
  auto plugin = Start();
  Claim("a", {Result("npu-3")});
  absl::StatusOr<std::vector<PreparedDevice>> answer = plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(answer, IsOk());
  ASSERT_EQ(answer->size(), 1u);
  EXPECT_THAT(answer->at(0).requests, ElementsAre("npu"));
  EXPECT_EQ(answer->at(0).pool, kNode);
  EXPECT_EQ(answer->at(0).device, "npu-3");
  EXPECT_EQ(answer->at(0).share_id, "");
  // The device's own id first: that is what the kubelet shows.
  EXPECT_THAT(answer->at(0).cdi_device_ids, Ids({"a-npu-3", "a-metadata-npu"}));

  const cdi::Spec spec = Spec("a");
  EXPECT_EQ(spec.kind, "k8s.npu.huawei.com/claim");
  ASSERT_EQ(spec.devices.size(), 2u);
  EXPECT_EQ(spec.devices[0].name, "a-npu-3");
  ASSERT_EQ(spec.devices[0].container_edits.device_nodes.size(), 1u);
  EXPECT_EQ(spec.devices[0].container_edits.device_nodes[0].path, "/dev/davinci3");
  EXPECT_EQ(spec.container_edits.device_nodes.size(), 3u);

  const ClaimRecord record = Record("a");
  EXPECT_EQ(record.claim(), "default/claim-a");
  EXPECT_EQ(record.claim_uid, "a");
  EXPECT_EQ(record.boot_id, "boot-1");
  ASSERT_EQ(record.devices.size(), 1u);
  EXPECT_EQ(record.devices[0].chips.at(0).uuid, "uuid-3");
  EXPECT_EQ(record.devices[0].published.name, "npu-3");

  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  ExpectNothingLeft();
}

// ORD-07, REC-08, CDI-01 (a): a repeated Prepare gives the same bytes and puts back what is
// missing.
TEST_F(EngineTest, RepeatedPrepareIsByteEqualAndRewritesTheCdiFile) {
  auto plugin = Start();
  Claim("a", {Result("npu-3"), Result("npu-1")});
  const auto first = plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(first, IsOk());
  const std::string record = Bytes(RecordPath("a")), cdi = Bytes(CdiPath("a"));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(::unlink(CdiPath("a").c_str()), 0);
    const auto again = plugin->engine.Prepare(Ref("a"));
    ASSERT_THAT(again, IsOk());
    EXPECT_EQ(*again, *first);
    EXPECT_EQ(Bytes(RecordPath("a")), record);
    EXPECT_EQ(Bytes(CdiPath("a")), cdi);
  }
  // ORD-09, REC-09: also after a restart.
  plugin.reset();
  plugin = Start();
  const auto restarted = plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(restarted, IsOk());
  EXPECT_EQ(*restarted, *first);
  EXPECT_EQ(Bytes(RecordPath("a")), record);
  EXPECT_EQ(Bytes(CdiPath("a")), cdi);
}

// Runtimes may keep a device's numbers until its file changes.
TEST_F(EngineTest, RepeatedPrepareReplacesTheCdiFileThoughItIsIdentical) {
  auto plugin = Start();
  Claim("a", {Result("npu-3")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  struct stat before, after;
  ASSERT_EQ(::stat(CdiPath("a").c_str(), &before), 0);
  const int held = ::open(CdiPath("a").c_str(), O_RDONLY);  // so that the inode is not used again
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  ASSERT_EQ(::stat(CdiPath("a").c_str(), &after), 0);
  ::close(held);
  EXPECT_NE(before.st_ino, after.st_ino);
}

// ORD-19
TEST_F(EngineTest, SubrequestsAreAnsweredByTheirBaseName) {
  auto plugin = Start();
  Claim("a", {Result("npu-0", "npu/large"), Result("npu-1", "other")});
  const auto answer = plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(answer->at(0).requests, ElementsAre("npu"));
  EXPECT_THAT(answer->at(1).requests, ElementsAre("other"));
}

// CDI-11: each answer carries only its own CDI ids.
TEST_F(EngineTest, TwoRequestsHaveADeviceEach) {
  auto plugin = Start();
  Claim("a", {Result("npu-5", "first"), Result("npu-2", "second")});
  const auto answer = plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(answer, IsOk());
  ASSERT_THAT(DeviceNames(*answer), ElementsAre("npu-2", "npu-5"));
  EXPECT_THAT(answer->at(0).requests, ElementsAre("second"));
  EXPECT_THAT(answer->at(0).cdi_device_ids, Ids({"a-npu-2", "a-metadata-second"}));
  EXPECT_THAT(answer->at(1).requests, ElementsAre("first"));
  EXPECT_THAT(answer->at(1).cdi_device_ids, Ids({"a-npu-5", "a-metadata-first"}));
}

// By number, not by name: some runtimes remap what does not ascend.
TEST_F(EngineTest, DevicesAscendByChip) {
  AddChips(12, vnpu::Family::k910B);
  auto plugin = Start();
  Claim("a", {Result("npu-10"), Result("npu-2"), Result("npu-0"), Result("npu-9")});
  const auto answer = plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(DeviceNames(*answer), ElementsAre("npu-0", "npu-2", "npu-9", "npu-10"));
  std::vector<std::string> names;
  for (const cdi::Device& device : Spec("a").devices) names.push_back(device.name);
  EXPECT_THAT(names, ElementsAre("a-npu-0", "a-npu-2", "a-npu-9", "a-npu-10", "a-metadata-npu"));
}

// ORD-06: the same device under two admin requests; a share has a name of its own.
TEST_F(EngineTest, DuplicatesCollapse) {
  auto plugin = Start();
  kube::DeviceResult share = AdminResult("npu-1", "third");
  share.share_id = "deadbeef-0000-4000-8000-000000000000";
  Claim("a", {AdminResult("npu-1", "first"), AdminResult("npu-1", "second"),
              AdminResult("npu-1", "first"), share});
  const auto answer = plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(answer, IsOk());
  ASSERT_EQ(answer->size(), 2u);
  EXPECT_THAT(answer->at(0).requests, ElementsAre("first", "second"));
  EXPECT_EQ(answer->at(1).share_id, share.share_id);
  EXPECT_THAT(answer->at(0).cdi_device_ids,
              Ids({"a-npu-1", "a-metadata-first", "a-metadata-second"}));
  EXPECT_THAT(answer->at(1).cdi_device_ids, Ids({"a-npu-1-deadbeef", "a-metadata-third"}));
  EXPECT_EQ(Spec("a").devices.size(), 5u);
}

TEST_F(EngineTest, AModuleIsOneDeviceOfTwoChips) {
  AddChips(4, vnpu::Family::kA3);
  auto plugin = Start();
  Claim("a", {Result("npu-2-3")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  const cdi::Spec spec = Spec("a");
  ASSERT_EQ(spec.devices.size(), 2u);
  EXPECT_EQ(spec.devices[0].name, "a-npu-2-3");
  EXPECT_EQ(spec.devices[0].container_edits.device_nodes.size(), 2u);
}

// ------------------------------------------------------------------------- what the claim says

TEST_F(EngineTest, ClaimsThatCannotBePrepared) {
  auto plugin = Start();
  const auto prepare = [&](const std::string& uid) { return plugin->engine.Prepare(Ref(uid)); };

  kube::ResourceClaim replaced = Claim("a", {Result("npu-0")});
  replaced.uid = "another";
  client_.SetClaim(replaced);
  EXPECT_THAT(prepare("a"), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     AllOf(StartsWith("claim default/claim-a: "),
                                           HasSubstr("asks for UID a"), HasSubstr("another"))));

  kube::ResourceClaim unallocated = Claim("b", {});
  unallocated.allocation.reset();
  client_.SetClaim(unallocated);
  EXPECT_THAT(prepare("b"), Refused("not allocated"));

  kube::DeviceResult elsewhere = Result("npu-0");
  elsewhere.pool = "node-2";
  Claim("c", {elsewhere});
  EXPECT_THAT(prepare("c"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("npu-0"), HasSubstr("node-2"), HasSubstr(kNode))));

  EXPECT_THAT(prepare("nowhere"), StatusIs(absl::StatusCode::kNotFound));

  kube::ResourceClaim configured = Claim("d", {Result("npu-0")});
  configured.allocation->config = {
      {.requests = {}, .driver = kDriver, .parameters_json = R"({"kind":"NpuConfig"})"}};
  client_.SetClaim(configured);
  EXPECT_THAT(prepare("d"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("apiVersion")));

  const int gets = client_.gets();
  EXPECT_THAT(
      plugin->engine.Prepare({.namespace_name = "default", .name = "x", .uid = "../../etc/passwd"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("../../etc/passwd")));
  EXPECT_EQ(client_.gets(), gets);

  EXPECT_THAT(ListDirectory(paths_.claims_directory()), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(ListDirectory(paths_.cdi_root()), IsOkAndHolds(IsEmpty()));
  // ORD-08: what failed can be unprepared, and then nothing at all is left.
  for (const char* uid : {"a", "b", "c", "d", "nowhere"}) {
    EXPECT_THAT(plugin->engine.Unprepare(Ref(uid)), IsOk());
  }
  ExpectNothingLeft();
}

// ORD-11, REC-12: also where another driver's device has a name of ours.
TEST_F(EngineTest, ResultsOfOtherDriversAreLeftOut) {
  auto plugin = Start();
  kube::DeviceResult nic = Result("npu-4", "nic");
  nic.driver = "nic.example.com";
  kube::DeviceResult gpu = Result("gpu-0", "gpu");
  gpu.driver = "gpu.example.com";
  gpu.pool = "elsewhere";
  Claim("a", {nic, Result("npu-1"), gpu});
  const auto answer = plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(DeviceNames(*answer), ElementsAre("npu-1"));
  EXPECT_EQ(Spec("a").devices.size(), 2u);  // with the metadata of the one request
  EXPECT_EQ(Record("a").devices.size(), 1u);
  // The other driver's "npu-4" is not ours.
  Claim("b", {Result("npu-4")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")), IsOk());
}

TEST_F(EngineTest, AClaimWithoutAnyOfOursIsEmpty) {
  auto plugin = Start();
  kube::DeviceResult nic = Result("nic-0");
  nic.driver = "nic.example.com";
  Claim("a", {nic});
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), IsOkAndHolds(IsEmpty()));
  EXPECT_FALSE(HasRecord("a"));
  EXPECT_FALSE(HasCdi("a"));
  EXPECT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  ExpectNothingLeft();
}

TEST_F(EngineTest, AnotherAllocationOfAPreparedClaimIsRefused) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  const std::string record = Bytes(RecordPath("a"));
  Claim("a", {Result("npu-1")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), Refused("another allocation"));
  EXPECT_EQ(Bytes(RecordPath("a")), record);
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
}

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

// --------------------------------------------------------------------- Prepare against Unprepare

// ORD-04
TEST_F(EngineTest, ALatePrepareLosesAndTheNextOneWinsAtOnce) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  client_.BlockGets();
  absl::StatusOr<std::vector<PreparedDevice>> late, next;
  std::thread first([&] { late = plugin->engine.Prepare(Ref("a")); });
  ASSERT_TRUE(client_.WaitForBlockedGets(1));
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  std::thread second([&] { next = plugin->engine.Prepare(Ref("a")); });
  ASSERT_TRUE(client_.WaitForBlockedGets(2));
  client_.ReleaseGets();
  first.join();
  second.join();
  EXPECT_THAT(late, StatusIs(absl::StatusCode::kAborted, HasSubstr("unprepared")));
  EXPECT_THAT(next, IsOk());
  EXPECT_TRUE(HasRecord("a"));
  EXPECT_TRUE(HasCdi("a"));
}

// ORD-04: nothing of the late one remains.
TEST_F(EngineTest, ALatePrepareLeavesNothing) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  client_.BlockGets();
  absl::StatusOr<std::vector<PreparedDevice>> late;
  std::thread first([&] { late = plugin->engine.Prepare(Ref("a")); });
  ASSERT_TRUE(client_.WaitForBlockedGets(1));
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  client_.ReleaseGets();
  first.join();
  EXPECT_FALSE(late.ok());
  ExpectNothingLeft();
  Claim("b", {Result("npu-0")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")), IsOk());
}

// ORD-08
TEST_F(EngineTest, UnprepareOfWhatIsUnknownChangesNothing) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  const std::string record = Bytes(RecordPath("a")), cdi_file = Bytes(CdiPath("a"));
  for (const char* uid : {"unknown", "", "..", "../a", "with/slash"}) {
    EXPECT_THAT(plugin->engine.Unprepare(Ref(uid)), IsOk()) << uid;
  }
  EXPECT_EQ(Bytes(RecordPath("a")), record);
  EXPECT_EQ(Bytes(CdiPath("a")), cdi_file);
  EXPECT_THAT(ClaimLocks(), ElementsAre("claim-a"));
}

// ORD-14
TEST_F(EngineTest, UnprepareNeedsNoApiServer) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  client_.RemoveClaim("default", "claim-a");
  client_.BlockGets();
  const int gets = client_.gets();
  EXPECT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_EQ(client_.gets(), gets);
  ExpectNothingLeft();
  client_.ReleaseGets();
}

// ORD-20: nor the inventory, nor the driver, nor the nodes.
TEST_F(EngineTest, UnprepareNeedsNoHardware) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  SetInventory({});
  host_.ProcDevices("");
  host_.Remove("/dev");
  EXPECT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  ExpectNothingLeft();
}

TEST_F(EngineTest, UnprepareAfterTheCdiDirectoryVanished) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  plugin.reset();
  plugin = NotStarted();  // nobody restores it
  std::filesystem::remove_all(paths_.cdi_root());
  EXPECT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_FALSE(HasRecord("a"));
  EXPECT_THAT(ClaimLocks(), IsEmpty());
}

// What cannot be removed keeps the record: the kubelet asks again.
TEST_F(EngineTest, UnprepareThatCannotRemoveTheCdiFileKeepsTheRecord) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  plugin.reset();
  plugin = NotStarted();
  ASSERT_EQ(::unlink(CdiPath("a").c_str()), 0);
  ASSERT_EQ(::mkdir(CdiPath("a").c_str(), 0755), 0);
  EXPECT_FALSE(plugin->engine.Unprepare(Ref("a")).ok());
  EXPECT_TRUE(HasRecord("a"));
  ASSERT_EQ(::rmdir(CdiPath("a").c_str()), 0);
  EXPECT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  ExpectNothingLeft();
}

// ORD-05: whatever ran side by side, the state is whole, and the last call decides.
TEST_F(EngineTest, AThousandInterleavings) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  std::mt19937 random(20260101);
  for (int round = 0; round < 1000; ++round) {
    absl::Status prepared;
    const auto prepare = [&] { prepared = plugin->engine.Prepare(Ref("a")).status(); };
    const auto unprepare = [&] { EXPECT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk()); };
    const bool prepare_first = random() % 2 == 0;
    {
      std::thread other(prepare_first ? std::function<void()>(prepare) : unprepare);
      for (unsigned spin = random() % 20000; spin > 0; --spin) asm volatile("");
      prepare_first ? unprepare() : prepare();
      other.join();
    }
    ASSERT_TRUE(prepared.ok() || absl::IsAborted(prepared)) << prepared;
    ASSERT_EQ(HasRecord("a"), HasCdi("a")) << "round " << round;
    ASSERT_TRUE(prepared.ok() || !HasRecord("a")) << "round " << round;
    if (random() % 2 == 0) {
      ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
      ASSERT_TRUE(HasRecord("a") && HasCdi("a")) << "round " << round;
    } else {
      ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
      ASSERT_FALSE(HasRecord("a") || HasCdi("a")) << "round " << round;
    }
  }
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  ExpectNothingLeft();
}

TEST_F(EngineTest, LockFilesDoNotPileUp) {
  auto plugin = Start();
  for (int i = 0; i < 200; ++i) {
    const std::string uid = absl::StrCat("uid-", i);
    Claim(uid, {Result("npu-0")});
    ASSERT_THAT(plugin->engine.Prepare(Ref(uid)), IsOk());
    ASSERT_THAT(plugin->engine.Unprepare(Ref(uid)), IsOk());
  }
  // The restorer looks at each removal; it must not leave a lock behind either.
  plugin.reset();
  EXPECT_THAT(ListDirectory(paths_.locks_directory()), IsOkAndHolds(ElementsAre("chip-0")));
  ExpectNothingLeft();
}

TEST_F(EngineTest, SixtyFourCallersOnSixteenChips) {
  AddChips(16, vnpu::Family::k910B);
  options_.holder_wait = options_.lock_wait = options_.prepare_budget = absl::Seconds(100);
  auto plugin = Start();
  std::vector<std::atomic<int>> owner(16);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 64; ++caller) {
    Claim(absl::StrCat("uid-", caller), {Result(absl::StrCat("npu-", caller % 16)),
                                         Result(absl::StrCat("npu-", (caller * 7 + 3) % 16))});
    callers.emplace_back([&, caller] {
      const std::string uid = absl::StrCat("uid-", caller);
      const std::set<int> chips = {caller % 16, (caller * 7 + 3) % 16};
      for (int i = 0; i < 2; ++i) {
        ASSERT_THAT(plugin->engine.Prepare(Ref(uid)), IsOk());
        for (int chip : chips) EXPECT_EQ(owner[chip].exchange(caller + 1), 0) << "chip " << chip;
        for (int chip : chips) EXPECT_EQ(owner[chip].exchange(0), caller + 1) << "chip " << chip;
        ASSERT_THAT(plugin->engine.Unprepare(Ref(uid)), IsOk());
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  ExpectNothingLeft();
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

// ---------------------------------------------------------------------------------- API server

TEST_F(EngineTest, TransientApiErrorsAreRetriedInsideTheCall) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  client_.FailGets(absl::UnavailableError("503"));
  client_.FailGets(absl::DeadlineExceededError("slow"));
  client_.FailGets(absl::UnauthenticatedError("token is being renewed"));
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  EXPECT_EQ(client_.gets(), 4);
}

// ORD-17: an answer before the kubelet gives up.
TEST_F(EngineTest, AnApiServerThatStaysAwayEndsTheCallInTime) {
  options_.prepare_budget = absl::Milliseconds(300);
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  client_.FailGets(absl::UnavailableError("no route to the API server"), 1000);
  const absl::Duration start = Clock::Real().Monotonic();
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no route")));
  EXPECT_LT(Clock::Real().Monotonic() - start, absl::Seconds(10));
  EXPECT_GT(client_.gets(), 1);
}

TEST_F(EngineTest, AnApiServerThatHangsEndsTheCallInTime) {
  options_.prepare_budget = absl::Milliseconds(100);
  auto plugin = Start();
  client_.BlockGets();
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), StatusIs(absl::StatusCode::kDeadlineExceeded));
  client_.ReleaseGets();
}

TEST_F(EngineTest, PermanentApiErrorsComeAtOnce) {
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  int gets = 0;
  for (const absl::Status& status :
       {absl::PermissionDeniedError("403"), absl::NotFoundError("404"),
        absl::InvalidArgumentError("400"), absl::InternalError("no JSON"),
        absl::CancelledError("shutting down"), absl::UnimplementedError("old server")}) {
    client_.FailGets(status);
    EXPECT_THAT(plugin->engine.Prepare(Ref("a")),
                StatusIs(status.code(), HasSubstr(std::string(status.message()))));
    EXPECT_EQ(client_.gets(), ++gets);
  }
}

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

// ---------------------------------------------------------------------------------- inventory

TEST_F(EngineTest, AChipThatIsGoneIsNamed) {
  auto plugin = Start();
  vnpu::Inventory less = inventory();
  less.chips.erase(less.chips.begin() + 3);
  SetInventory(less);
  Claim("a", {Result("npu-3")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), Refused("npu-3 is not on this node"));
  less.library = vnpu::LibraryState::kFailed;
  less.library_message = "dcmi_init answers -8005";
  SetInventory(less);
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), Refused("dcmi_init answers -8005"));
  for (const char* name : {"npu-99", "npu-", "gpu-0", ""}) {
    Claim("b", {Result(name)});
    EXPECT_THAT(plugin->engine.Prepare(Ref("b")), Refused("is not on this node")) << name;
  }
}

TEST_F(EngineTest, APreparedClaimStaysPreparedWhileItsChipIsGone) {
  auto plugin = Start();
  Claim("a", {Result("npu-3")});
  const auto first = plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(first, IsOk());
  const std::string record = Bytes(RecordPath("a"));
  vnpu::Inventory less = inventory();
  less.chips.erase(less.chips.begin() + 3);
  SetInventory(less);
  const auto again = plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(*again, *first);
  EXPECT_EQ(Bytes(RecordPath("a")), record);
  host_.Remove("/dev/davinci3");
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), Refused("/dev/davinci3 is missing"));
}

TEST_F(EngineTest, OtherHardwareInTheSlotIsRefused) {
  auto plugin = Start();
  Claim("a", {Result("npu-3")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  vnpu::Inventory changed = inventory();
  changed.chips[3].uuid = "uuid-of-another";
  SetInventory(changed);
  EXPECT_THAT(
      plugin->engine.Prepare(Ref("a")),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("npu-3"), HasSubstr("uuid-3"), HasSubstr("uuid-of-another"))));
}

// What the library cannot tell at the moment is not forgotten.
TEST_F(EngineTest, AnUnknownIdentityDoesNotReplaceAKnownOne) {
  auto plugin = Start();
  Claim("a", {Result("npu-3")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  const std::string record = Bytes(RecordPath("a")), cdi = Bytes(CdiPath("a"));
  vnpu::Inventory unknown = inventory();
  unknown.chips[3].uuid = unknown.chips[3].pci_bus_id = unknown.chips[3].roce_address = "";
  SetInventory(unknown);
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  EXPECT_EQ(Bytes(RecordPath("a")), record);
  EXPECT_EQ(Bytes(CdiPath("a")), cdi);
  unknown.chips[3].uuid = "uuid-of-another";
  SetInventory(unknown);
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), Refused("uuid-of-another"));
}

TEST_F(EngineTest, WaitsForTheFirstInventory) {
  const vnpu::Inventory known = inventory();
  {
    MutexLock lock(&mutex_);
    inventory_ = nullptr;
  }
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  absl::StatusOr<std::vector<PreparedDevice>> answer;
  std::thread waiting([&] { answer = plugin->engine.Prepare(Ref("a")); });
  EXPECT_TRUE(client_.WaitUntil([&] { return client_.gets() >= 1; }));
  SetInventory(known);
  plugin->engine.NotifyChange();
  waiting.join();
  EXPECT_THAT(answer, IsOk());
}

TEST_F(EngineTest, AnInventoryThatNeverComesIsAnErrorInTime) {
  {
    MutexLock lock(&mutex_);
    inventory_ = nullptr;
  }
  options_.prepare_budget = absl::Milliseconds(50);
  auto plugin = Start();
  Claim("a", {Result("npu-0")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ascend-npu-agent")));
}

TEST_F(EngineTest, ExcludedChipsAreNotPrepared) {
  options_.devices.excluded_chips = {3};
  auto plugin = Start();
  Claim("a", {Result("npu-3")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), Refused("npu-3 is not on this node"));
}

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
