// Claims of parts of chips: what is made, found again and destroyed on the hardware.
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/claims/prepare_error.h"
#include "kubeletplugin/testing/engine_vnpu_fixture.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr char kPart0[] = "npu-0-vir05-1c-8g-0";
constexpr char kPart1[] = "npu-0-vir05-1c-8g-1";

TEST_F(EngineVnpuTest, MadeForTheClaimAndDestroyedWithIt) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  const auto answer = plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(DeviceNames(*answer), ElementsAre(kPart0));
  EXPECT_THAT(answer->at(0).cdi_device_ids, Ids({absl::StrCat("a-", kPart0), "a-metadata-npu"}));
  EXPECT_THAT(vnpus_.Listed(), ElementsAre("0:vir05_1c_8g:100"));

  // VNP-05: only the part, under the name that the driver's libraries look for.
  const cdi::Spec spec = Spec("a");
  ASSERT_THAT(spec.devices.at(0).container_edits.device_nodes, SizeIs(1));
  const cdi::DeviceNode& node = spec.devices.at(0).container_edits.device_nodes[0];
  EXPECT_EQ(node.path, "/dev/davinci100");
  EXPECT_EQ(node.host_path, "/dev/vdavinci100");
  EXPECT_THAT(spec.devices.at(0).container_edits.env,
              UnorderedElementsAre("ASCEND_DRA_VNPU_100_TEMPLATE=vir05_1c_8g",
                                   "ASCEND_DRA_NPU_0_PHYSICAL_ID=0",
                                   "ASCEND_DRA_NPU_0_ROCE_ADDRESS=10.0.0.0"));

  const ClaimRecord record = Record("a");
  EXPECT_EQ(record.state, ClaimState::kCompleted);
  ASSERT_TRUE(record.devices.at(0).vnpu.has_value());
  EXPECT_EQ(record.devices[0].vnpu->id, 100);
  EXPECT_THAT(record.devices[0].vnpu->ids_before, IsEmpty());
  EXPECT_THAT(record.devices[0].published.consumes_counters, SizeIs(1));

  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), IsEmpty());
  ExpectNothingLeft();
}

TEST_F(EngineVnpuTest, ARepeatedPrepareMakesNothingNew) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  const auto first = plugin->engine.Prepare(Ref("a"));
  ASSERT_THAT(first, IsOk());
  const std::string record = Bytes(RecordPath("a")), cdi = Bytes(CdiPath("a"));
  for (int round = 0; round < 2; ++round) {
    const auto again = plugin->engine.Prepare(Ref("a"));
    ASSERT_THAT(again, IsOk());
    EXPECT_EQ(Bytes(RecordPath("a")), record);
    EXPECT_EQ(Bytes(CdiPath("a")), cdi);
    plugin.reset();
    plugin = StartWithVnpus();
  }
  EXPECT_EQ(vnpus_.creates(), 1);
}

// VNP-06: the account comes from records and hardware, also after a restart.
TEST_F(EngineVnpuTest, SeveralPartsOfAChipExcludeEachOtherAndTheWhole) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  Claim("b", {Result(kPart1)});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  ASSERT_THAT(plugin->engine.Prepare(Ref("b")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), ElementsAre("0:vir05_1c_8g:100", "0:vir05_1c_8g:101"));
  plugin.reset();
  plugin = StartWithVnpus();
  Claim("c", {Result(kPart1)});
  EXPECT_THAT(plugin->engine.Prepare(Ref("c")).status(),
              Refused("npu-0-vir05-1c-8g-1 is still prepared for claim default/claim-b"));
  Claim("d", {Result("npu-0")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("d")).status(), Refused("a part of chip 0 is still"));
  Claim("e", {Result("npu-1")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("e")), IsOk());
  Claim("f", {Result("npu-1-vir05-1c-8g-0")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("f")).status(), Refused("chip 1 is still prepared"));
  EXPECT_THAT(vnpus_.Listed(), SizeIs(2));
}

TEST_F(EngineVnpuTest, OneClaimMayHaveSeveral) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart1, "two"), Result(kPart0, "one"), Result("npu-3-vir10-3c-16g-0", "big")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(),
              ElementsAre("0:vir05_1c_8g:100", "0:vir05_1c_8g:101", "3:vir10_3c_16g:148"));
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), IsEmpty());
  ExpectNothingLeft();
}

TEST_F(EngineVnpuTest, UnknownTemplateAndIndexAreRefused) {
  auto plugin = StartWithVnpus();
  for (const char* name : {"npu-0-vir99-1c-0", "npu-0-vir05-1c-8g-4", "npu-9-vir05-1c-8g-0"}) {
    Claim("a", {Result(name)});
    EXPECT_THAT(plugin->engine.Prepare(Ref("a")).status(), Refused("is not on this node")) << name;
  }
  EXPECT_EQ(vnpus_.creates(), 0);
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  ExpectNothingLeft();
}

// VNP-07: no fall-back to anything else.
TEST_F(EngineVnpuTest, AFailedCreateIsTheClaimsError) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  vnpus_.FailCreate(
      absl::FailedPreconditionError("dcmi_create_vdevice returned -8020 (RESOURCE_OCCUPIED)"));
  const absl::Status refused = plugin->engine.Prepare(Ref("a")).status();
  EXPECT_THAT(refused, Refused("vNPU vir05_1c_8g of chip 0 cannot be created: dcmi_create_vdevice "
                               "returned -8020"));
  EXPECT_EQ(ReasonOf(refused), PrepareError::kVnpu);
  EXPECT_FALSE(HasRecord("a"));
  EXPECT_FALSE(HasCdi("a"));
  vnpus_.FailCreate(absl::OkStatus());
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), SizeIs(1));
}

// VNP-01: whatever fails after the vNPU was made destroys it again.
TEST_F(EngineVnpuTest, AFailureAfterCreationLeavesNothing) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  vnpus_.FailCreate(absl::UnavailableError("it cannot be destroyed again"), true);
  EXPECT_FALSE(plugin->engine.Prepare(Ref("a")).ok());
  EXPECT_THAT(vnpus_.Listed(), IsEmpty());
  EXPECT_FALSE(HasRecord("a"));
  vnpus_.FailCreate(absl::OkStatus());

  vnpus_.MakeNodes(false);
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")).status(),
              Refused("device node /dev/vdavinci100 is missing"));
  EXPECT_THAT(vnpus_.Listed(), IsEmpty());
  EXPECT_FALSE(HasRecord("a"));
  vnpus_.MakeNodes(true);

  std::filesystem::create_directories(CdiPath("a") + "/in-the-way");
  EXPECT_FALSE(plugin->engine.Prepare(Ref("a")).ok());
  EXPECT_THAT(vnpus_.Listed(), IsEmpty());
  std::filesystem::remove_all(CdiPath("a"));

  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), SizeIs(1));
}

TEST_F(EngineVnpuTest, WaitsForANodeThatTheKernelMakesLate) {
  options_.node_wait = absl::Seconds(30);
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  vnpus_.MakeNodes(false);
  absl::StatusOr<std::vector<PreparedDevice>> answer;
  std::thread prepare([&] { answer = plugin->engine.Prepare(Ref("a")); });
  ASSERT_TRUE(WaitFor([&] { return !vnpus_.Listed().empty(); }));
  host_.Node("/dev/vdavinci100", FakeHost::kMajor, 100);
  prepare.join();
  EXPECT_THAT(answer, IsOk());
}

TEST_F(EngineVnpuTest, WaitsForAnAgentThatRestarts) {
  options_.agent_wait = absl::Seconds(30);
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  vnpus_.FailCreate(absl::UnavailableError("the agent is gone"), true);
  absl::StatusOr<std::vector<PreparedDevice>> answer;
  std::thread prepare([&] { answer = plugin->engine.Prepare(Ref("a")); });
  ASSERT_TRUE(WaitFor([&] { return vnpus_.creates() > 0; }));
  vnpus_.FailCreate(absl::OkStatus());
  plugin->engine.NotifyChange();  // the agent's connection is up again
  prepare.join();
  EXPECT_THAT(answer, IsOk());
  EXPECT_EQ(vnpus_.creates(), 1);
  EXPECT_THAT(vnpus_.Listed(), SizeIs(1));

  vnpus_.FailDestroy(absl::UnavailableError("the agent is gone"));
  absl::Status unprepared;
  std::thread unprepare([&] { unprepared = plugin->engine.Unprepare(Ref("a")); });
  ASSERT_TRUE(WaitFor([&] { return !HasCdi("a"); }));
  vnpus_.FailDestroy(absl::OkStatus());
  plugin->engine.NotifyChange();
  unprepare.join();
  EXPECT_THAT(unprepared, IsOk());
  ExpectNothingLeft();
}

// The answer of the create call is lost together with the agent: the next call finds the vNPU.
TEST_F(EngineVnpuTest, FindsWhatNobodyHeardOf) {
  auto plugin = StartWithVnpus();
  vnpus_.Make(0, "vir05_1c_8g", 107);  // an administrator's
  Claim("a", {Result(kPart0)});
  vnpus_.FailCreate(absl::UnavailableError("the agent is gone"), true);
  std::thread agent_dies;
  VnpuCalls calls = vnpus_.calls();
  calls.create = [this, create = calls.create](const agent::VnpuRequest& request,
                                               absl::Duration timeout) {
    auto answer = create(request, timeout);
    vnpus_.FailList(absl::UnavailableError("the agent is gone"));
    return answer;
  };
  plugin = NotStarted();
  plugin->engine.SetVnpuCalls(calls);
  ASSERT_THAT(plugin->engine.Start(), IsOk());
  EXPECT_FALSE(plugin->engine.Prepare(Ref("a")).ok());
  ASSERT_TRUE(HasRecord("a"));
  EXPECT_EQ(Record("a").state, ClaimState::kStarted);
  EXPECT_FALSE(HasCdi("a"));
  EXPECT_THAT(vnpus_.Listed(), ElementsAre("0:vir05_1c_8g:100", "0:vir05_1c_8g:107"));

  // A restart writes nothing for it.
  vnpus_.FailCreate(absl::OkStatus());
  vnpus_.FailList(absl::OkStatus());
  plugin.reset();
  plugin = StartWithVnpus();
  EXPECT_FALSE(HasCdi("a"));
  const int creates = vnpus_.creates();
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  EXPECT_EQ(vnpus_.creates(), creates);
  EXPECT_EQ(Record("a").devices.at(0).vnpu->id, 100);
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), ElementsAre("0:vir05_1c_8g:107"));
  ExpectNothingLeft();
}

// What is new on the chip and cannot be told apart stays.
TEST_F(EngineVnpuTest, InDoubtAVnpuIsSomebodyElses) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  vnpus_.FailCreate(absl::UnavailableError("the agent is gone"));
  vnpus_.FailList(absl::OkStatus());
  // Made by others between the intent and the next look, none of them under the id asked for.
  VnpuCalls calls = vnpus_.calls();
  calls.create = [this](const agent::VnpuRequest&, absl::Duration) -> absl::StatusOr<vnpu::Vnpu> {
    vnpus_.Make(0, "vir05_1c_8g", 103);
    vnpus_.Make(0, "vir05_1c_8g", 104);
    return absl::UnavailableError("the agent is gone");
  };
  plugin = NotStarted();
  plugin->engine.SetVnpuCalls(calls);
  ASSERT_THAT(plugin->engine.Start(), IsOk());
  EXPECT_FALSE(plugin->engine.Prepare(Ref("a")).ok());
  EXPECT_THAT(vnpus_.Listed(), SizeIs(2));
  EXPECT_FALSE(HasRecord("a"));
}

// A claim whose driver died between the first and the last step.
TEST_F(EngineVnpuTest, AnIntentOfAnotherProcessIsCarriedOn) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  ClaimRecord intent = Record("a");
  intent.state = ClaimState::kStarted;
  intent.devices.at(0).vnpu->id = -1;
  intent.devices.at(0).vnpu->begun = true;
  intent.devices.at(0).vnpu->wanted_id = 100;
  plugin.reset();
  for (const bool made : {true, false}) {
    if (!made) vnpus_.Destroy(100);
    RecordStore records(paths_.claims_directory());
    ASSERT_THAT(records.Write(intent), IsOk());
    plugin = StartWithVnpus();
    ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
    EXPECT_THAT(vnpus_.Listed(), ElementsAre("0:vir05_1c_8g:100"));
    EXPECT_EQ(Record("a").state, ClaimState::kCompleted);
    plugin.reset();
  }
}

// The claim is in use: what it still has is not taken away because the rest cannot be mended.
TEST_F(EngineVnpuTest, AMendThatFailsTakesNothingAway) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0, "one"), Result(kPart1, "two")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  vnpus_.Destroy(101);
  vnpus_.FailCreate(absl::FailedPreconditionError("no room"));
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_THAT(plugin->engine.Prepare(Ref("a")).status(), Refused("no room"));
    EXPECT_THAT(vnpus_.Listed(), ElementsAre("0:vir05_1c_8g:100"));
    EXPECT_EQ(Record("a").state, ClaimState::kCompleted);
    EXPECT_TRUE(HasCdi("a"));
    plugin.reset();
    plugin = StartWithVnpus();
    EXPECT_TRUE(HasCdi("a"));
  }
  vnpus_.FailCreate(absl::OkStatus());
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), SizeIs(2));
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), IsEmpty());
}

// Made by an administrator while our create fails: ours would have the id that was asked for.
TEST_F(EngineVnpuTest, WhatOthersMakeMeanwhileIsTheirs) {
  Claim("a", {Result(kPart0)});
  VnpuCalls calls = vnpus_.calls();
  calls.create = [this](const agent::VnpuRequest&, absl::Duration) -> absl::StatusOr<vnpu::Vnpu> {
    vnpus_.Make(0, "vir05_1c_8g", 103);
    return absl::FailedPreconditionError("occupied");
  };
  auto plugin = NotStarted();
  plugin->engine.SetVnpuCalls(calls);
  ASSERT_THAT(plugin->engine.Start(), IsOk());
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")).status(), Refused("occupied"));
  EXPECT_THAT(vnpus_.Listed(), ElementsAre("0:vir05_1c_8g:103"));
  EXPECT_FALSE(HasRecord("a"));
}

TEST_F(EngineVnpuTest, OneThatVanishedIsMadeAnew) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  vnpus_.Destroy(100);
  vnpus_.Make(0, "vir10_3c_16g", 100);  // another one under the same id
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), ElementsAre("0:vir10_3c_16g:100", "0:vir05_1c_8g:101"));
  EXPECT_THAT(Spec("a").devices.at(0).container_edits.device_nodes.at(0).path, "/dev/davinci101");
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), ElementsAre("0:vir10_3c_16g:100"));
}

// The plugin died between the destruction and the removal of the record.
TEST_F(EngineVnpuTest, MadeAnewUnderTheSameIdItIsRecordedAgain) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  vnpus_.Destroy(100);
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  EXPECT_EQ(Record("a").state, ClaimState::kCompleted);
  EXPECT_EQ(Record("a").devices.at(0).vnpu->id, 100);
}

// While the agent is away, what it has made can still be given to a pod that starts again.
TEST_F(EngineVnpuTest, APreparedClaimNeedsNoAgent) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  vnpus_.FailList(absl::UnavailableError("the agent is gone"));
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  Claim("b", {Result(kPart1)});
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")).status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("the vNPUs of chip 0 cannot be listed: the agent is gone")));
  EXPECT_FALSE(HasRecord("b"));
  EXPECT_THAT(plugin->engine.Unprepare(Ref("a")), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(HasRecord("a"));
}

// ------------------------------------------------------------------------------------- reboots

TEST_F(EngineVnpuTest, AfterARebootWithoutRecoveryItIsMadeAnew) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  Claim("b", {Result(kPart1)});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  ASSERT_THAT(plugin->engine.Prepare(Ref("b")), IsOk());
  plugin.reset();
  Reboot(false);
  vnpus_.Make(0, "vir05_1c_8g", 100);  // an administrator's, under the id that was ours
  plugin = StartWithVnpus();
  EXPECT_FALSE(HasCdi("a")) << "the node of that number is not the claim's";
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), ElementsAre("0:vir05_1c_8g:100", "0:vir05_1c_8g:101"));
  EXPECT_EQ(Record("a").devices.at(0).vnpu->id, 101);
  // The other one's pod is gone: nothing of this boot is its own.
  ASSERT_THAT(plugin->engine.Unprepare(Ref("b")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), ElementsAre("0:vir05_1c_8g:100", "0:vir05_1c_8g:101"));
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), ElementsAre("0:vir05_1c_8g:100"));
}

// VNP-03, VNP-13: the driver made them again, under other ids.
TEST_F(EngineVnpuTest, LeftoversOfARebootAreFoundByChipAndTemplate) {
  auto plugin = StartWithVnpus();
  vnpus_.Make(0, "vir10_3c_16g", 105);  // an administrator's
  Claim("a", {Result(kPart0)});
  Claim("b", {Result(kPart1)});
  Claim("c", {Result("npu-2-vir10-3c-16g-0")});
  for (const char* uid : {"a", "b", "c"}) ASSERT_THAT(plugin->engine.Prepare(Ref(uid)), IsOk());
  plugin.reset();
  Reboot(true);
  plugin = StartWithVnpus();
  const int creates = vnpus_.creates();
  ASSERT_THAT(plugin->engine.Prepare(Ref("b")), IsOk());
  ASSERT_THAT(plugin->engine.Prepare(Ref("c")), IsOk());
  EXPECT_EQ(vnpus_.creates(), creates);
  EXPECT_EQ(vnpus_.destroys(), 0);
  EXPECT_EQ(Record("c").devices.at(0).vnpu->id, 133);
  // Dead claims take exactly their own with them.
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  ASSERT_THAT(plugin->engine.Unprepare(Ref("c")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), UnorderedElementsAre("0:vir10_3c_16g:106",
                                                    absl::StrCat("0:vir05_1c_8g:",
                                                                 Record("b").devices[0].vnpu->id)));
  ASSERT_THAT(plugin->engine.Unprepare(Ref("b")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), ElementsAre("0:vir10_3c_16g:106"));
}

TEST_F(EngineVnpuTest, LeftoversThatMayBeSomebodyElsesStay) {
  auto plugin = StartWithVnpus();
  vnpus_.Make(0, "vir05_1c_8g", 105);  // an administrator's, of the same kind
  Claim("a", {Result(kPart0)});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  plugin.reset();
  Reboot(true);
  plugin = StartWithVnpus();
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), SizeIs(3));
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), ElementsAre("0:vir05_1c_8g:101", "0:vir05_1c_8g:106"));
}

// --------------------------------------------------------------------------------- other modes

TEST_F(EngineVnpuTest, StaticOnesAreNeitherMadeNorDestroyed) {
  options_.devices.vnpu_mode = VnpuMode::kStatic;
  vnpus_.Make(2, "vir05_1c_8g");
  vnpu::Inventory changed = inventory();
  changed.chips[2].partitioning->vnpus = vnpus_.On(2);
  SetInventory(changed);
  auto plugin = StartWithVnpus();
  Claim("a", {Result("npu-2-vir05-1c-8g-0")});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  EXPECT_THAT(Spec("a").devices.at(0).container_edits.device_nodes.at(0).host_path,
              "/dev/vdavinci132");
  EXPECT_FALSE(Record("a").devices.at(0).vnpu->managed);
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_EQ(vnpus_.creates() + vnpus_.destroys(), 0);
  EXPECT_THAT(vnpus_.Listed(), ElementsAre("2:vir05_1c_8g:132"));

  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  vnpus_.Destroy(132);
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")).status(),
              Refused("vNPU 132 (vir05_1c_8g) of chip 2 is gone: an administrator destroyed it"));
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  ExpectNothingLeft();
}

TEST_F(EngineVnpuTest, ADividedChipIsNotGivenWhole) {
  vnpus_.Make(4, "vir05_1c_8g");
  vnpu::Inventory changed = inventory();
  changed.chips[4].partitioning->vnpus = vnpus_.On(4);
  SetInventory(changed);
  options_.busy_wait = absl::Milliseconds(10);
  auto plugin = StartWithVnpus();
  Claim("a", {Result("npu-4")});
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")).status(), Refused("chip 4 is divided: vNPU 164"));
  // The inventory is older than the last look.
  vnpus_.Destroy(164);
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
}

// The scheduler counts it from the allocation on.
TEST_F(EngineVnpuTest, WhatCouldNotBePreparedIsPending) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  vnpus_.FailCreate(absl::FailedPreconditionError("no room"));
  EXPECT_FALSE(plugin->engine.Prepare(Ref("a")).ok());
  ASSERT_THAT(plugin->engine.PendingDevices(), SizeIs(1));
  EXPECT_EQ(plugin->engine.PendingDevices()[0].name, kPart0);
  vnpus_.FailCreate(absl::OkStatus());
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  EXPECT_THAT(plugin->engine.PendingDevices(), IsEmpty());
  Claim("b", {Result(kPart0)});
  EXPECT_FALSE(plugin->engine.Prepare(Ref("b")).ok());
  EXPECT_THAT(plugin->engine.PendingDevices(), SizeIs(1));
  EXPECT_THAT(plugin->engine.Unprepare(Ref("b")), IsOk());
  EXPECT_THAT(plugin->engine.PendingDevices(), IsEmpty());
}

TEST_F(EngineVnpuTest, OffMeansThatNothingIsMade) {
  options_.devices.vnpu_mode = VnpuMode::kOff;
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")).status(), Refused("is not on this node"));
  EXPECT_EQ(vnpus_.creates(), 0);
}

// The mode was changed while a claim lives: it keeps what it has, and takes it away in the end.
TEST_F(EngineVnpuTest, AClaimOutlivesAChangeOfTheMode) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  plugin.reset();
  options_.devices.vnpu_mode = VnpuMode::kOff;
  plugin = StartWithVnpus();
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), SizeIs(1));
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), IsEmpty());
}

// 310P: two partitions of one core that share a group in the account share one on the chip.
TEST_F(EngineVnpuTest, VgroupsFollowTheAccount) {
  UseChips(vnpu::Family::k310P, "310P3", 0, 8, 24576);
  auto plugin = StartWithVnpus();
  for (const char* device : {"npu-0-vir01-0", "npu-0-vir01-2", "npu-0-vir01-1", "npu-0-vir02-2"}) {
    Claim(device, {Result(device)});
    ASSERT_THAT(plugin->engine.Prepare(Ref(device)), IsOk()) << device;
  }
  const auto group = [&](const char* uid) { return Record(uid).devices.at(0).vnpu->vgroup; };
  EXPECT_GE(group("npu-0-vir01-0"), 0);
  EXPECT_EQ(group("npu-0-vir01-0"), group("npu-0-vir01-1"));
  EXPECT_NE(group("npu-0-vir01-0"), group("npu-0-vir01-2"));
  EXPECT_NE(group("npu-0-vir02-2"), group("npu-0-vir01-2"));
  EXPECT_NE(group("npu-0-vir02-2"), group("npu-0-vir01-0"));
}

}  // namespace
}  // namespace ascend::kubeletplugin
