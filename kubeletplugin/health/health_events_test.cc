#include "kubeletplugin/health/health_events.h"

#include <algorithm>
#include <string>

#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/testing/fake_kube_client.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using vnpu::HealthLevel;
using vnpu::HealthState;
using vnpu::TaintEffect;

vnpu::Verdict Healthy(int chip) {
  return {.physical_id = chip, .since = absl::FromUnixSeconds(1'790'000'000)};
}

vnpu::Verdict Sick(int chip, TaintEffect effect = TaintEffect::kNoSchedule) {
  return {.physical_id = chip,
          .level = HealthLevel::kSeparateNpu,
          .effect = effect,
          .state = HealthState::kUnhealthy,
          .message = "SeparateNPU: fault 80E18402 (HBM)"};
}

vnpu::Verdict Unknown(int chip) {
  return {.physical_id = chip,
          .level = HealthLevel::kUnknown,
          .effect = TaintEffect::kNoSchedule,
          .state = HealthState::kUnknown,
          .message = "unknown: the agent is away"};
}

ChipVerdicts Of(std::vector<vnpu::Verdict> verdicts) {
  ChipVerdicts result;
  for (vnpu::Verdict& verdict : verdicts) result[verdict.physical_id] = verdict;
  return result;
}

TEST(HealthNewsTest, SaysWhatChangedAndWhatFollows) {
  const auto news = NewsOf(Of({Healthy(0), Healthy(1)}), Of({Healthy(0), Sick(1)}));
  ASSERT_EQ(news.size(), 1);
  EXPECT_THAT(news[0].chips, ElementsAre(1));
  EXPECT_TRUE(news[0].warning);
  EXPECT_EQ(news[0].reason, "NpuUnhealthy");
  EXPECT_EQ(news[0].message, "SeparateNPU: fault 80E18402 (HBM); no new pods get it");
  EXPECT_THAT(NewsOf(Of({}), Of({Sick(1, TaintEffect::kNoExecute)}))[0].message,
              HasSubstr("are evicted"));
  const auto good = NewsOf(Of({Sick(1)}), Of({Healthy(1)}));
  ASSERT_EQ(good.size(), 1);
  EXPECT_FALSE(good[0].warning);
  EXPECT_EQ(good[0].reason, "NpuHealthy");
  EXPECT_EQ(good[0].message, "healthy again since 2026-09-21T14:13:20Z");
}

TEST(HealthNewsTest, OneForAllChipsOfTheSameFate) {
  const auto news =
      NewsOf(Of({Healthy(0), Healthy(1), Healthy(2)}), Of({Unknown(0), Unknown(1), Sick(2)}));
  ASSERT_EQ(news.size(), 2);
  EXPECT_EQ(news[0].reason, "NpuHealthUnknown");
  EXPECT_THAT(news[0].chips, ElementsAre(0, 1));
  EXPECT_EQ(news[1].reason, "NpuUnhealthy");
}

TEST(HealthNewsTest, NoneWhereNothingFollows) {
  EXPECT_THAT(NewsOf(Of({}), Of({Healthy(0)})), IsEmpty());
  EXPECT_THAT(NewsOf(Of({Sick(0)}), Of({Sick(0)})), IsEmpty());
  vnpu::Verdict ignored = Healthy(0);
  ignored.level = HealthLevel::kNotHandleFault;
  ignored.message = "fault 80E01801";
  EXPECT_THAT(NewsOf(Of({Healthy(0)}), Of({ignored})), IsEmpty());
  vnpu::Verdict more = Sick(0);
  more.message += " and another one";
  EXPECT_THAT(NewsOf(Of({Sick(0)}), Of({more})), IsEmpty());
  ignored.level = HealthLevel::kSubHealthFault;
  EXPECT_EQ(NewsOf(Of({Healthy(0)}), Of({ignored}))[0].reason, "NpuDegraded");
}

class HealthEventsTest : public ::testing::Test {
 protected:
  HealthEventsTest() : records_(temp_.path()) {
    RecordedDevice device;
    device.requests = {"npu"};
    device.pool = "node";
    device.device = "npu-3";
    device.cdi_device = "c";
    device.chips = {{.physical_id = 3}};
    ClaimRecord record;
    record.claim_namespace = "team";
    record.claim_name = "job";
    record.claim_uid = "uid-1";
    record.boot_id = "boot";
    record.devices = {device};
    EXPECT_THAT(records_.Write(record), IsOk());
    kube::ResourceClaim claim;
    claim.namespace_name = "team";
    claim.name = "job";
    claim.uid = "uid-1";
    claim.reserved_for = {{.api_group = "", .resource = "pods", .name = "job-0", .uid = "pod-0"},
                          {.api_group = "", .resource = "pods", .name = "job-1", .uid = "pod-1"}};
    client_.SetClaim(claim);
  }
  ~HealthEventsTest() override { client_.Shutdown(); }

  // Once `count` of them have been sent, about which objects.
  std::vector<std::string> Regarding(size_t count) {
    EXPECT_TRUE(client_.WaitUntil([&] { return client_.events().size() >= count; }));
    std::vector<std::string> objects;
    for (const kube::Event& event : client_.events()) objects.push_back(event.regarding.name);
    std::sort(objects.begin(), objects.end());
    return objects;
  }

  TempDir temp_;
  RecordStore records_;
  kube::FakeClient client_;
  kube::EventRecorder recorder_{{.controller = "npu.huawei.com", .node_name = "node"}, client_};
  HealthEvents events_{records_, client_, recorder_};
};

TEST_F(HealthEventsTest, TellsTheNodeAndEveryPodThatHasTheChip) {
  events_.Changed(Of({Healthy(3)}), Of({Sick(3)}));
  EXPECT_THAT(Regarding(3), ElementsAre("job-0", "job-1", "node"));
  for (const kube::Event& event : client_.events()) {
    EXPECT_EQ(event.reason, "NpuUnhealthy");
    EXPECT_THAT(event.message, HasSubstr("80E18402"));
    if (event.regarding.kind == "Pod") {
      EXPECT_THAT(event.message, HasSubstr("device npu-3 of claim team/job: "));
    } else {
      EXPECT_THAT(event.message, HasSubstr("NPU chip 3: "));
    }
  }
}

TEST_F(HealthEventsTest, OtherChipsConcernOnlyTheNode) {
  events_.Changed(Of({Healthy(4)}), Of({Sick(4)}));
  // The pods' thread would have been at it before the next news.
  events_.Changed(Of({Healthy(3)}), Of({Unknown(3)}));
  EXPECT_THAT(Regarding(2), ElementsAre("node", "node"));
  EXPECT_EQ(client_.gets(), 0);
}

TEST_F(HealthEventsTest, AClaimThatWasReplacedHasOtherPods) {
  kube::ResourceClaim other;
  other.namespace_name = "team";
  other.name = "job";
  other.uid = "uid-2";
  other.reserved_for = {{.api_group = "", .resource = "pods", .name = "new", .uid = "pod-9"}};
  client_.SetClaim(other);
  events_.Changed(Of({Healthy(3)}), Of({Sick(3)}));
  EXPECT_TRUE(client_.WaitUntil([&] { return client_.gets() == 1; }));
  EXPECT_THAT(Regarding(1), ElementsAre("node"));
}

TEST_F(HealthEventsTest, VersionsThatDoNotFitAreToldOnce) {
  vnpu::Inventory inventory;
  events_.Versions(inventory);
  inventory.version_problem = "driver 24.1.rc2 is running, the package on the node is 25.0.rc1";
  events_.Versions(inventory);
  events_.Versions(inventory);
  EXPECT_THAT(Regarding(1), ElementsAre("node"));
  EXPECT_EQ(client_.events()[0].message, inventory.version_problem);
  EXPECT_EQ(client_.event_attempts(), 1);
}

TEST_F(HealthEventsTest, TriesAgainWhileTheServerIsAway) {
  client_.FailGets(absl::UnavailableError("away"));
  events_.Changed(Of({Healthy(3)}), Of({Sick(3)}));
  EXPECT_THAT(Regarding(3), ElementsAre("job-0", "job-1", "node"));
  EXPECT_EQ(client_.gets(), 2);
}

}  // namespace
}  // namespace ascend::kubeletplugin
