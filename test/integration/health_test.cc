// The health of chips on its way to the kubelet.
#include <csignal>
#include <map>
#include <string>

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "test/integration/driver_fixture.h"
#include "test/integration/health_watch.h"

namespace ascend::integration {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class HealthTest : public DriverTest {
 protected:
  void StartNode() { DriverTest::StartNode(Configured(kQuickHealth)); }
  std::string endpoint() { return kubelet().instances().back().endpoint; }
};

TEST_F(HealthTest, AChipsChangeReachesTheKubelet) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  if (IsSkipped()) return;
  EXPECT_THAT(kubelet().instances().back().supported_versions,
              IsSupersetOf({"v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"}));
  WatchV1 watch(endpoint());
  WatchV1alpha1 older(endpoint());
  std::map<std::string, std::string> states = watch.WaitFor("npu-3", "HEALTHY");
  EXPECT_EQ(states.size(), 8u);
  EXPECT_EQ(older.WaitFor("npu-3", "HEALTHY"), states);

  Mock({"chip", "--physical-id", "3", "--set", "health=3"});
  states = watch.WaitFor("npu-3", "UNHEALTHY");
  EXPECT_THAT(states["npu-3"], HasSubstr("critical"));
  EXPECT_EQ(states["npu-2"], "HEALTHY");
  EXPECT_EQ(older.WaitFor("npu-3", "UNHEALTHY")["npu-3"], states["npu-3"]);

  // A kubelet that starts now is told at once, and nothing else before.
  WatchV1 restarted(endpoint());
  EXPECT_EQ(restarted.Next(), states);

  Mock({"chip", "--physical-id", "3", "--set", "health=0"});
  EXPECT_EQ(watch.WaitFor("npu-3", "HEALTHY").size(), 8u);
}

TEST_F(HealthTest, AHeldChipThatIsPulledOutStays) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  if (IsSkipped()) return;
  const sim::ClaimRef claim = Allocate("all", {{.count = 8}});
  ASSERT_THAT(kubelet().Prepare({claim}), IsOk());
  WatchV1 watch(endpoint());
  Mock({"chip", "--physical-id", "5", "--set", "present=false"});
  EXPECT_EQ(watch.WaitFor("npu-5", "UNHEALTHY").size(), 8u);
}

TEST_F(HealthTest, NothingIsHealthyWhenNobodyLooks) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  if (IsSkipped()) return;
  WatchV1 watch(endpoint());
  ASSERT_FALSE(watch.WaitFor("npu-0", "HEALTHY").empty());
  stack_->agent().Kill(SIGKILL);
  const std::map<std::string, std::string> states = watch.WaitFor("npu-0", "UNKNOWN");
  EXPECT_THAT(states.at("npu-0"), HasSubstr("not checked since"));
  ASSERT_THAT(stack_->StartAgent(), IsOk());
  EXPECT_EQ(watch.WaitFor("npu-0", "HEALTHY").size(), 8u);
}

}  // namespace
}  // namespace ascend::integration
