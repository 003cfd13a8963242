#include "kubeletplugin/claims/device_status.h"

#include <string>
#include <utility>

#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "base/runtime/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/testing/fake_kube_client.h"
#include "nlohmann/json.hpp"

namespace ascend::kubeletplugin {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

ClaimRecord Record(const std::string& uid, int chips = 1) {
  ClaimRecord record;
  record.claim_namespace = "default";
  record.claim_name = "claim-" + uid;
  record.claim_uid = uid;
  record.prepared_at = "2026-11-30T10:00:00Z";
  RecordedDevice device;
  device.requests = {"npu"};
  device.pool = "node-1";
  device.device = "npu-2";
  device.cdi_device = uid + "-npu-2";
  for (int i = 0; i < chips; ++i) {
    device.chips.push_back({.physical_id = 2 + i,
                            .node_number = 2 + i,
                            .uuid = "uuid",
                            .pci_bus_id = "0000:c1:00.0",
                            .roce_address = i == 0 ? "10.0.0.2" : "fe80::3"});
  }
  record.devices = {device};
  return record;
}

ChipVerdicts Healthy() {
  ChipVerdicts verdicts;
  for (const int id : {2, 3}) {
    verdicts[id] = {.physical_id = id, .since = absl::FromUnixSeconds(1'790'000'000)};
  }
  return verdicts;
}

ChipVerdicts Sick(int id) {
  ChipVerdicts verdicts = Healthy();
  verdicts[id].level = vnpu::HealthLevel::kSeparateNpu;
  verdicts[id].state = vnpu::HealthState::kUnhealthy;
  verdicts[id].message = "fault 80E18402 (HBM)";
  return verdicts;
}

TEST(DeviceStatusTest, SaysWhatWasPrepared) {
  const auto statuses = DeviceStatusesOf(Record("a", 2), "npu.huawei.com", Healthy());
  ASSERT_THAT(statuses, SizeIs(1));
  EXPECT_EQ(kube::ToJson(statuses[0]), nlohmann::json::parse(R"({
    "driver": "npu.huawei.com", "pool": "node-1", "device": "npu-2",
    "conditions": [{"type": "Ready", "status": "True", "reason": "Prepared",
                    "message": "prepared on the node",
                    "lastTransitionTime": "2026-11-30T10:00:00Z"},
                   {"type": "Healthy", "status": "True", "reason": "Healthy", "message": "",
                    "lastTransitionTime": "2026-09-21T14:13:20Z"}],
    "data": {"chips": [
      {"physicalID": 2, "uuid": "uuid", "pciBusID": "0000:c1:00.0", "roceAddress": "10.0.0.2"},
      {"physicalID": 3, "uuid": "uuid", "pciBusID": "0000:c1:00.0", "roceAddress": "fe80::3"}]},
    "networkData": {"ips": ["10.0.0.2/32", "fe80::3/128"]}})"));
}

TEST(DeviceStatusTest, SaysHowTheWorstChipIs) {
  const auto condition = [](const ChipVerdicts& verdicts) {
    return DeviceStatusesOf(Record("a", 2), "npu.huawei.com", verdicts).at(0).conditions.at(1);
  };
  kube::Condition sick = condition(Sick(3));
  EXPECT_EQ(sick.status, kube::ConditionStatus::kFalse);
  EXPECT_EQ(sick.reason, "SeparateNPU");
  EXPECT_EQ(sick.message, "fault 80E18402 (HBM)");
  EXPECT_EQ(condition(Sick(7)).status, kube::ConditionStatus::kTrue);  // not its chip
  EXPECT_EQ(condition({}).status, kube::ConditionStatus::kUnknown);
}

TEST(DeviceStatusTest, WhatIsUnknownIsLeftOutAndSharesHaveTheirOwn) {
  ClaimRecord record = Record("a");
  record.devices[0].chips[0] = {.physical_id = 2};
  record.devices[0].share_id = "aaaaaaaa-0000-4000-8000-000000000000";
  record.devices.push_back(record.devices[0]);
  record.devices[1].share_id = "bbbbbbbb-0000-4000-8000-000000000000";
  record.devices.push_back(record.devices[1]);
  record.devices[2].admin_access = true;  // the same key in the API
  const auto statuses = DeviceStatusesOf(record, "npu.huawei.com", Healthy());
  ASSERT_THAT(statuses, SizeIs(2));
  const nlohmann::json json = kube::ToJson(statuses[1]);
  EXPECT_EQ(json["shareID"], "bbbbbbbb-0000-4000-8000-000000000000");
  EXPECT_EQ(json["data"], nlohmann::json::parse(R"({"chips": [{"physicalID": 2}]})"));
  EXPECT_FALSE(json.contains("networkData"));
}

class DeviceStatusWriterTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_THAT(records_.Prepare(), IsOk()); }

  void Add(const ClaimRecord& record) {
    kube::ResourceClaim claim;
    claim.namespace_name = record.claim_namespace;
    claim.name = record.claim_name;
    claim.uid = record.claim_uid;
    client_.SetClaim(claim);
    ASSERT_THAT(records_.Write(record), IsOk());
  }
  std::unique_ptr<DeviceStatusWriter> Start(absl::Duration settle = absl::ZeroDuration()) {
    return std::make_unique<DeviceStatusWriter>(
        DeviceStatusWriter::Options{.driver = "npu.huawei.com",
                                    .settle = settle,
                                    .min_backoff = absl::Milliseconds(1),
                                    .max_backoff = absl::Milliseconds(2)},
        records_, client_, [this] {
          MutexLock lock(&mutex_);
          return health_;
        });
  }
  void SetHealth(ChipVerdicts verdicts) {
    MutexLock lock(&mutex_);
    health_ = std::make_shared<const ChipVerdicts>(std::move(verdicts));
  }
  bool WaitForStatus(const std::string& uid) {
    return client_.WaitUntil([&] { return !client_.device_status(uid).empty(); });
  }

  Mutex mutex_;
  std::shared_ptr<const ChipVerdicts> health_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<const ChipVerdicts>(Healthy());
  TempDir dir_;
  RecordStore records_{dir_.File("claims")};
  kube::FakeClient client_;
};

TEST_F(DeviceStatusWriterTest, WritesEachClaimOnce) {
  Add(Record("before"));
  auto writer = Start();
  ASSERT_TRUE(WaitForStatus("before"));  // of the instance before this one
  Add(Record("a"));
  writer->Wake();
  ASSERT_TRUE(WaitForStatus("a"));
  EXPECT_EQ(client_.device_status("a").at(0).device, "npu-2");
  writer->Wake();
  Add(Record("b"));
  writer->Wake();
  ASSERT_TRUE(WaitForStatus("b"));
  EXPECT_EQ(client_.status_attempts(), 3);
}

TEST_F(DeviceStatusWriterTest, WritesAgainOnlyForTheChipsOfTheClaim) {
  Add(Record("a"));
  auto writer = Start();
  ASSERT_TRUE(WaitForStatus("a"));
  SetHealth(Sick(3));  // of another claim
  writer->Wake();
  SetHealth(Sick(2));
  writer->Wake();
  ASSERT_TRUE(client_.WaitUntil(
      [&] { return client_.device_status("a").at(0).conditions.at(1).reason == "SeparateNPU"; }));
  EXPECT_EQ(client_.status_attempts(), 2);
}

// The answer to the kubelet is on its way when the record is written.
TEST_F(DeviceStatusWriterTest, LetsRecordsSettle) {
  constexpr absl::Duration kSettle = absl::Milliseconds(100);
  const absl::Duration start = Clock::Real().Monotonic();
  auto writer = Start(kSettle);
  Add(Record("a"));
  writer->Wake();
  Add(Record("b"));
  ASSERT_TRUE(WaitForStatus("a"));
  EXPECT_GE(Clock::Real().Monotonic() - start, kSettle);
  ASSERT_TRUE(WaitForStatus("b"));
  writer = Start(absl::Hours(1));  // ends at once nevertheless
}

TEST_F(DeviceStatusWriterTest, TransientTroubleIsTriedAgainPermanentIsNot) {
  client_.FailStatuses(absl::UnavailableError("HTTP 500"), 3);
  client_.FailStatuses(absl::InvalidArgumentError("HTTP 422"));
  Add(Record("refused"));
  auto writer = Start();
  ASSERT_TRUE(client_.WaitUntil([&] { return client_.status_attempts() == 4; }));
  Add(Record("a"));
  writer->Wake();
  ASSERT_TRUE(WaitForStatus("a"));
  EXPECT_THAT(client_.device_status("refused"), IsEmpty());
  EXPECT_EQ(client_.status_attempts(), 5);
}

TEST_F(DeviceStatusWriterTest, ClaimsThatAreGoneOrReplacedAreLeft) {
  Add(Record("gone"));
  client_.RemoveClaim("default", "claim-gone");
  Add(Record("replaced"));
  kube::ResourceClaim other;
  other.namespace_name = "default";
  other.name = "claim-replaced";
  other.uid = "another";
  client_.SetClaim(other);
  Add(Record("z"));
  auto writer = Start();
  ASSERT_TRUE(WaitForStatus("z"));
  EXPECT_EQ(client_.status_attempts(), 3);
  EXPECT_THAT(client_.device_status("another"), IsEmpty());
}

}  // namespace
}  // namespace ascend::kubeletplugin
