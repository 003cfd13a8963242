// Parts of chips through the whole driver: plugin, agent, the library, and what stands for the
// kernel. Whatever breaks, one live claim has one vNPU and none of ours is left without a claim.
#include <signal.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "test/integration/driver_fixture.h"
#include "test/sim/child_process.h"

namespace ascend::integration {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kPart[] = "npu-0-vir05-1c-8g-0";
constexpr char kNeighbour[] = "npu-0-vir05-1c-8g-1";
constexpr char kElsewhere[] = "npu-1-vir05-1c-8g-0";

class VnpuTest : public DriverTest {
 protected:
  ~VnpuTest() override {
    if (HasFailure() && kernel_ != nullptr) fprintf(stderr, "%s", kernel_->log().c_str());
  }

  // A node whose kernel runs; the driver has published if `start`.
  void Node(const std::string& config = "vnpuMode: dynamic\n", bool start = true,
            bool recovery = false) {
    Boot("boot-1");
    sim::StackOptions options = Configured(absl::StrCat(config, kQuickHealth));
    options.mock_node = "8x910B4";
    options.plugin_flags.insert(options.plugin_flags.end(),
                                {"--boot-id-file", dir_.File("boot-id")});
    ASSERT_NO_FATAL_FAILURE(MakeNode(std::move(options)));
    if (IsSkipped()) return;
    Mock({"vnpu", "mode", "--recovery", recovery ? "on" : "off"});
    auto kernel = sim::ChildProcess::Start(
        {JoinPath(ASCEND_MOCK_DIR, "ascend-mock-node"), "kernel", "--node-dir",
         HostPath("etc/ascend-dra/mock-node"), "--root", HostPath("")},
        JoinPath(stack_->root(), "kernel.log"));
    ASSERT_THAT(kernel, IsOk());
    kernel_ = *std::move(kernel);
    ASSERT_TRUE(WaitFor([&] { return absl::StrContains(kernel_->log(), "ready"); }));
    if (start) {
      StartDriver();
    }
  }

  // Until the pool is complete: it has several slices.
  void StartDriver() {
    ASSERT_THAT(stack_->StartDriver(), IsOk()) << stack_->Logs();
    ASSERT_TRUE(WaitFor([&] {
      const auto slices = api().Slices();
      return !slices.empty() && slices[0]["spec"]["pool"]["resourceSliceCount"] == slices.size();
    }));
  }

  void Boot(const std::string& id) {
    ASSERT_THAT(WriteFileAtomically(dir_.File("boot-id"), id + "\n", {}), IsOk());
  }

  // "0:vir05_1c_8g:100" of each vNPU there is, whoever made it.
  std::vector<std::string> Vnpus() {
    std::vector<std::string> lines;
    auto tool =
        sim::ChildProcess::Start({JoinPath(ASCEND_MOCK_DIR, "ascend-mock-node"), "vnpu", "list",
                                  "--node-dir", HostPath("etc/ascend-dra/mock-node")},
                                 dir_.File(absl::StrCat("list-", ++lists_)));
    EXPECT_THAT(tool, IsOk());
    if (!tool.ok() || (*tool)->WaitForEnd(absl::Seconds(10)) != 0) return {"no answer"};
    const auto json = nlohmann::json::parse((*tool)->log(), nullptr, false);
    if (json.is_discarded()) return {(*tool)->log()};
    const auto& vnpus = json.is_array() ? json : json["vnpus"];
    for (const auto& vnpu : vnpus) {
      lines.push_back(absl::StrCat(vnpu["physicalID"].get<int>(), ":",
                                   vnpu["template"].get<std::string>(), ":",
                                   vnpu["id"].get<int>()));
    }
    return lines;
  }

  sim::ClaimRef Part(const std::string& name, const std::string& device = kPart) {
    return Allocate(name, {{.devices = {device}}});
  }
  void Prepare(const sim::ClaimRef& claim) {
    const auto answers = kubelet().CallPrepare({claim});
    ASSERT_THAT(answers, IsOk());
    ASSERT_EQ(answers->at(claim.uid).error, "");
  }
  std::string UnprepareError(const sim::ClaimRef& claim) {
    const auto status = kubelet().Unprepare({claim});
    return status.ok() ? "" : std::string(status.message());
  }
  bool HasNode(int id) {
    return ::access(HostPath(absl::StrCat("dev/vdavinci", id)).c_str(), F_OK) == 0;
  }
  void KillPlugin() {
    stack_->plugin().Kill(SIGKILL);
    ASSERT_TRUE(stack_->plugin().WaitForEnd(absl::Seconds(10)).has_value());
  }
  void RestartPlugin() {
    const int registrations = ++registrations_;
    ASSERT_THAT(stack_->StartPlugin("pod-1"), IsOk());
    ASSERT_THAT(kubelet().WaitForRegistrations(registrations), IsOk());
  }
  void RestartAgent() {
    if (stack_->agent().running()) stack_->agent().Kill(SIGKILL);
    ASSERT_TRUE(stack_->agent().WaitForEnd(absl::Seconds(10)).has_value());
    ASSERT_THAT(stack_->StartAgent(), IsOk());
  }
  std::string Counter(const std::string& set, const std::string& counter) {
    for (const auto& slice : api().Slices()) {
      for (const auto& shared : slice["spec"].value("sharedCounters", nlohmann::json::array())) {
        if (shared["name"] == set) return shared["counters"][counter]["value"];
      }
    }
    return "";
  }

  TempDir dir_;
  std::unique_ptr<sim::ChildProcess> kernel_;
  int lists_ = 0;
  int registrations_ = 1;
};

TEST_F(VnpuTest, PartsComeAndGoAndSlicesStay) {
  Node();
  if (IsSkipped()) return;
  EXPECT_THAT(Published(), Contains(kPart));
  const int writes = api().slice_writes();
  const sim::ClaimRef a = Part("a"), b = Part("b", kNeighbour);
  Prepare(a);
  Prepare(b);
  EXPECT_THAT(Vnpus(), ElementsAre("0:vir05_1c_8g:100", "0:vir05_1c_8g:101"));
  EXPECT_TRUE(HasNode(100));
  EXPECT_EQ(UnprepareError(a), "");
  EXPECT_EQ(UnprepareError(b), "");
  EXPECT_THAT(Vnpus(), IsEmpty());
  const sim::ClaimRef whole = Allocate("whole", {{.devices = {"npu-0"}}});
  Prepare(whole);
  EXPECT_EQ(UnprepareError(whole), "");
  EXPECT_EQ(api().slice_writes(), writes);
}

TEST_F(VnpuTest, ErrorsOfTheLibraryReachTheKubelet) {
  Node();
  if (IsSkipped()) return;
  const sim::ClaimRef a = Part("a");
  Mock({"process", "--physical-id", "0", "--pid", "77"});
  EXPECT_THAT(PrepareError(a), HasSubstr("-8020"));
  EXPECT_THAT(Vnpus(), IsEmpty());
  Mock({"process", "--physical-id", "0", "--clear"});
  // The library makes it and then says that it could not.
  Mock({"call", "--name", "dcmi_create_vdevice", "--return", "-8005", "--after-work"});
  EXPECT_THAT(PrepareError(a), HasSubstr("-8005"));
  EXPECT_THAT(Vnpus(), IsEmpty());
  Mock({"call", "--clear"});
  Prepare(a);
  EXPECT_THAT(Vnpus(), SizeIs(1));
  EXPECT_EQ(UnprepareError(a), "");
  EXPECT_THAT(Vnpus(), IsEmpty());
}

TEST_F(VnpuTest, TheAgentDiesRightAfterTheCreate) {
  Node();
  if (IsSkipped()) return;
  const sim::ClaimRef a = Part("a");
  Mock({"call", "--name", "dcmi_create_vdevice", "--crash", "--after-work"});
  // The kubelet's call lives through the restart.
  std::thread prepare([&] { Prepare(a); });
  EXPECT_TRUE(stack_->agent().WaitForEnd(absl::Seconds(20)).has_value());
  EXPECT_THAT(Vnpus(), SizeIs(1));
  Mock({"call", "--clear"});
  RestartAgent();
  prepare.join();
  EXPECT_THAT(Vnpus(), ElementsAre("0:vir05_1c_8g:100"));
  EXPECT_EQ(UnprepareError(a), "");
  EXPECT_THAT(Vnpus(), IsEmpty());
}

TEST_F(VnpuTest, ThePluginDiesDuringTheCreate) {
  Node();
  if (IsSkipped()) return;
  const sim::ClaimRef a = Part("a"), b = Part("b", kNeighbour);
  Mock({"call", "--name", "dcmi_create_vdevice", "--delay", "500ms", "--after-work"});
  for (const sim::ClaimRef& claim : {a, b}) {
    const size_t before = Vnpus().size();
    std::thread kubelet_call([&] { (void)kubelet().CallPrepare({claim}); });
    EXPECT_TRUE(WaitFor([&] { return Vnpus().size() > before; }));
    KillPlugin();
    kubelet_call.join();
    RestartPlugin();
  }
  Mock({"call", "--clear"});
  EXPECT_THAT(Vnpus(), SizeIs(2));
  // One is tried again, the other one's pod is deleted.
  Prepare(a);
  EXPECT_EQ(UnprepareError(b), "");
  EXPECT_THAT(Vnpus(), ElementsAre("0:vir05_1c_8g:100"));
  EXPECT_EQ(UnprepareError(a), "");
  EXPECT_THAT(Vnpus(), IsEmpty());
}

TEST_F(VnpuTest, ThePluginDiesDuringTheDestroy) {
  Node();
  if (IsSkipped()) return;
  const sim::ClaimRef a = Part("a");
  Prepare(a);
  for (const bool done : {false, true}) {
    Mock({"call", "--clear"});
    if (done) {
      Mock({"call", "--name", "dcmi_set_destroy_vdevice", "--delay", "500ms", "--after-work"});
    } else {
      Mock({"call", "--name", "dcmi_set_destroy_vdevice", "--return", "-8020"});
    }
    std::thread kubelet_call([&] { (void)kubelet().Unprepare({a}); });
    EXPECT_TRUE(WaitFor([&] { return done ? Vnpus().empty() : !HasCdiFile(a); }));
    KillPlugin();
    kubelet_call.join();
    RestartPlugin();
  }
  Mock({"call", "--clear"});
  EXPECT_EQ(UnprepareError(a), "");
  EXPECT_THAT(Vnpus(), IsEmpty());
  const sim::ClaimRef b = Part("b");
  Prepare(b);
  EXPECT_THAT(Vnpus(), SizeIs(1));
}

// The kubelet makes no Event of an Unprepare that fails.
TEST_F(VnpuTest, AVnpuThatStaysIsToldOnce) {
  Node();
  if (IsSkipped()) return;
  const sim::ClaimRef a = Part("a");
  Prepare(a);
  Mock({"call", "--name", "dcmi_set_destroy_vdevice", "--return", "-8020"});
  const auto told = [&] {
    std::vector<std::string> notes;
    for (const nlohmann::json& event : api().List("events")) {
      if (event["reason"] != "VnpuNotDestroyed") continue;
      EXPECT_EQ(event["type"], "Warning");
      EXPECT_EQ(event["action"], "DestroyVnpu");
      EXPECT_EQ(event["regarding"]["kind"], "ResourceClaim");
      EXPECT_EQ(event["regarding"]["uid"], a.uid);
      notes.push_back(event["note"]);
    }
    return notes;
  };
  EXPECT_NE(UnprepareError(a), "");
  EXPECT_TRUE(WaitFor([&] { return !told().empty(); }));
  EXPECT_NE(UnprepareError(a), "");
  EXPECT_NE(UnprepareError(a), "");
  Mock({"call", "--clear"});
  EXPECT_EQ(UnprepareError(a), "");
  EXPECT_THAT(Vnpus(), IsEmpty());
  EXPECT_THAT(told(), ElementsAre(AllOf(HasSubstr("vNPU 100 (vir05_1c_8g) of chip 0 stays"),
                                        HasSubstr("busy, or refused"))));
}

TEST_F(VnpuTest, TheNodeNeverAppears) {
  Node();
  if (IsSkipped()) return;
  kernel_->Kill(SIGKILL);
  const sim::ClaimRef a = Part("a");
  EXPECT_THAT(PrepareError(a), HasSubstr("device node /dev/vdavinci100 is missing"));
  EXPECT_THAT(Vnpus(), IsEmpty());
}

// VNP-12
TEST_F(VnpuTest, ADestroyThatHangsKeepsOnlyItsChip) {
  Node();
  if (IsSkipped()) return;
  const sim::ClaimRef a = Part("a"), b = Part("b", kElsewhere);
  Prepare(a);
  Mock({"call", "--name", "dcmi_set_destroy_vdevice", "--physical-id", "0", "--hang"});
  std::string error;
  std::thread hanging([&] { error = UnprepareError(a); });
  EXPECT_TRUE(WaitFor([&] { return !HasCdiFile(a); }));
  const absl::Time start = absl::Now();
  Prepare(b);
  EXPECT_EQ(UnprepareError(b), "");
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  // The chip is kept from new pods after a while.
  EXPECT_TRUE(WaitFor(
      [&] {
        return absl::StrContains(absl::StrJoin(Published(), " "), "npu-0-vir05-1c-8g-1!stuck");
      },
      absl::Seconds(40)));
  EXPECT_THAT(Published(), Contains(kElsewhere));
  Mock({"call", "--clear"});
  hanging.join();
  EXPECT_TRUE(WaitFor([&] { return UnprepareError(a).empty(); }));
  EXPECT_THAT(Vnpus(), IsEmpty());
  EXPECT_TRUE(WaitFor([&] {
    return absl::StrContains(absl::StrJoin(Published(), " ") + " ", "npu-0-vir05-1c-8g-1 ");
  }));
}

// VNP-02: what is called unused is not destroyed.
TEST_F(VnpuTest, AVnpuOfALiveClaimSurvivesEverything) {
  Node();
  if (IsSkipped()) return;
  const sim::ClaimRef a = Part("a");
  Prepare(a);
  RestartAgent();
  KillPlugin();
  RestartPlugin();
  stack_->StopDriver();
  EXPECT_THAT(Vnpus(), ElementsAre("0:vir05_1c_8g:100"));
  ASSERT_THAT(stack_->StartAgent(), IsOk());
  RestartPlugin();
  EXPECT_TRUE(HasCdiFile(a));
  Prepare(a);
  EXPECT_THAT(Vnpus(), ElementsAre("0:vir05_1c_8g:100"));
}

// VNP-04, VNP-11
TEST_F(VnpuTest, ForeignVnpusAreRespectedAndShown) {
  Node("vnpuMode: dynamic\n", /*start=*/false);
  if (IsSkipped()) return;
  Mock({"vnpu", "create", "--physical-id", "2", "--template", "vir10_3c_16g"});
  StartDriver();
  EXPECT_THAT(Published(), Contains("npu-2!divided"));
  EXPECT_EQ(Counter("npu-2", "aicore"), "10");
  EXPECT_EQ(Counter("npu-3", "aicore"), "20");
  Mock({"vnpu", "create", "--physical-id", "3", "--template", "vir05_1c_8g"});
  EXPECT_TRUE(WaitFor([&] { return Counter("npu-3", "aicore") == "15"; }));
  // Beside it there is room.
  const sim::ClaimRef a = Part("a", "npu-3-vir05-1c-8g-0");
  Prepare(a);
  EXPECT_THAT(Vnpus(), ElementsAre("2:vir10_3c_16g:132", "3:vir05_1c_8g:148", "3:vir05_1c_8g:149"));
  EXPECT_EQ(UnprepareError(a), "");
  stack_->StopDriver();
  EXPECT_THAT(Vnpus(), ElementsAre("2:vir10_3c_16g:132", "3:vir05_1c_8g:148"));
  ASSERT_THAT(stack_->StartAgent(), IsOk());
  RestartPlugin();
  Mock({"vnpu", "destroy", "--id", "148"});
  EXPECT_TRUE(WaitFor([&] { return Counter("npu-3", "aicore") == "20"; }));
  EXPECT_TRUE(
      WaitFor([&] { return absl::StrContains(absl::StrJoin(Published(), " "), " npu-3 npu-3-"); }));
}

TEST_F(VnpuTest, RebootsWithAndWithoutRecovery) {
  Node();
  if (IsSkipped()) return;
  const sim::ClaimRef a = Part("a"), b = Part("b", kNeighbour);
  Prepare(a);
  Prepare(b);
  int boot = 1;
  for (const bool recovery : {false, true}) {
    stack_->StopDriver();
    Boot(absl::StrCat("boot-", ++boot));
    Mock({"vnpu", "mode", "--recovery", recovery ? "on" : "off"});
    Mock({"reboot", "--permute-ids"});
    EXPECT_THAT(Vnpus(), SizeIs(recovery ? 2 : 0));
    ASSERT_THAT(stack_->StartAgent(), IsOk());
    RestartPlugin();
    Prepare(a);
    Prepare(b);
    EXPECT_THAT(Vnpus(), SizeIs(2));
  }
  EXPECT_EQ(UnprepareError(a), "");
  EXPECT_EQ(UnprepareError(b), "");
  EXPECT_THAT(Vnpus(), IsEmpty());
}

TEST_F(VnpuTest, AChipDropsWhileItIsDivided) {
  Node();
  if (IsSkipped()) return;
  const sim::ClaimRef a = Part("a");
  Prepare(a);
  Mock({"chip", "--physical-id", "0", "--set", "present=false"});
  EXPECT_TRUE(WaitFor([&] {
    return absl::StrContains(absl::StrJoin(Published(), " "), absl::StrCat(kPart, "!lost"));
  }));
  EXPECT_EQ(UnprepareError(a), "") << "its pod must be able to end";
  EXPECT_THAT(Vnpus(), SizeIs(1));
  Mock({"chip", "--physical-id", "0", "--set", "present=true"});
  EXPECT_TRUE(WaitFor([&] { return Vnpus().empty(); }, absl::Seconds(30)));
  EXPECT_TRUE(WaitFor([&] {
    return absl::StrContains(absl::StrJoin(Published(), " ") + " ", absl::StrCat(kPart, " "));
  }));
}

TEST_F(VnpuTest, ModesOfTheNodeAreTheOperators) {
  Node("vnpuMode: dynamic\n", true, /*recovery=*/true);
  if (IsSkipped()) return;
  EXPECT_THAT(Published(), Not(Contains(HasSubstr("vir05"))));
  EXPECT_THAT(stack_->Logs(), HasSubstr("vNPU recovery is on"));
  Mock({"vnpu", "mode", "--recovery", "off"});
  EXPECT_TRUE(WaitFor([&] { return absl::StrContains(absl::StrJoin(Published(), " "), kPart); }));
}

TEST_F(VnpuTest, ModesAreChangedWhereThatIsAllowed) {
  Node("vnpuMode: dynamic\nvnpuChangeNodeModes: true\n", true, /*recovery=*/true);
  if (IsSkipped()) return;
  EXPECT_TRUE(WaitFor([&] { return absl::StrContains(absl::StrJoin(Published(), " "), kPart); }));
  EXPECT_THAT(stack_->Logs(), HasSubstr("vNPU recovery is off"));
}

TEST_F(VnpuTest, StaticFollowsTheAdministrator) {
  Node("vnpuMode: static\n");
  if (IsSkipped()) return;
  EXPECT_THAT(Published(), Not(Contains(HasSubstr("vir05"))));
  Mock({"vnpu", "create", "--physical-id", "1", "--template", "vir05_1c_8g"});
  EXPECT_TRUE(WaitFor([&] {
    return absl::StrContains(absl::StrJoin(Published(), " "), "npu-1!divided npu-1-vir05-1c-8g-0");
  }));
  const sim::ClaimRef a = Part("a", kElsewhere);
  Prepare(a);
  EXPECT_EQ(UnprepareError(a), "");
  EXPECT_THAT(Vnpus(), ElementsAre("1:vir05_1c_8g:116"));
  Mock({"vnpu", "destroy", "--id", "116"});
  EXPECT_TRUE(WaitFor(
      [&] { return !absl::StrContains(absl::StrJoin(Published(), " "), "npu-1-vir05-1c-8g-0"); }));
}

}  // namespace
}  // namespace ascend::integration
