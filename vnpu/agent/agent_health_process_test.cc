// The program as a whole, on the mock library: chips that are sick, hang, and recover.
#include <signal.h>

#include <optional>
#include <string>
#include <vector>

#include "base/core/status_matchers.h"
#include "base/runtime/clock.h"
#include "gmock/gmock.h"
#include "vnpu/agent/agent_process.h"
#include "vnpu/dcmi/mock/fault_edit.h"

namespace ascend::agent {
namespace {

using ::ascend::vnpu::Fault;
using ::ascend::vnpu::FaultSeverity;
using ::ascend::vnpu::Health;
using ::ascend::vnpu::LibraryState;
using ::ascend::vnpu::NetworkHealth;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr uint64_t kCode = 0x80E01801;

class AgentHealthProcessTest : public AgentProcessTest {
 protected:
  // The fault of a chip as it is now.
  static std::optional<Fault> FaultOf(const View& view, size_t chip) {
    const std::optional<std::vector<Fault>>& faults = view.inventory->chips[chip].faults;
    if (!faults.has_value()) return std::nullopt;
    for (const Fault& fault : *faults) {
      if (fault.code == kCode) return fault;
    }
    return std::nullopt;
  }
  [[nodiscard]] bool WaitForFault(size_t chip, bool active, uint64_t occurrences) {
    return WaitUntil([=](const View& view) {
      const std::optional<Fault> fault = FaultOf(view, chip);
      return fault.has_value() && fault->active == active && fault->occurrences == occurrences;
    });
  }
};

TEST_F(AgentHealthProcessTest, AChipWhoseHealthHangsHoldsUpNoOther) {
  const auto agent =
      Start({"--chip-timeout", "100ms", "--call-timeout", "400ms", "--stuck-timeout", "800ms"});
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  SetCall("dcmi_get_device_health", {{"physicalID", 3}, {"hang", true}});
  ASSERT_TRUE(WaitUntil([](const View& v) { return !v.inventory->chips[3].stuck.empty(); }));
  const vnpu::Chip stuck = client_->Current().inventory->chips[3];
  EXPECT_THAT(stuck.stuck, HasSubstr("its health"));
  EXPECT_EQ(stuck.health, Health::kUnknown);
  EXPECT_EQ(stuck.faults, std::nullopt);
  EXPECT_EQ(stuck.faults_error, stuck.stuck);
  EXPECT_EQ(stuck.busy, std::nullopt);
  EXPECT_TRUE(agent->WaitForOutput("chip stuck"));

  // The others' health flows on, longer than a call about the node could hang.
  const absl::Duration start = Clock::Real().Monotonic();
  for (int i = 0; Clock::Real().Monotonic() - start < absl::Milliseconds(1200); ++i) {
    const bool sick = i % 2 == 0;
    EditNode([sick](nlohmann::json& node) {
      for (const int chip : {2, 4}) node["chips"][chip]["health"] = sick ? 2 : 0;
    });
    const absl::Duration change = Clock::Real().Monotonic();
    ASSERT_TRUE(WaitUntil([sick](const View& v) {
      const Health expected = sick ? Health::kMajor : Health::kOk;
      return v.inventory->chips[2].health == expected && v.inventory->chips[4].health == expected;
    }));
    EXPECT_LT(Clock::Real().Monotonic() - change, absl::Seconds(2));
    ASSERT_TRUE(client_->Current().connected) << "the process lives";
    EXPECT_EQ(client_->Current().inventory->library, LibraryState::kReady);
    EXPECT_FALSE(client_->Current().inventory->chips[3].stuck.empty());
  }
  const auto processes = client_->ListProcesses({3, 4}, kLong);
  ASSERT_THAT(processes, IsOk());
  EXPECT_FALSE((*processes)[0].known);
  EXPECT_THAT((*processes)[0].error, HasSubstr("its health"));
  EXPECT_TRUE((*processes)[1].known) << (*processes)[1].error;

  // It recovers by itself.
  const std::string instance = client_->Current().inventory->agent_instance;
  EditNode([](nlohmann::json& node) {
    node["calls"] = nlohmann::json::object();
    for (const int chip : {2, 4}) node["chips"][chip]["health"] = 0;
  });
  ASSERT_TRUE(WaitAllWell(8));
  ASSERT_TRUE(WaitUntil([](const View& v) { return v.inventory->chips[3].stuck.empty(); }));
  EXPECT_EQ(client_->Current().inventory->agent_instance, instance);
  EXPECT_TRUE(agent->WaitForOutput("chip answers again"));
}

TEST_F(AgentHealthProcessTest, SeveralChipsAndTheirNetworksMayHangFromTheStart) {
  SetCall("dcmi_get_device_network_health", {{"physicalID", 5}, {"hang", true}});
  SetCall("dcmi_get_device_type", {{"physicalID", 0}, {"hang", true}});
  const auto agent = Start({"--chip-timeout", "100ms"});
  Connect();
  ASSERT_TRUE(WaitForState(LibraryState::kReady));
  // What was never read is not shown as a chip.
  EXPECT_THAT(client_->Current().inventory->chips, SizeIs(6));
  EXPECT_THAT(client_->Current().inventory->skipped, SizeIs(2));
  ClearCalls();
  EXPECT_TRUE(WaitAllWell(8));
  EXPECT_THAT(client_->Current().inventory->skipped, SizeIs(0));
  // A network that hangs later is the chip's reading that hangs.
  SetCall("dcmi_get_device_network_health", {{"physicalID", 5}, {"hang", true}});
  ASSERT_TRUE(WaitUntil([](const View& v) { return !v.inventory->chips[5].stuck.empty(); }));
  EXPECT_THAT(client_->Current().inventory->chips[5].stuck, HasSubstr("the health of its network"));
  const absl::Duration start = Clock::Real().Monotonic();
  agent->Signal(SIGTERM);
  const Exit exit = agent->Wait();
  EXPECT_EQ(exit.code, 0);
  EXPECT_THAT(exit.out, HasSubstr("left a call into the NPU library behind"));
  EXPECT_LT(Clock::Real().Monotonic() - start, absl::Seconds(10));
}

TEST_F(AgentHealthProcessTest, AFaultComesAndGoes) {
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  EXPECT_EQ(client_->Current().inventory->chips[3].faults, std::vector<Fault>());
  // Polling alone: the events get lost.
  dcmi::mock::FaultWish wish = {.code = kCode, .text = "HBM multi bit ECC", .event = false};
  for (uint64_t rise = 1; rise <= 2; ++rise) {
    ASSERT_THAT(dcmi::mock::AddFault(node_, 3, wish), IsOk());
    ASSERT_TRUE(WaitForFault(3, true, rise));
    EXPECT_EQ(FaultOf(client_->Current(), 3)->text, "HBM multi bit ECC");
    EXPECT_EQ(FaultOf(client_->Current(), 4), std::nullopt);
    ASSERT_THAT(dcmi::mock::ClearFaults(node_, 3, kCode, /*event=*/false), IsOk());
    ASSERT_TRUE(WaitForFault(3, false, rise));
  }
  agent->Signal(SIGTERM);
  EXPECT_THAT(agent->Wait().out,
              AllOf(HasSubstr("msg=\"chip fault\" chip=3 code=80E01801 text=\"HBM multi bit ECC\""),
                    HasSubstr("msg=\"chip fault gone\" chip=3 code=80E01801"),
                    Not(HasSubstr("they are polled"))));
}

TEST_F(AgentHealthProcessTest, AnEventIsFasterThanThePollAndNothingIsLostBetweenLooks) {
  poll_interval_ = "1h";
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  const dcmi::mock::FaultWish wish = {.code = kCode, .severity = "critical"};
  // The subscription is made at the end of the first look.
  ASSERT_THAT(dcmi::mock::AddFault(node_, 3, wish), IsOk());
  ASSERT_TRUE(WaitForFault(3, true, 1));
  EXPECT_EQ(FaultOf(client_->Current(), 3)->severity, FaultSeverity::kCritical);
  ASSERT_THAT(dcmi::mock::ClearFaults(node_, 3, kCode, /*event=*/true), IsOk());
  ASSERT_TRUE(WaitForFault(3, false, 1));
  for (int i = 0; i < 5; ++i) {
    ASSERT_THAT(dcmi::mock::AddFault(node_, 3, wish), IsOk());
    ASSERT_THAT(dcmi::mock::ClearFaults(node_, 3, kCode, /*event=*/true), IsOk());
  }
  ASSERT_TRUE(WaitForFault(3, false, 6));
  ASSERT_THAT(dcmi::mock::TellOneShot(node_, 3, wish), IsOk());
  EXPECT_TRUE(WaitForFault(3, false, 7));
  EXPECT_EQ(FaultOf(client_->Current(), 2), std::nullopt);
}

TEST_F(AgentHealthProcessTest, WithoutSubscriptionFaultsArePolled) {
  SetCall("dcmi_subscribe_fault_event", {{"return", -8255}});
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  ASSERT_THAT(dcmi::mock::AddFault(node_, 3, {.code = kCode}), IsOk());
  ASSERT_TRUE(WaitForFault(3, true, 1));
  agent->Signal(SIGTERM);
  const std::string output = agent->Wait().out;
  const size_t first = output.find("they are polled");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(output.find("they are polled", first + 1), std::string::npos) << "said once";
}

TEST_F(AgentHealthProcessTest, ASubscriptionThatHangsHoldsUpNothing) {
  SetCall("dcmi_subscribe_fault_event", {{"hang", true}});
  const auto agent = Start({"--chip-timeout", "100ms", "--call-timeout", "200ms"});
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  ASSERT_THAT(dcmi::mock::AddFault(node_, 3, {.code = kCode}), IsOk());
  EXPECT_TRUE(WaitForFault(3, true, 1));
}

TEST_F(AgentHealthProcessTest, ANetworkGoesDownAndUp) {
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  ASSERT_THAT(dcmi::mock::SetNetwork(node_, 2, "down"), IsOk());
  ASSERT_TRUE(WaitUntil(
      [](const View& v) { return v.inventory->chips[2].network == NetworkHealth::kDown; }));
  EXPECT_EQ(client_->Current().inventory->chips[3].network, NetworkHealth::kOk);
  ASSERT_THAT(dcmi::mock::SetNetwork(node_, 2, "ok"), IsOk());
  EXPECT_TRUE(
      WaitUntil([](const View& v) { return v.inventory->chips[2].network == NetworkHealth::kOk; }));
}

TEST_F(AgentHealthProcessTest, AListThatFailsIsUnknownNotEmpty) {
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  ASSERT_THAT(dcmi::mock::AddFault(node_, 3, {.code = kCode}), IsOk());
  ASSERT_TRUE(WaitForFault(3, true, 1));
  SetCall("dcmi_get_device_errorcode_v2", {{"physicalID", 3}, {"return", -8005}});
  ASSERT_TRUE(WaitUntil([](const View& v) { return !v.inventory->chips[3].faults.has_value(); }));
  EXPECT_THAT(client_->Current().inventory->chips[3].faults_error, HasSubstr("-8005"));
  ClearCalls();
  EXPECT_TRUE(WaitForFault(3, true, 1)) << "the same occurrence";
}

}  // namespace
}  // namespace ascend::agent
