#include "kubeletplugin/service/allocations_feed.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RecordedDevice Device(const std::string& name, const std::string& share_id = "") {
  RecordedDevice device;
  device.requests = {"npu"};
  device.pool = "node-1";
  device.device = name;
  device.share_id = share_id;
  RecordedChip chip;
  chip.physical_id = 3;
  chip.uuid = "UUID-3";
  device.chips = {chip};
  return device;
}

std::shared_ptr<const ClaimRecord> Record(const std::string& name,
                                          std::vector<RecordedDevice> devices) {
  ClaimRecord record;
  record.claim_namespace = "default";
  record.claim_name = name;
  record.claim_uid = absl::StrCat("uid-", name);
  record.devices = std::move(devices);
  return std::make_shared<const ClaimRecord>(std::move(record));
}

ContainerUse Use(const std::string& pod, const std::string& container, const std::string& claim,
                 std::vector<UsedDevice> devices, const std::string& ns = "default") {
  return {.pod_namespace = ns,
          .pod_name = pod,
          .container = container,
          .claim_name = claim,
          .devices = std::move(devices)};
}

std::vector<std::string> PodsOf(const AllocationsSnapshot& snapshot, int claim) {
  std::vector<std::string> pods;
  for (const auto& pod : snapshot.claims(claim).pods()) {
    pods.push_back(pod.name());
    for (const std::string& container : pod.containers()) {
      absl::StrAppend(&pods.back(), "/", container);
    }
  }
  return pods;
}

TEST(JoinAllocationsTest, AClaimWithItsPods) {
  RecordStore::Contents contents;
  RecordedDevice device = Device("npu-3");
  device.admin_access = true;
  contents.records = {Record("a", {device}), Record("b", {Device("npu-4")})};
  contents.unreadable.resize(2);
  AllocationsSnapshot snapshot;
  JoinAllocations(contents,
                  {Use("p", "main", "a", {{"node-1", "npu-3", ""}}),
                   Use("p", "helper", "a", {{"node-1", "npu-3", ""}}),
                   Use("n", "main", "a", {{"node-1", "npu-3", ""}}),
                   Use("gone", "main", "unprepared", {{"node-1", "npu-5", ""}})},
                  &snapshot);
  ASSERT_EQ(snapshot.claims_size(), 2);
  const auto& claim = snapshot.claims(0);
  EXPECT_EQ(claim.namespace_(), "default");
  EXPECT_EQ(claim.name(), "a");
  EXPECT_EQ(claim.uid(), "uid-a");
  ASSERT_EQ(claim.devices_size(), 1);
  EXPECT_EQ(claim.devices(0).pool(), "node-1");
  EXPECT_EQ(claim.devices(0).device(), "npu-3");
  EXPECT_TRUE(claim.devices(0).admin_access());
  EXPECT_THAT(claim.devices(0).requests(), ElementsAre("npu"));
  EXPECT_THAT(claim.devices(0).physical_ids(), ElementsAre(3));
  EXPECT_THAT(claim.devices(0).uuids(), ElementsAre("UUID-3"));
  EXPECT_THAT(PodsOf(snapshot, 0), ElementsAre("n/main", "p/helper/main"));
  EXPECT_THAT(PodsOf(snapshot, 1), IsEmpty());
  EXPECT_EQ(snapshot.unreadable_records(), 2);
}

TEST(JoinAllocationsTest, OnlyWhoListsADeviceOfTheClaimUsesIt) {
  RecordStore::Contents contents;
  contents.records = {Record("a", {Device("npu-3", "share-1")})};
  AllocationsSnapshot snapshot;
  JoinAllocations(
      contents,
      {Use("ns", "main", "a", {{"node-1", "npu-3", "share-1"}}, "other"),
       Use("device", "main", "a", {{"node-1", "npu-4", "share-1"}}),
       Use("pool", "main", "a", {{"node-2", "npu-3", "share-1"}}),
       Use("share", "main", "a", {{"node-1", "npu-3", "share-2"}}), Use("none", "main", "a", {}),
       Use("right", "main", "a", {{"node-1", "npu-9", ""}, {"node-1", "npu-3", "share-1"}})},
      &snapshot);
  EXPECT_THAT(PodsOf(snapshot, 0), ElementsAre("right/main"));
}

class AllocationsFeedTest : public ::testing::Test {
 protected:
  void SetRecords(absl::StatusOr<RecordStore::Contents> contents) {
    MutexLock lock(&mutex_);
    contents_ = std::move(contents);
  }

  // Until the feed has read the records `times` times in all.
  void WaitForReads(int times) {
    MutexLock lock(&mutex_);
    while (reads_ < times) changed_.Wait(&mutex_);
  }

  std::shared_ptr<const AllocationsSnapshot> WaitForRevision(uint64_t revision) {
    MutexLock lock(&mutex_);
    while (true) {
      auto current = feed_.Current();
      if (current != nullptr && current->revision() >= revision) return current;
      changed_.WaitFor(&mutex_, absl::Milliseconds(100));
    }
  }

  static RecordStore::Contents One(const std::string& claim) {
    RecordStore::Contents contents;
    contents.records = {Record(claim, {Device("npu-3")})};
    return contents;
  }

  Mutex mutex_;
  CondVar changed_;
  int reads_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::StatusOr<RecordStore::Contents> contents_ ABSL_GUARDED_BY(mutex_) =
      absl::UnavailableError("not mounted");
  AllocationsFeed feed_{"npu.huawei.com", "node-1", [this] {
                          MutexLock lock(&mutex_);
                          ++reads_;
                          changed_.SignalAll();
                          return contents_;
                        }};
};

TEST_F(AllocationsFeedTest, NothingIsToldBeforeTheRecordsAreKnown) {
  WaitForReads(1);
  EXPECT_EQ(feed_.Current(), nullptr);
  SetRecords(One("a"));
  feed_.RecordsChanged();
  const auto snapshot = WaitForRevision(1);
  EXPECT_EQ(snapshot->driver(), "npu.huawei.com");
  EXPECT_EQ(snapshot->node_name(), "node-1");
  EXPECT_EQ(snapshot->claims(0).name(), "a");
  EXPECT_EQ(snapshot->claims_error(), "");
  EXPECT_EQ(snapshot->pods_timestamp_seconds(), 0);
  EXPECT_NE(snapshot->pods_error(), "");
}

TEST_F(AllocationsFeedTest, TheLastGoodAnswersStay) {
  SetRecords(One("a"));
  feed_.RecordsChanged();
  WaitForRevision(1);
  feed_.UsesListed(std::vector<ContainerUse>{Use("p", "main", "a", {{"node-1", "npu-3", ""}})},
                   absl::FromUnixSeconds(1000));
  auto snapshot = WaitForRevision(2);
  EXPECT_THAT(PodsOf(*snapshot, 0), ElementsAre("p/main"));
  EXPECT_EQ(snapshot->pods_timestamp_seconds(), 1000);
  EXPECT_EQ(snapshot->pods_error(), "");

  feed_.UsesListed(absl::UnavailableError("kubelet restarts"), absl::FromUnixSeconds(1005));
  snapshot = WaitForRevision(3);
  EXPECT_THAT(PodsOf(*snapshot, 0), ElementsAre("p/main"));
  EXPECT_EQ(snapshot->pods_timestamp_seconds(), 1000);
  EXPECT_EQ(snapshot->pods_error(), "kubelet restarts");

  SetRecords(absl::InternalError("bad disk"));
  feed_.RecordsChanged();
  snapshot = WaitForRevision(4);
  EXPECT_EQ(snapshot->claims_error(), "bad disk");
  EXPECT_THAT(PodsOf(*snapshot, 0), ElementsAre("p/main"));

  // The record wins over what the kubelet still says.
  SetRecords(RecordStore::Contents());
  feed_.RecordsChanged();
  snapshot = WaitForRevision(5);
  EXPECT_EQ(snapshot->claims_size(), 0);
  EXPECT_EQ(snapshot->claims_error(), "");
}

TEST_F(AllocationsFeedTest, NoChangeNoRevision) {
  SetRecords(One("a"));
  feed_.RecordsChanged();
  WaitForRevision(1);
  const std::vector<ContainerUse> uses = {Use("p", "main", "a", {{"node-1", "npu-3", ""}})};
  feed_.UsesListed(uses, absl::FromUnixSeconds(1000));
  WaitForRevision(2);
  int before;
  {
    MutexLock lock(&mutex_);
    before = reads_;
  }
  feed_.UsesListed(uses, absl::FromUnixSeconds(1005));
  WaitForReads(before + 1);
  feed_.RecordsChanged();
  WaitForReads(before + 2);  // so the one before is done
  EXPECT_EQ(feed_.Current()->revision(), 2u);
}

TEST_F(AllocationsFeedTest, SubscribersAreTold) {
  int told = 0;
  const int64_t subscription = feed_.Subscribe([&] {
    MutexLock lock(&mutex_);
    ++told;
    changed_.SignalAll();
  });
  SetRecords(One("a"));
  feed_.RecordsChanged();
  {
    MutexLock lock(&mutex_);
    while (told == 0) changed_.Wait(&mutex_);
  }
  feed_.Unsubscribe(subscription);
  SetRecords(One("b"));
  feed_.RecordsChanged();
  WaitForRevision(2);
  MutexLock lock(&mutex_);
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace ascend::kubeletplugin
