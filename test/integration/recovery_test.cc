// What must survive: crashes, restarts, upgrades, wiped directories, chips that come and go.
#include <signal.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "test/integration/driver_fixture.h"

namespace ascend::integration {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kEight = {"npu-0", "npu-1", "npu-2", "npu-3",
                                         "npu-4", "npu-5", "npu-6", "npu-7"};

std::vector<std::string> Replace(std::vector<std::string> names, const std::string& from,
                                 const std::string& to) {
  for (std::string& name : names) {
    if (name == from) name = to;
  }
  return names;
}

std::vector<std::string> Without(std::vector<std::string> names, const std::string& name) {
  std::erase(names, name);
  return names;
}

class RecoveryTest : public DriverTest {
 protected:
  void MakeNode(sim::StackOptions options = {}) {
    DriverTest::MakeNode(Configured(kQuickHealth, std::move(options)));
  }
  void StartNode(sim::StackOptions options = {}) {
    DriverTest::StartNode(Configured(kQuickHealth, std::move(options)));
  }
  std::vector<std::string> CdiIds(const sim::Answers& answers, const sim::ClaimRef& claim) {
    std::vector<std::string> ids;
    for (const auto& device : answers.at(claim.uid).devices) {
      ids.insert(ids.end(), device.cdi_device_ids.begin(), device.cdi_device_ids.end());
    }
    return ids;
  }
};

TEST_F(RecoveryTest, PluginKilledWhileClaimsArePrepared) {
  StartNode();
  if (IsSkipped()) return;
  const sim::ClaimRef claim = Allocate("held", {{.count = 2}});
  const auto before = kubelet().CallPrepare({claim});
  ASSERT_THAT(before, IsOk());
  api().ClearRequests();

  stack_->plugin().Kill(SIGKILL);
  ASSERT_TRUE(stack_->plugin().WaitForEnd(absl::Seconds(10)).has_value());
  EXPECT_THAT(Published(), kEight);  // slices outlive the process
  // The container is restarted: same pod, same sockets.
  ASSERT_THAT(stack_->StartPlugin("pod-1"), IsOk());
  ASSERT_THAT(kubelet().WaitForRegistrations(2), IsOk());

  const auto after = kubelet().CallPrepare({claim});
  ASSERT_THAT(after, IsOk());
  EXPECT_EQ(CdiIds(*before, claim), CdiIds(*after, claim));
  EXPECT_THAT(kubelet().Unprepare({claim}), IsOk());
  EXPECT_FALSE(HasCdiFile(claim));
  EXPECT_THAT(Published(), kEight);
  EXPECT_EQ(api().slice_writes(), 1);  // the very first one
}

// SLC-10: a stop and a start write nothing.
TEST_F(RecoveryTest, OrderlyRestartIsInvisible) {
  StartNode();
  if (IsSkipped()) return;
  const int writes = api().slice_writes();
  EXPECT_EQ(stack_->plugin().Terminate(), 0);
  EXPECT_THAT(kubelet().WaitForDeregistration(), IsOk());
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(stack_->root() + "/kubelet")) {
    EXPECT_FALSE(entry.is_socket()) << entry.path();
  }
  EXPECT_THAT(Published(), kEight);
  ASSERT_THAT(stack_->StartPlugin("pod-2"), IsOk());
  ASSERT_THAT(kubelet().WaitForRegistrations(2), IsOk());
  const sim::ClaimRef claim = Allocate("after");
  EXPECT_THAT(kubelet().Prepare({claim}), IsOk());
  EXPECT_EQ(api().slice_writes(), writes);
}

TEST_F(RecoveryTest, KubeletRestartBringsTheSlicesBackAtOnce) {
  StartNode();
  if (IsSkipped()) return;
  const sim::ClaimRef claim = Allocate("held");
  ASSERT_THAT(kubelet().Prepare({claim}), IsOk());
  kubelet().Restart();  // wipes all slices of the node
  EXPECT_LT(WaitForPublished(kEight), absl::Seconds(2));
  ASSERT_THAT(kubelet().WaitForRegistrations(2), IsOk());
  EXPECT_THAT(kubelet().Prepare({claim}), IsOk());  // the flag was lost: asked again
  EXPECT_THAT(kubelet().Unprepare({claim}), IsOk());
}

TEST_F(RecoveryTest, DeletedSlicesComeBackAndNothingElseIsWritten) {
  StartNode();
  if (IsSkipped()) return;
  const int before = api().slice_writes();
  ASSERT_EQ(api().DeleteSlices("mock-node"), 1);
  EXPECT_LT(WaitForPublished(kEight), absl::Seconds(2));
  EXPECT_EQ(api().slice_writes(), before + 2);  // the deletion and the creation
}

TEST_F(RecoveryTest, EmptiedCdiDirectoryIsFilledAgainWithoutBeingAsked) {
  StartNode();
  if (IsSkipped()) return;
  const sim::ClaimRef one = Allocate("one"), two = Allocate("two");
  ASSERT_THAT(kubelet().Prepare({one, two}), IsOk());
  const auto bytes = ReadFile(CdiFile(one));
  std::filesystem::remove(CdiFile(one));
  std::filesystem::remove(CdiFile(two));
  EXPECT_TRUE(WaitFor([&] { return HasCdiFile(one) && HasCdiFile(two); }));
  EXPECT_EQ(*ReadFile(CdiFile(one)), *bytes);
  // Also when the directory itself went.
  // In one step: the driver fills it again while it is being emptied.
  const std::string away = stack_->cdi_root() + ".gone";
  std::filesystem::rename(stack_->cdi_root(), away);
  std::filesystem::remove_all(away);
  EXPECT_TRUE(WaitFor([&] { return HasCdiFile(one) && HasCdiFile(two); }));
  // And one that vanished while the plugin was away.
  stack_->plugin().Kill(SIGKILL);
  ASSERT_TRUE(stack_->plugin().WaitForEnd(absl::Seconds(10)).has_value());
  std::filesystem::remove(CdiFile(one));
  ASSERT_THAT(stack_->StartPlugin("pod-1"), IsOk());
  EXPECT_TRUE(WaitFor([&] { return HasCdiFile(one); }));
}

// ORD-16
TEST_F(RecoveryTest, AProcessOnAChipThatNobodyHoldsKeepsPodsAway) {
  StartNode();
  if (IsSkipped()) return;
  const sim::ClaimRef claim = Allocate("held", {{.devices = {"npu-5"}}});
  ASSERT_THAT(kubelet().Prepare({claim}), IsOk());
  const int writes = api().slice_writes();
  Mock({"process", "--physical-id", "5", "--pid", "4242"});
  Mock({"process", "--physical-id", "2", "--pid", "4243"});
  const std::vector<std::string> one_busy = Replace(kEight, "npu-2", "npu-2!busy");
  EXPECT_LT(WaitForPublished(one_busy), absl::Seconds(10));
  EXPECT_EQ(api().slice_writes(), writes + 1);
  // The claim's own process counts as soon as it outlives the claim.
  ASSERT_THAT(kubelet().Unprepare({claim}), IsOk());
  EXPECT_LT(WaitForPublished(Replace(one_busy, "npu-5", "npu-5!busy")), absl::Seconds(10));
  Mock({"process", "--physical-id", "5", "--clear"});
  Mock({"process", "--physical-id", "2", "--pid", "4243", "--remove"});
  EXPECT_LT(WaitForPublished(kEight), absl::Seconds(5));
}

TEST_F(RecoveryTest, ChipPulledOutAndPutBack) {
  StartNode();
  if (IsSkipped()) return;
  const sim::ClaimRef claim = Allocate("held", {{.devices = {"npu-5"}}});
  ASSERT_THAT(kubelet().Prepare({claim}), IsOk());
  const nlohmann::json before = api().Slices()[0];

  Mock({"chip", "--physical-id", "2", "--set", "present=false"});
  EXPECT_LT(WaitForPublished(Replace(kEight, "npu-2", "npu-2!lost")), absl::Seconds(2));
  // All else is untouched, although all logic ids behind it have shifted.
  nlohmann::json now = api().Slices()[0];
  now["spec"]["devices"][2].erase("taints");
  EXPECT_EQ(now["spec"], before["spec"]);

  // A held one is no different.
  Mock({"chip", "--physical-id", "5", "--set", "present=false"});
  WaitForPublished(Replace(Replace(kEight, "npu-2", "npu-2!lost"), "npu-5", "npu-5!lost"));

  Mock({"chip", "--physical-id", "2", "--set", "present=true"});
  Mock({"chip", "--physical-id", "5", "--set", "present=true"});
  WaitForPublished(kEight);
  EXPECT_EQ(api().Slices()[0]["spec"], before["spec"]);

  // Lost, then released: it stays in sight.
  Mock({"chip", "--physical-id", "5", "--set", "present=false"});
  WaitForPublished(Replace(kEight, "npu-5", "npu-5!lost"));
  ASSERT_THAT(kubelet().Unprepare({claim}), IsOk());
  Mock({"chip", "--physical-id", "7", "--set", "present=false"});  // something that is waited for
  WaitForPublished(Replace(Replace(kEight, "npu-5", "npu-5!lost"), "npu-7", "npu-7!lost"));
}

// IDN-07: logic numbers re-pack when a chip drops; every call starts from the stable one.
TEST_F(RecoveryTest, ChipsBehindALostOneKeepTheirNodes) {
  StartNode();
  if (IsSkipped()) return;
  Mock({"chip", "--physical-id", "2", "--set", "present=false"});
  WaitForPublished(Replace(kEight, "npu-2", "npu-2!lost"));
  const sim::ClaimRef claim = Allocate("six", {{.devices = {"npu-6"}}});
  ASSERT_THAT(kubelet().Prepare({claim}), IsOk());
  const auto text = ReadFile(CdiFile(claim));
  ASSERT_THAT(text, IsOk());
  EXPECT_THAT(*text, HasSubstr("\"/dev/davinci6\""));
  EXPECT_THAT(*text, Not(HasSubstr("\"/dev/davinci5\"")));
}

TEST_F(RecoveryTest, SickChipIsTaintedAndRecovers) {
  StartNode();
  if (IsSkipped()) return;
  Mock({"chip", "--physical-id", "1", "--set", "health=3"});
  WaitForPublished(Replace(kEight, "npu-1", "npu-1!critical"));
  Mock({"chip", "--physical-id", "1", "--set", "health=0"});
  WaitForPublished(kEight);
}

// REC-03: publishing goes on, and nothing is given away that may be somebody's.
TEST_F(RecoveryTest, ARecordThatCannotBeReadWithholdsChips) {
  StartNode();
  if (IsSkipped()) return;
  const sim::ClaimRef claim = Allocate("held", {{.devices = {"npu-0"}}});
  ASSERT_THAT(kubelet().Prepare({claim}), IsOk());
  const std::string bad = JoinPath(stack_->kubelet_root(), "plugins/npu.huawei.com/claims/backup");
  std::filesystem::create_directory(bad);
  std::vector<std::string> withheld = {"npu-0"};
  for (size_t id = 1; id < kEight.size(); ++id) withheld.push_back(kEight[id] + "!withheld");
  WaitForPublished(withheld);
  std::filesystem::remove(bad);
  WaitForPublished(kEight);
}

TEST_F(RecoveryTest, AgentKilledDoesNotStopClaims) {
  StartNode();
  if (IsSkipped()) return;
  stack_->agent().Kill(SIGKILL);
  ASSERT_TRUE(stack_->agent().WaitForEnd(absl::Seconds(10)).has_value());
  const sim::ClaimRef claim = Allocate("meanwhile");
  EXPECT_THAT(kubelet().Prepare({claim}), IsOk());  // from the last known inventory
  // A plugin that starts while the agent is away still knows the chips of this boot.
  stack_->plugin().Kill(SIGKILL);
  ASSERT_TRUE(stack_->plugin().WaitForEnd(absl::Seconds(10)).has_value());
  ASSERT_THAT(stack_->StartPlugin("pod-1"), IsOk());
  ASSERT_THAT(kubelet().WaitForRegistrations(2), IsOk());
  const sim::ClaimRef second = Allocate("second");
  EXPECT_THAT(kubelet().Prepare({second}), IsOk());
  EXPECT_THAT(Published(), kEight);
  // The agent is back: the plugin finds it by itself.
  ASSERT_THAT(stack_->StartAgent(), IsOk());
  Mock({"chip", "--physical-id", "7", "--set", "present=false"});
  WaitForPublished(Replace(kEight, "npu-7", "npu-7!lost"));
}

TEST_F(RecoveryTest, HangingLibraryIsMarkedAndRecovers) {
  sim::StackOptions options;
  options.agent_flags = {"--call-timeout", "200ms", "--poll-interval", "100ms"};
  StartNode(options);
  if (IsSkipped()) return;
  Mock({"call", "--name", "dcmi_get_card_list", "--hang"});
  std::vector<std::string> unknown;
  for (const std::string& name : kEight) unknown.push_back(name + "!unknown");
  WaitForPublished(unknown);
  // Chips that nobody knows about now can still be prepared: their nodes are there.
  const sim::ClaimRef claim = Allocate("anyway", {{.devices = {"npu-4"}}});
  EXPECT_THAT(kubelet().Prepare({claim}), IsOk());
  Mock({"call", "--name", "dcmi_get_card_list", "--clear"});
  WaitForPublished(kEight);
}

TEST_F(RecoveryTest, DriverInstalledAfterThePod) {
  MakeNode();
  if (IsSkipped()) return;
  const std::string library = stack_->root() + "/late/libdcmi.so";
  ASSERT_THAT(stack_->StartAgent(library), IsOk());
  ASSERT_THAT(stack_->StartPlugin("pod-1"), IsOk());
  ASSERT_THAT(kubelet().WaitForRegistrations(1), IsOk());
  WaitForPublished({});  // an empty pool, not no pool
  std::filesystem::create_directories(stack_->root() + "/late");
  std::filesystem::copy(ASCEND_MOCK_LIBRARY, library);
  WaitForPublished(kEight);
}

// A rollout with overlap: the new instance registers and takes over before the old one leaves.
TEST_F(RecoveryTest, TwoInstancesDuringAnUpgrade) {
  StartNode();
  if (IsSkipped()) return;
  const sim::ClaimRef by_old = Allocate("by-old");
  ASSERT_THAT(kubelet().Prepare({by_old}), IsOk());
  const int writes = api().slice_writes();

  auto newer = stack_->StartExtraPlugin("pod-new");
  ASSERT_THAT(newer, IsOk());
  ASSERT_THAT(kubelet().WaitForRegistrations(2), IsOk());
  const sim::ClaimRef by_new = Allocate("by-new");
  EXPECT_THAT(kubelet().Prepare({by_new}), IsOk());
  // Either may be asked about any claim.
  EXPECT_THAT(kubelet().Unprepare({by_old}), IsOk());
  EXPECT_FALSE(HasCdiFile(by_old));
  EXPECT_THAT(kubelet().Prepare({by_old}), IsOk());

  EXPECT_EQ(stack_->plugin().Terminate(), 0);
  const sim::ClaimRef after = Allocate("after");
  EXPECT_THAT(kubelet().Prepare({after}), IsOk());
  EXPECT_EQ(api().slice_writes(), writes);
  // The survivor publishes.
  ASSERT_EQ(api().DeleteSlices("mock-node"), 1);
  WaitForPublished(kEight);
  EXPECT_EQ((*newer)->Terminate(), 0);
}

TEST_F(RecoveryTest, ApiServerDownAtTheStart) {
  MakeNode();
  if (IsSkipped()) return;
  const int rule = api().AddRule({.status = 503});
  ASSERT_THAT(stack_->StartAgent(), IsOk());
  ASSERT_THAT(stack_->StartPlugin("pod-1"), IsOk());
  // Registration and Unprepare do not need it.
  ASSERT_THAT(kubelet().WaitForRegistrations(1), IsOk());
  EXPECT_THAT(kubelet().Unprepare({{.name = "any", .uid = "aaaa"}}), IsOk());
  api().RemoveRule(rule);
  WaitForPublished(kEight);
}

TEST_F(RecoveryTest, OneApiErrorDoesNotFailAPod) {
  StartNode();
  if (IsSkipped()) return;
  const sim::ClaimRef claim = Allocate("bumpy");
  api().AddRule({.verb = "get",
                 .path_prefix = "/apis/resource.k8s.io/v1/namespaces",
                 .count = 2,
                 .status = 500});
  EXPECT_THAT(kubelet().Prepare({claim}), IsOk());
}

// Servers before 1.36 drop taints: sick chips are withheld, and nothing is written in a loop.
TEST_F(RecoveryTest, ServerThatDropsTaints) {
  MakeNode();
  if (IsSkipped()) return;
  api().SetFeatures(/*device_taints=*/false, /*partitionable_devices=*/false);
  ASSERT_THAT(stack_->StartDriver(), IsOk());
  const sim::ClaimRef claim = Allocate("held", {{.devices = {"npu-0"}}});
  ASSERT_THAT(kubelet().Prepare({claim}), IsOk());
  Mock({"chip", "--physical-id", "0", "--set", "health=3"});
  Mock({"chip", "--physical-id", "1", "--set", "health=3"});
  WaitForPublished(Without(kEight, "npu-1"));  // the held one stays
  Mock({"chip", "--physical-id", "1", "--set", "health=0"});
  WaitForPublished(kEight);
  EXPECT_LE(api().slice_writes(), 6);
  EXPECT_THAT(stack_->Logs(), HasSubstr("DRADeviceTaints"));
}

}  // namespace
}  // namespace ascend::integration
