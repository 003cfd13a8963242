#include "kubeletplugin/claims/engine.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/runtime/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/testing/engine_fixture.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

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

}  // namespace
}  // namespace ascend::kubeletplugin
