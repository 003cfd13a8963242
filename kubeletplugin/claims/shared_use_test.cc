#include "kubeletplugin/claims/shared_use.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/testing/fake_kube_client.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

RecordedDevice Device(const std::string& name, std::vector<std::string> requests,
                      bool admin = false) {
  RecordedDevice device;
  device.requests = std::move(requests);
  device.pool = "node-1";
  device.device = name;
  device.cdi_device = absl::StrCat("uid-a-", name);
  device.admin_access = admin;
  return device;
}

ClaimRecord Record(const std::string& name, std::vector<RecordedDevice> devices) {
  ClaimRecord record;
  record.claim_namespace = "default";
  record.claim_name = name;
  record.claim_uid = absl::StrCat("uid-", name);
  record.devices = std::move(devices);
  return record;
}

ContainerUse Use(const std::string& pod, const std::string& container,
                 const std::string& claim = "a", const std::string& ns = "default") {
  return {.pod_namespace = ns,
          .pod_name = pod,
          .container = container,
          .claim_name = claim,
          .devices = {{.pool = "node-1", .device = "npu-0", .share_id = ""},
                      {.pool = "node-1", .device = "npu-1", .share_id = ""}}};
}

std::vector<std::string> Shared(const std::vector<ClaimRecord>& records,
                                const std::vector<ContainerUse>& uses) {
  std::vector<std::shared_ptr<const ClaimRecord>> shared_records;
  for (const ClaimRecord& record : records) {
    shared_records.push_back(std::make_shared<const ClaimRecord>(record));
  }
  std::vector<std::string> found;
  for (const auto& [record, containers] : FindSharedUse(shared_records, uses)) {
    std::string line = record->claim_name;
    for (const ContainerUse& use : containers) {
      absl::StrAppend(&line, " ", use.pod_name, "/", use.container);
    }
    found.push_back(line);
  }
  return found;
}

// ORD-21
TEST(FindSharedUseTest, Table) {
  const ClaimRecord one = Record("a", {Device("npu-0", {"npu"})});
  const ClaimRecord two_requests =
      Record("a", {Device("npu-0", {"first"}), Device("npu-1", {"second"})});
  const ClaimRecord admin = Record("a", {Device("npu-0", {"npu"}, /*admin=*/true)});
  // Nobody, or one container.
  EXPECT_THAT(Shared({one}, {}), IsEmpty());
  EXPECT_THAT(Shared({one}, {Use("p", "c")}), IsEmpty());
  EXPECT_THAT(Shared({}, {Use("p", "c"), Use("q", "c")}), IsEmpty());
  // A request used by two pods, by two containers.
  EXPECT_THAT(Shared({one}, {Use("p", "c"), Use("q", "c")}), ElementsAre("a p/c q/c"));
  EXPECT_THAT(Shared({one}, {Use("p", "c"), Use("p", "d")}), ElementsAre("a p/c p/d"));
  // An init container and then a container: the kubelet lists only the second.
  EXPECT_THAT(Shared({one}, {Use("p", "main")}), IsEmpty());
  // Two containers with a request each; but two pods use both requests.
  EXPECT_THAT(Shared({two_requests}, {Use("p", "c"), Use("p", "d")}), IsEmpty());
  EXPECT_THAT(Shared({two_requests}, {Use("p", "c"), Use("q", "c")}), ElementsAre("a p/c q/c"));
  // Monitors share on purpose.
  EXPECT_THAT(Shared({admin}, {Use("p", "c"), Use("q", "c")}), IsEmpty());
  // REC-12: a record without devices holds nothing.
  EXPECT_THAT(Shared({Record("a", {})}, {Use("p", "c"), Use("q", "c")}), IsEmpty());
  // Several devices of one request still are one request.
  EXPECT_THAT(Shared({Record("a", {Device("npu-0", {"npu"}), Device("npu-1", {"npu"})})},
                     {Use("p", "c"), Use("p", "d")}),
              ElementsAre("a p/c p/d"));
}

TEST(FindSharedUseTest, NamespaceAndNameMakeTheClaim) {
  const ClaimRecord a = Record("a", {Device("npu-0", {"npu"})});
  const ClaimRecord b = Record("b", {Device("npu-1", {"npu"})});
  EXPECT_THAT(Shared({a, b}, {Use("p", "c", "a"), Use("q", "c", "b")}), IsEmpty());
  EXPECT_THAT(Shared({a, b}, {Use("p", "c", "a"), Use("q", "c", "a", "other")}), IsEmpty());
  EXPECT_THAT(Shared({a, b}, {Use("p", "c", "b"), Use("q", "c", "b"), Use("r", "c", "a")}),
              ElementsAre("b p/c q/c"));
}

// PodResources has no UIDs: only the devices tell the claim from one of the same name before.
TEST(FindSharedUseTest, ContainersOfTheNextClaimOfThatNameDoNotShareIt) {
  ContainerUse next_p = Use("p", "c"), next_q = Use("q", "c");
  next_p.devices = next_q.devices = {{.pool = "node-1", .device = "npu-3", .share_id = ""}};
  const ClaimRecord record = Record("a", {Device("npu-0", {"npu"})});
  EXPECT_THAT(Shared({record}, {next_p, next_q}), IsEmpty());
  EXPECT_THAT(Shared({record}, {Use("p", "c"), next_q}), IsEmpty());
  ContainerUse share = Use("q", "c");
  share.devices[0].share_id = "another";
  EXPECT_THAT(Shared({record}, {Use("p", "c"), share}), IsEmpty());
}

TEST(UsesClaimOfTest, AKubeletThatListsNoShareIds) {
  ClaimRecord record = Record("a", {Device("npu-0", {"npu"})});
  record.devices[0].share_id = "one";
  ContainerUse use = Use("p", "c");
  EXPECT_TRUE(UsesClaimOf(use, record));
  use.devices[0].share_id = "one";
  EXPECT_TRUE(UsesClaimOf(use, record));
  use.devices[0].share_id = "two";
  EXPECT_FALSE(UsesClaimOf(use, record));
}

class SharedUseMonitorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(records_.Prepare(), IsOk());
    ASSERT_THAT(records_.Write(Record("a", {Device("npu-0", {"npu"})})), IsOk());
    kube::ResourceClaim claim;
    claim.namespace_name = "default";
    claim.name = "a";
    claim.uid = "uid-a";
    claim.reserved_for = {{.api_group = "", .resource = "pods", .name = "p", .uid = "pod-uid-p"},
                          {.api_group = "", .resource = "pods", .name = "q", .uid = "pod-uid-q"},
                          {.api_group = "", .resource = "pods", .name = "r", .uid = "pod-uid-r"},
                          {.api_group = "x", .resource = "jobs", .name = "p", .uid = "job-uid"}};
    client_.SetClaim(claim);
  }
  void SetUses(absl::StatusOr<std::vector<ContainerUse>> uses) {
    MutexLock lock(&mutex_);
    uses_ = std::move(uses);
  }
  int looks() {
    MutexLock lock(&mutex_);
    return looks_;
  }
  // Waits for `count` more looks at the kubelet; what an earlier one led to has then happened.
  bool WaitForLooks(int count) {
    const int goal = looks() + count;
    return client_.WaitUntil([&] { return looks() >= goal; });
  }
  void Start() {
    monitor_ = std::make_unique<SharedUseMonitor>(
        SharedUseMonitor::Options{.period = absl::Milliseconds(1)}, records_, client_, events_,
        [this] {
          MutexLock lock(&mutex_);
          ++looks_;
          return uses_;
        });
  }

  TempDir dir_;
  RecordStore records_{dir_.File("claims")};
  kube::FakeClient client_;
  kube::EventRecorder events_{{.controller = "npu.huawei.com", .node_name = "node-1"}, client_};
  Mutex mutex_;
  absl::StatusOr<std::vector<ContainerUse>> uses_ ABSL_GUARDED_BY(mutex_) =
      std::vector<ContainerUse>();
  int looks_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<SharedUseMonitor> monitor_;
};

// ORD-21
TEST_F(SharedUseMonitorTest, EachPodIsWarnedOnce) {
  SetUses(std::vector<ContainerUse>{Use("p", "c"), Use("q", "c")});
  Start();
  ASSERT_TRUE(client_.WaitUntil([&] { return client_.events().size() >= 2; }));
  ASSERT_TRUE(WaitForLooks(5));
  const std::vector<kube::Event> events = client_.events();
  ASSERT_EQ(events.size(), 2u);  // not for pod r, which does not use it here
  EXPECT_THAT((std::vector<std::string>{events[0].regarding.name, events[1].regarding.name}),
              UnorderedElementsAre("p", "q"));
  for (const kube::Event& event : events) {
    EXPECT_EQ(event.regarding.api_version, "v1");
    EXPECT_EQ(event.regarding.kind, "Pod");
    EXPECT_EQ(event.regarding.namespace_name, "default");
    EXPECT_EQ(event.regarding.uid, absl::StrCat("pod-uid-", event.regarding.name));
    EXPECT_EQ(event.reason, "NpuSharedByContainers");
    EXPECT_TRUE(event.warning);
    EXPECT_EQ(event.reporting_component, "npu.huawei.com");
    EXPECT_EQ(event.reporting_instance, "node-1");
    EXPECT_THAT(event.message, AllOf(HasSubstr("default/a"), HasSubstr("npu-0"), HasSubstr("p/c"),
                                     HasSubstr("q/c"), HasSubstr("-8005"), HasSubstr("-8020")));
  }
}

TEST_F(SharedUseMonitorTest, NothingNewMeansNoApiCall) {
  SetUses(std::vector<ContainerUse>{Use("p", "c"), Use("q", "c")});
  Start();
  ASSERT_TRUE(client_.WaitUntil([&] { return client_.events().size() >= 2; }));
  ASSERT_TRUE(WaitForLooks(2));
  const int gets = client_.gets();
  ASSERT_TRUE(WaitForLooks(10));
  EXPECT_EQ(client_.gets(), gets);
}

TEST_F(SharedUseMonitorTest, APodThatJoinsLaterIsWarned) {
  SetUses(std::vector<ContainerUse>{Use("p", "c"), Use("q", "c")});
  Start();
  ASSERT_TRUE(client_.WaitUntil([&] { return client_.events().size() >= 2; }));
  SetUses(std::vector<ContainerUse>{Use("p", "c"), Use("q", "c"), Use("r", "c")});
  ASSERT_TRUE(client_.WaitUntil([&] { return client_.events().size() >= 3; }));
  ASSERT_TRUE(WaitForLooks(3));
  ASSERT_EQ(client_.events().size(), 3u);
  EXPECT_EQ(client_.events()[2].regarding.name, "r");
}

TEST_F(SharedUseMonitorTest, AnApiErrorIsTriedAgain) {
  SetUses(std::vector<ContainerUse>{Use("p", "c"), Use("p", "d")});
  client_.FailGets(absl::UnavailableError("down"), 2);
  client_.FailEvents(absl::UnavailableError("down"), 2);
  Start();
  ASSERT_TRUE(client_.WaitUntil([&] { return !client_.events().empty(); }));
  ASSERT_TRUE(WaitForLooks(3));
  EXPECT_EQ(client_.events().size(), 1u);
  EXPECT_EQ(client_.event_attempts(), 3);
}

TEST_F(SharedUseMonitorTest, AKubeletThatDoesNotAnswerIsAskedAgain) {
  SetUses(absl::UnavailableError("restarting"));
  Start();
  ASSERT_TRUE(WaitForLooks(3));
  EXPECT_THAT(client_.events(), IsEmpty());
  SetUses(std::vector<ContainerUse>{Use("p", "c"), Use("p", "d")});
  EXPECT_TRUE(client_.WaitUntil([&] { return client_.events().size() == 1; }));
}

TEST_F(SharedUseMonitorTest, AnotherClaimOfThatNameConcernsNobody) {
  kube::ResourceClaim other;
  other.namespace_name = "default";
  other.name = "a";
  other.uid = "uid-b";
  other.reserved_for = {{.api_group = "", .resource = "pods", .name = "p", .uid = "pod-uid-p"}};
  client_.SetClaim(other);
  SetUses(std::vector<ContainerUse>{Use("p", "c"), Use("p", "d")});
  Start();
  ASSERT_TRUE(client_.WaitUntil([&] { return client_.gets() >= 1; }));
  ASSERT_TRUE(WaitForLooks(10));
  EXPECT_EQ(client_.event_attempts(), 0);
  EXPECT_EQ(client_.gets(), 1);  // the answer is final
}

TEST_F(SharedUseMonitorTest, AClaimThatIsGoneIsAskedForOnce) {
  client_.RemoveClaim("default", "a");
  SetUses(std::vector<ContainerUse>{Use("p", "c"), Use("q", "c")});
  Start();
  ASSERT_TRUE(client_.WaitUntil([&] { return client_.gets() >= 1; }));
  ASSERT_TRUE(WaitForLooks(10));
  EXPECT_EQ(client_.gets(), 1);
}

// ORD-21: its pods' UIDs are unknown, so the claim itself gets the Event.
TEST_F(SharedUseMonitorTest, AClaimReservedForAPodGroupIsWarnedOnce) {
  kube::ResourceClaim claim;
  claim.namespace_name = "default";
  claim.name = "a";
  claim.uid = "uid-a";
  claim.reserved_for = {{.api_group = "scheduling.k8s.io",
                         .resource = "podgroups",
                         .name = "group",
                         .uid = "group-uid"}};
  client_.SetClaim(claim);
  SetUses(std::vector<ContainerUse>{Use("p", "c"), Use("q", "c")});
  Start();
  ASSERT_TRUE(client_.WaitUntil([&] { return !client_.events().empty(); }));
  ASSERT_TRUE(WaitForLooks(10));
  EXPECT_EQ(client_.gets(), 1);
  ASSERT_EQ(client_.events().size(), 1u);
  const kube::Event event = client_.events()[0];
  EXPECT_EQ(event.regarding.kind, "ResourceClaim");
  EXPECT_EQ(event.regarding.api_version, "resource.k8s.io/v1");
  EXPECT_EQ(event.regarding.namespace_name, "default");
  EXPECT_EQ(event.regarding.name, "a");
  EXPECT_EQ(event.regarding.uid, "uid-a");
  EXPECT_THAT(event.message, AllOf(HasSubstr("p/c"), HasSubstr("q/c")));
}

// Without prepared claims the kubelet is not asked at all; Wake() begins, the last claim ends it.
TEST_F(SharedUseMonitorTest, SleepsWhileNothingIsPrepared) {
  ASSERT_THAT(records_.Remove("uid-a"), IsOk());
  SetUses(std::vector<ContainerUse>{Use("p", "c"), Use("p", "d")});
  Start();
  ASSERT_THAT(records_.Write(Record("a", {Device("npu-0", {"npu"})})), IsOk());
  monitor_->Wake();
  EXPECT_TRUE(client_.WaitUntil([&] { return client_.events().size() == 1; }));
  monitor_.reset();  // ends also while it watches
}

}  // namespace
}  // namespace ascend::kubeletplugin
