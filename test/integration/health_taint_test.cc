// Faults become taints and go away again, whatever is restarted, hangs or gets lost meanwhile.
#include <csignal>
#include <iostream>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "test/integration/driver_fixture.h"
#include "test/integration/health_watch.h"
#include "test/sim/child_process.h"

namespace ascend::integration {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kSeparate[] = "80E18402";         // SeparateNPU
constexpr char kRestartBusiness[] = "A2301002";  // RestartBusiness

class HealthTaintTest : public DriverTest {
 protected:
  // With this recover delay of all levels, in milliseconds.
  void Start(int recover_ms = 300, std::vector<std::string> agent_flags = {}) {
    sim::StackOptions options;
    options.agent_flags = std::move(agent_flags);
    DriverTest::StartNode(
        Configured(absl::StrReplaceAll(kQuickHealth, {{"300ms", absl::StrCat(recover_ms, "ms")}}),
                   std::move(options)));
  }

  void AddFault(int chip, const std::string& code) {
    Mock({"fault", "add", "--chip", absl::StrCat(chip), "--code", code});
  }
  void ClearFault(int chip, const std::string& code) {
    Mock({"fault", "clear", "--chip", absl::StrCat(chip), "--code", code});
  }

  nlohmann::json Device(const std::string& name) const {
    for (const nlohmann::json& slice : stack_->api_server().Slices()) {
      for (const nlohmann::json& device : slice["spec"]["devices"]) {
        if (device["name"] == name) return device;
      }
    }
    return {};
  }
  // "" = none.
  std::string Level(const std::string& name) const {
    const nlohmann::json device = Device(name);
    return device.contains("taints") ? device["taints"][0]["value"].get<std::string>() : "";
  }
  // How long it takes until the device's taint has this value.
  absl::Duration WaitForLevel(const std::string& name, const std::string& level) {
    const absl::Time start = absl::Now();
    EXPECT_TRUE(WaitFor([&] { return Level(name) == level; }, absl::Seconds(30)))
        << name << " has \"" << Level(name) << "\", not \"" << level << "\"";
    return absl::Now() - start;
  }

  void KillAgent() {
    stack_->agent().Kill(SIGKILL);
    ASSERT_TRUE(stack_->agent().WaitForEnd(absl::Seconds(10)).has_value());
  }
  void KillPlugin() {
    stack_->plugin().Kill(SIGKILL);
    ASSERT_TRUE(stack_->plugin().WaitForEnd(absl::Seconds(10)).has_value());
  }
  void RestartPlugin() {
    const int before = kubelet().registrations();
    ASSERT_THAT(stack_->StartPlugin("pod-1"), IsOk());
    ASSERT_THAT(kubelet().WaitForRegistrations(before + 1), IsOk());
  }
  std::string endpoint() { return kubelet().instances().back().endpoint; }

  // `ascend-dra chips ...` on the node: exit code and output.
  std::pair<int, std::string> Chips(const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {ASCEND_CLI, "--kubelet-root", stack_->kubelet_root(),
                                        "chips"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    auto tool = sim::ChildProcess::Start(command,
                                         config_dir_.File(absl::StrCat("chips-", ++runs_, ".log")));
    EXPECT_THAT(tool, IsOk());
    const auto end = (*tool)->WaitForEnd(absl::Seconds(30));
    return {end && WIFEXITED(*end) ? WEXITSTATUS(*end) : -1, (*tool)->log()};
  }

  int runs_ = 0;
};

TEST_F(HealthTaintTest, AFaultBecomesATaintAndGoesAgain) {
  ASSERT_NO_FATAL_FAILURE(Start(/*recover_ms=*/1500));
  if (IsSkipped()) return;
  const nlohmann::json before = api().Slices()[0];
  const int writes = api().slice_writes();
  const absl::Time start = absl::Now();
  AddFault(3, kSeparate);
  const absl::Duration took = WaitForLevel("npu-3", "SeparateNPU");
  EXPECT_LT(took, absl::Seconds(2));
  EXPECT_EQ(api().slice_writes(), writes + 1);

  nlohmann::json sick = api().Slices()[0];
  const nlohmann::json taints = sick["spec"]["devices"][3]["taints"];
  ASSERT_EQ(taints.size(), 1u);
  EXPECT_EQ(taints[0]["key"], "npu.huawei.com/unhealthy");
  EXPECT_EQ(taints[0]["effect"], "NoSchedule");
  absl::Time added;
  std::string error;
  ASSERT_TRUE(absl::ParseTime(absl::RFC3339_full, taints[0]["timeAdded"].get<std::string>(), &added,
                              &error))
      << error;
  EXPECT_GE(added, start - absl::Seconds(1));  // it has seconds only
  EXPECT_LE(added, absl::Now());
  sick["spec"]["devices"][3].erase("taints");
  EXPECT_EQ(sick["spec"], before["spec"]) << "others' entries, generation and count";

  // What does not make it worse changes nothing, not even the time.
  AddFault(3, kRestartBusiness);
  AddFault(6, kRestartBusiness);
  WaitForLevel("npu-6", "RestartBusiness");
  EXPECT_EQ(Device("npu-3")["taints"], taints);
  EXPECT_EQ(api().slice_writes(), writes + 2);

  ClearFault(3, kRestartBusiness);
  const absl::Time cleared = absl::Now();
  ClearFault(3, kSeparate);
  ClearFault(6, kRestartBusiness);
  WaitForLevel("npu-3", "");
  EXPECT_GE(absl::Now() - cleared, absl::Milliseconds(1500)) << "good news comes later";
  WaitForLevel("npu-6", "");
  EXPECT_EQ(api().Slices()[0]["spec"], before["spec"]);
  EXPECT_LE(api().slice_writes(), writes + 4);
  std::cout << "tainted after " << took << "\n";
}

TEST_F(HealthTaintTest, ASickChipStaysSickOverRestarts) {
  ASSERT_NO_FATAL_FAILURE(Start(/*recover_ms=*/300));
  if (IsSkipped()) return;
  AddFault(3, kSeparate);
  WaitForLevel("npu-3", "SeparateNPU");
  const nlohmann::json taints = Device("npu-3")["taints"];
  const int writes = api().slice_writes();
  int sick = 0;  // chips that each instance that was started is shown, to know that it looks
  const auto looks = [&] {
    const int chip = sick++ % 2 == 0 ? 6 : 7;
    AddFault(chip, kRestartBusiness);
    WaitForLevel(absl::StrCat("npu-", chip), "RestartBusiness");
    ClearFault(chip, kRestartBusiness);
    WaitForLevel(absl::StrCat("npu-", chip), "");
    EXPECT_EQ(Device("npu-3")["taints"], taints);
  };
  // What a kubelet that connects now is told, until it is told of all: never a healthy chip 3.
  const auto told = [&] {
    WatchV1 watch(endpoint());
    std::map<std::string, std::string> states;
    do {
      states = watch.Next();
      ASSERT_FALSE(states.empty());
      EXPECT_NE(states["npu-3"], "HEALTHY");
    } while (states["npu-0"] != "HEALTHY");
    EXPECT_THAT(states["npu-3"], AllOf(HasSubstr("UNHEALTHY"), HasSubstr(kSeparate)));
  };

  KillAgent();
  ASSERT_THAT(stack_->StartAgent(), IsOk());
  looks();
  KillPlugin();
  RestartPlugin();
  told();
  looks();
  // The plugin starts while nobody can ask the chips.
  KillPlugin();
  KillAgent();
  RestartPlugin();
  ASSERT_THAT(stack_->StartAgent(), IsOk());
  told();
  looks();
  EXPECT_EQ(api().slice_writes(), writes + 2 * sick) << "chip 3 was written";

  // What is fixed while the driver is away is seen when it is back.
  stack_->StopDriver();
  ClearFault(3, kSeparate);
  ASSERT_THAT(stack_->StartAgent(), IsOk());
  RestartPlugin();
  WaitForLevel("npu-3", "");
}

// Issue of every driver with one queue: a call that hangs hides all that comes after it.
TEST_F(HealthTaintTest, AHangingChipHidesNoOther) {
  ASSERT_NO_FATAL_FAILURE(Start(/*recover_ms=*/300, {"--call-timeout", "500ms"}));
  if (IsSkipped()) return;
  Mock({"call", "--name", "dcmi_get_device_health", "--physical-id", "2", "--hang"});
  AddFault(5, kSeparate);
  EXPECT_LT(WaitForLevel("npu-5", "SeparateNPU"), absl::Seconds(2));
  WaitForLevel("npu-2", "stuck");
  ClearFault(5, kSeparate);
  WaitForLevel("npu-5", "");
  EXPECT_EQ(Level("npu-2"), "stuck");
  EXPECT_EQ(absl::c_count_if(Published(), [](const auto& name) { return name.size() > 5; }), 1);

  // Not healthy because it is asked anew: it was not checked.
  const int writes = api().slice_writes();
  KillAgent();
  ASSERT_THAT(stack_->StartAgent(), IsOk());
  WatchV1 watch(endpoint());
  AddFault(6, kSeparate);
  std::map<std::string, std::string> states;
  do {
    states = watch.Next();
    ASSERT_FALSE(states.empty());
    EXPECT_NE(states["npu-2"], "HEALTHY");
  } while (!absl::StartsWith(states["npu-6"], "UNHEALTHY"));
  WaitForLevel("npu-6", "SeparateNPU");
  EXPECT_NE(Level("npu-2"), "");
  EXPECT_GE(api().slice_writes(), writes + 1);
  Mock({"call", "--clear"});
  WaitForLevel("npu-2", "");
}

TEST_F(HealthTaintTest, ALostCardKeepsItsClaimAndReturnsElsewhere) {
  ASSERT_NO_FATAL_FAILURE(Start());
  if (IsSkipped()) return;
  const nlohmann::json before = Device("npu-5");
  const sim::ClaimRef claim = Allocate("held", {{.devices = {"npu-5"}}});
  ASSERT_THAT(kubelet().Prepare({claim}), IsOk());
  Mock({"lose", "--chip", "5"});
  EXPECT_LT(WaitForLevel("npu-5", "lost"), absl::Seconds(2));
  {
    WatchV1 watch(endpoint());
    EXPECT_FALSE(watch.WaitFor("npu-5", "UNHEALTHY").empty());
  }
  EXPECT_THAT(kubelet().Prepare({claim}), IsOk()) << "a container that restarts";
  EXPECT_THAT(kubelet().Unprepare({claim}), IsOk());
  EXPECT_FALSE(HasCdiFile(claim));
  EXPECT_EQ(Level("npu-5"), "lost") << "it stays in sight";

  // A new PCI address, and logic ids that have moved.
  Mock({"return", "--chip", "5", "--bus-id", "0000:7f:00.0", "--logic-id", "0"});
  WaitForLevel("npu-5", "");
  const nlohmann::json after = Device("npu-5");
  EXPECT_EQ(after["attributes"]["uuid"], before["attributes"]["uuid"]);
  EXPECT_NE(after["attributes"], before["attributes"]) << "the address";
  EXPECT_EQ(Published().size(), 8u);
  const sim::ClaimRef next = Allocate("next", {{.devices = {"npu-5"}}});
  ASSERT_THAT(kubelet().Prepare({next}), IsOk());
  const auto text = ReadFile(CdiFile(next));
  ASSERT_THAT(text, IsOk());
  EXPECT_THAT(*text, HasSubstr("\"/dev/davinci5\""));
  // And the one that took its place in the library's list is still the other chip.
  AddFault(0, kSeparate);
  WaitForLevel("npu-0", "SeparateNPU");
  EXPECT_EQ(Level("npu-5"), "");
}

TEST_F(HealthTaintTest, APortThatIsDownForLong) {
  ASSERT_NO_FATAL_FAILURE(Start());
  if (IsSkipped()) return;
  const int writes = api().slice_writes();
  Mock({"network", "--chip", "4", "down"});
  const absl::Duration took = WaitForLevel("npu-4", "PreSeparateNPU");
  EXPECT_GE(took, absl::Milliseconds(500)) << "short losses are ordinary";
  Mock({"network", "--chip", "4", "ok"});
  WaitForLevel("npu-4", "");
  EXPECT_EQ(api().slice_writes(), writes + 2);
}

TEST_F(HealthTaintTest, TheHolderIsToldByEvents) {
  ASSERT_NO_FATAL_FAILURE(Start());
  if (IsSkipped()) return;
  const sim::ClaimRef claim = Allocate("held", {{.devices = {"npu-3"}}});
  ASSERT_THAT(kubelet().Prepare({claim}), IsOk());
  Mock({"fault", "add", "--chip", "3", "--code", kSeparate, "--text", "HBM multi bit ecc"});
  const auto told = [&](const std::string& reason) {
    std::vector<std::string> about;
    for (const nlohmann::json& event : api().List("events")) {
      if (event["reason"] != reason) continue;
      EXPECT_EQ(event["type"], reason == "NpuHealthy" ? "Normal" : "Warning");
      about.push_back(absl::StrCat(event["regarding"]["kind"].get<std::string>(), ": ",
                                   event["note"].get<std::string>()));
    }
    return about;
  };
  EXPECT_TRUE(WaitFor([&] { return told("NpuUnhealthy").size() == 2; }));
  EXPECT_THAT(told("NpuUnhealthy"),
              AllOf(Contains(AllOf(HasSubstr("Node: "), HasSubstr("HBM multi bit ecc"))),
                    Contains(AllOf(HasSubstr("Pod: "), HasSubstr(kSeparate)))));
  ClearFault(3, kSeparate);
  EXPECT_TRUE(WaitFor([&] { return told("NpuHealthy").size() == 2; }));
  EXPECT_EQ(told("NpuUnhealthy").size(), 2u);
}

TEST_F(HealthTaintTest, IsolationByHand) {
  ASSERT_NO_FATAL_FAILURE(Start());
  if (IsSkipped()) return;
  auto [code, output] = Chips({"list"});
  EXPECT_EQ(code, 0) << output;
  const absl::Time start = absl::Now();
  std::tie(code, output) = Chips({"isolate", "3", "--reason", "fan is loud"});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(output, AllOf(HasSubstr("ManuallySeparateNPU"), HasSubstr("fan is loud")));
  WaitForLevel("npu-3", "ManuallySeparateNPU");
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  const nlohmann::json taints = Device("npu-3")["taints"];
  std::tie(code, output) = Chips({"list"});
  EXPECT_EQ(code, 1) << output;
  EXPECT_THAT(output, AllOf(HasSubstr("ManuallySeparateNPU"), HasSubstr("fan is loud")));

  // Kept over restarts, and beside a fault.
  const int writes = api().slice_writes();
  KillPlugin();
  KillAgent();
  ASSERT_THAT(stack_->StartAgent(), IsOk());
  RestartPlugin();
  AddFault(3, kRestartBusiness);
  AddFault(4, kRestartBusiness);
  WaitForLevel("npu-4", "RestartBusiness");
  EXPECT_EQ(Device("npu-3")["taints"], taints);
  EXPECT_EQ(api().slice_writes(), writes + 1);
  std::tie(code, output) = Chips({"release", "3"});
  EXPECT_EQ(code, 0) << output;
  WaitForLevel("npu-3", "RestartBusiness");

  // An order that is given while the plugin is down.
  KillPlugin();
  std::tie(code, output) = Chips({"isolate", "6", "--reason", "to be moved"});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(output, HasSubstr("as soon as it runs"));
  RestartPlugin();
  WaitForLevel("npu-6", "ManuallySeparateNPU");
  std::tie(code, output) = Chips({"release", "6"});
  WaitForLevel("npu-6", "");

  std::tie(code, output) = Chips({"isolate", "12", "--reason", "typo"});
  EXPECT_EQ(code, 3);
  EXPECT_THAT(output, HasSubstr("there is no chip 12"));
  std::tie(code, output) = Chips({"isolate", "2"});
  EXPECT_EQ(code, 2) << output;
  EXPECT_EQ(Level("npu-2"), "");
}

}  // namespace
}  // namespace ascend::integration
