// Chips that a fault wants reset, on the real processes.
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "test/integration/driver_fixture.h"
#include "test/sim/child_process.h"

namespace ascend::integration {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kFreeRestart[] = "8C044E00";  // FreeRestartNPU

class ResetTest : public DriverTest {
 protected:
  void Start(const std::string& reset) {
    sim::StackOptions options;
    options.plugin_flags = {"--v=1"};
    StartNode(Configured(absl::StrCat("health:\n  reset: ", reset,
                                      "\n  faultTable:\n    actions:\n"
                                      "      FreeRestartNPU: {recover: 300ms}\n"
                                      "      unknown: {recover: 300ms}\n"
                                      "      stuck: {recover: 300ms}\n"
                                      "      absent: {recover: 300ms}\n"),
                         std::move(options)));
  }
  void AddFault(int chip) {
    Mock({"fault", "add", "--chip", absl::StrCat(chip), "--code", kFreeRestart});
  }
  static std::vector<std::string> All(const std::string& taint = "") {
    std::vector<std::string> names;
    for (int i = 0; i < 8; ++i) names.push_back(absl::StrCat("npu-", i, taint));
    return names;
  }
  static std::vector<std::string> OneSick() {
    std::vector<std::string> names = All();
    names[3] = "npu-3!FreeRestartNPU";
    return names;
  }
  // Its message; empty if there is none.
  std::string Event(const std::string& reason) {
    for (const nlohmann::json& event : api().List("events")) {
      if (event["reason"] == reason) return event["note"].get<std::string>();
    }
    return "";
  }
  std::string Resets() {
    return ReadFile(stack_->kubelet_root() + "/plugins/npu.huawei.com/resets.json").value_or("");
  }
  std::string ChipsList() {
    auto tool = sim::ChildProcess::Start(
        {ASCEND_CLI, "--kubelet-root", stack_->kubelet_root(), "chips", "list"},
        config_dir_.File("chips.log"));
    EXPECT_THAT(tool, IsOk());
    (*tool)->WaitForEnd(absl::Seconds(30));
    return (*tool)->log();
  }
};

TEST_F(ResetTest, AMeshIsResetOnceNoClaimHoldsAChipOfIt) {
  ASSERT_NO_FATAL_FAILURE(Start("idle"));
  if (IsSkipped()) return;
  Mock({"resets", "--duration", "500ms"});
  const sim::ClaimRef claim = Allocate("job");
  ASSERT_THAT(kubelet().Prepare({claim}), IsOk());
  AddFault(3);
  WaitForPublished(OneSick());
  // It has got its time to go by itself, and then another chip of the mesh is held.
  ASSERT_TRUE(WaitFor(
      [&] { return absl::StrContains(stack_->plugin().log(), "is held by claim default/job"); },
      absl::Seconds(60)));
  EXPECT_EQ(Published(), OneSick());
  EXPECT_EQ(Resets(), "");
  EXPECT_FALSE(absl::StrContains(stack_->agent().log(), "chips are reset"));

  ASSERT_THAT(kubelet().Unprepare({claim}), IsOk());
  WaitForPublished(All("!resetting"), absl::Seconds(60));
  // A pod that gets a chip all the same waits until it is over.
  ASSERT_THAT(kubelet().Prepare({claim}), IsOk());
  EXPECT_TRUE(absl::StrContains(stack_->agent().log(), "chips are reset"));
  WaitForPublished(All(), absl::Seconds(60));
  ASSERT_TRUE(WaitFor([&] { return !Event("NpuReset").empty(); }));
  EXPECT_THAT(Event("NpuReset"), AllOf(HasSubstr("NPU chip 3: reset 1 of 3"),
                                       HasSubstr(kFreeRestart), HasSubstr("have started again")));
  EXPECT_EQ(Event("NpuResetFailed"), "");
  EXPECT_THAT(ChipsList(), HasSubstr("reset 1 of 3"));
}

TEST_F(ResetTest, AResetThatFailsLeavesTheChipTaintedAndSaysWhy) {
  ASSERT_NO_FATAL_FAILURE(Start("idle"));
  if (IsSkipped()) return;
  Mock({"call", "--name", "dcmi_set_device_reset", "--return", "-8015"});
  AddFault(3);
  ASSERT_TRUE(WaitFor([&] { return !Event("NpuResetFailed").empty(); }, absl::Seconds(60)));
  EXPECT_THAT(Event("NpuResetFailed"), AllOf(HasSubstr("reset 1 of 3"), HasSubstr("-8015")));
  WaitForPublished(OneSick());
  EXPECT_THAT(ChipsList(),
              AllOf(HasSubstr("FreeRestartNPU"), HasSubstr("failed: "), HasSubstr("-8015")));
  // A restart does not begin to count anew.
  const std::string resets = Resets();
  const int before = kubelet().registrations();
  stack_->plugin().Kill(SIGKILL);
  ASSERT_TRUE(stack_->plugin().WaitForEnd(absl::Seconds(10)).has_value());
  ASSERT_THAT(stack_->StartPlugin("pod-1"), IsOk());
  ASSERT_THAT(kubelet().WaitForRegistrations(before + 1), IsOk());
  EXPECT_EQ(Resets(), resets);
  WaitForPublished(OneSick());
}

TEST_F(ResetTest, NothingIsResetUnlessItIsAskedFor) {
  ASSERT_NO_FATAL_FAILURE(Start("off"));
  if (IsSkipped()) return;
  AddFault(3);
  WaitForPublished(OneSick());
  // What would begin a reset comes after 15 s.
  EXPECT_FALSE(WaitFor([&] { return Published() != OneSick(); }, absl::Seconds(20)));
  EXPECT_EQ(Resets(), "");
}

}  // namespace
}  // namespace ascend::integration
