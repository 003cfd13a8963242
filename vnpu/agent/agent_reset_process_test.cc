// The program as a whole, on the mock library: chips that are reset.
#include <signal.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "vnpu/agent/agent_process.h"
#include "vnpu/dcmi/mock/fault_edit.h"

namespace ascend::agent {
namespace {

using ::ascend::vnpu::Health;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr unsigned kCode = 0x8C044E00;

class AgentResetProcessTest : public AgentProcessTest {
 protected:
  void StartSick(const std::vector<std::string>& flags = {}) {
    agent_ = Start(flags);
    Connect();
    ASSERT_TRUE(WaitAllWell(8));
    ASSERT_THAT(dcmi::mock::AddFault(node_, 3, {.code = kCode, .severity = "major"}), IsOk());
    ASSERT_TRUE(
        WaitUntil([](const View& v) { return v.inventory->chips[3].health == Health::kMajor; }));
  }
  absl::StatusOr<std::vector<ChipReset>> Reset(absl::Duration boot_wait = kLong,
                                               absl::Duration timeout = kLong) {
    ResetRequest request = {.physical_id = 3, .group = {}, .boot_wait = boot_wait};
    for (const vnpu::Chip& chip : client_->Current().inventory->chips) {
      request.group.push_back({.physical_id = chip.physical_id, .uuid = chip.uuid});
    }
    return client_->ResetChips(request, timeout);
  }

  std::unique_ptr<Process> agent_;
};

TEST_F(AgentResetProcessTest, AResetMendsTheFault) {
  ASSERT_THAT(dcmi::mock::SetResetBehaviour(node_, {.duration_ms = 500}), IsOk());
  ASSERT_NO_FATAL_FAILURE(StartSick());
  const auto chips = Reset();
  ASSERT_THAT(chips, IsOk());
  EXPECT_EQ(chips->size(), 8u);
  EXPECT_THAT(*chips, Each(Field(&ChipReset::started, true)));
  EXPECT_TRUE(WaitAllWell(8));
  agent_->Signal(SIGTERM);
  EXPECT_THAT(agent_->Wait().out, HasSubstr("msg=\"chips are reset\" chip=3 group=0,1,2"));
}

TEST_F(AgentResetProcessTest, OrSaysWhatKeepsAChipFromStarting) {
  ASSERT_THAT(
      dcmi::mock::SetResetBehaviour(node_, {.duration_ms = 10, .stops_at = 2, .outband = false}),
      IsOk());
  ASSERT_NO_FATAL_FAILURE(StartSick());
  const auto chips = Reset(absl::Seconds(1));
  ASSERT_THAT(chips, IsOk());
  EXPECT_THAT(*chips, Each(AllOf(Field(&ChipReset::started, false),
                                 Field(&ChipReset::problem, HasSubstr("boot status is 2")))));
}

TEST_F(AgentResetProcessTest, ACodeOfTheLibraryComesThrough) {
  SetCall("dcmi_set_device_reset", {{"return", -8015}});
  ASSERT_NO_FATAL_FAILURE(StartSick());
  EXPECT_THAT(Reset(), StatusIs(absl::StatusCode::kAborted, HasSubstr("-8015")));
  SetCall("dcmi_set_device_reset", {{"return", -8013}});
  EXPECT_THAT(Reset(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("busy")));
  ClearCalls();
  // Any chip of the mesh.
  EditNode([](nlohmann::json& node) {
    node["chips"][6]["processes"] = {{{"pid", 4711}, {"memoryBytes", 1}}};
  });
  EXPECT_THAT(Reset(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("chip 6 is busy: process 4711")));
  EXPECT_EQ(client_->Current().inventory->chips[3].health, Health::kMajor) << "nothing was reset";
}

TEST_F(AgentResetProcessTest, AResetThatHangsShowsAsStuckAndHoldsUpNoOther) {
  SetCall("dcmi_set_device_reset", {{"hang", true}});
  ASSERT_NO_FATAL_FAILURE(StartSick({"--chip-timeout", "100ms", "--call-timeout", "400ms"}));
  ResetRequest request = {.physical_id = 3, .group = {}, .boot_wait = kLong};
  for (const int id : {3, 4}) request.group.push_back({.physical_id = id, .uuid = ""});
  std::thread reset([&] {
    EXPECT_THAT(client_->ResetChips(request, absl::Seconds(3)),
                StatusIs(absl::StatusCode::kDeadlineExceeded,
                         HasSubstr("dcmi_set_device_reset has not returned")));
  });
  EXPECT_TRUE(WaitUntil([](const View& v) {
    return !v.inventory->chips[3].stuck.empty() && !v.inventory->chips[4].stuck.empty();
  }));
  EXPECT_THAT(client_->Current().inventory->chips[4].stuck, HasSubstr("dcmi_set_device_reset"));
  EditNode([](nlohmann::json& node) { node["chips"][5]["health"] = 2; });
  EXPECT_TRUE(
      WaitUntil([](const View& v) { return v.inventory->chips[5].health == Health::kMajor; }));
  EXPECT_EQ(client_->Current().inventory->library, vnpu::LibraryState::kReady);
  reset.join();
  ClearCalls();
  EXPECT_TRUE(WaitUntil([](const View& v) { return v.inventory->chips[3].stuck.empty(); }));
  EXPECT_TRUE(agent_->WaitForOutput("a reset ended for which nobody waits any more"));
}

}  // namespace
}  // namespace ascend::agent
