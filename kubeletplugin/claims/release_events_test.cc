#include "kubeletplugin/claims/release_events.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/testing/fake_kube_client.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ClaimRecord Record(const std::string& uid) {
  ClaimRecord record;
  record.claim_namespace = "default";
  record.claim_name = "claim-" + uid;
  record.claim_uid = uid;
  RecordedDevice device;
  device.chips = {{.physical_id = 3}};
  device.vnpu.emplace();
  device.vnpu->template_name = "vir02";
  device.vnpu->id = 148;
  record.devices = {device};
  return record;
}

class ReleaseEventsTest : public ::testing::Test {
 protected:
  ReleaseEventsTest() {
    for (const std::string uid : {"a", "b"}) SetClaim(uid);
  }
  void SetClaim(const std::string& uid) {
    kube::ResourceClaim claim;
    claim.namespace_name = "default";
    claim.name = "claim-" + uid;
    claim.uid = uid;
    client_.SetClaim(claim);
  }
  // Events are sent in order: what was posted before this one has been sent or dropped.
  std::vector<kube::Event> Events() {
    const std::string mark = "mark-" + std::to_string(++marks_);
    recorder_.Post({.regarding = recorder_.node(), .reason = mark, .message = mark});
    EXPECT_TRUE(client_.WaitUntil([&] {
      const auto events = client_.events();
      return !events.empty() && events.back().reason == mark;
    }));
    std::vector<kube::Event> events;
    for (const kube::Event& event : client_.events()) {
      if (event.reason.rfind("mark-", 0) != 0) events.push_back(event);
    }
    return events;
  }

  kube::FakeClient client_;
  kube::EventRecorder recorder_{{.controller = "npu.huawei.com", .node_name = "node-1"}, client_};
  ReleaseEvents events_{recorder_};
  int marks_ = 0;
};

TEST_F(ReleaseEventsTest, OncePerClaimAndCause) {
  for (int attempt = 0; attempt < 5; ++attempt) {
    const std::string message = "busy for the time no. " + std::to_string(attempt);
    events_.Kept(Record("a"), {.error = absl::FailedPreconditionError(message)});
    events_.Kept(Record("b"), {.error = absl::FailedPreconditionError(message)});
  }
  auto events = Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].reason, "VnpuNotDestroyed");
  EXPECT_EQ(events[0].action, "DestroyVnpu");
  EXPECT_TRUE(events[0].warning);
  EXPECT_EQ(events[0].regarding.kind, "ResourceClaim");
  EXPECT_EQ(events[0].regarding.namespace_name, "default");
  EXPECT_EQ(events[0].regarding.name, "claim-a");
  EXPECT_EQ(events[0].regarding.uid, "a");
  EXPECT_EQ(events[0].reporting_component, "npu.huawei.com");
  EXPECT_EQ(events[0].reporting_instance, "node-1");
  EXPECT_THAT(
      events[0].message,
      AllOf(HasSubstr("vNPU 148 (vir02) of chip 3 stays"), HasSubstr("default/claim-a"),
            HasSubstr("busy, or refused; stop what"), HasSubstr("busy for the time no. 0")));
  EXPECT_EQ(events[1].regarding.uid, "b");

  // Another cause is another Event, also one that was there before it.
  events_.Kept(Record("a"), {.error = absl::DeadlineExceededError("not returned for 10 s")});
  events_.Kept(Record("a"), {.error = absl::FailedPreconditionError("busy again")});
  events = Events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_THAT(events[2].message, AllOf(HasSubstr("stuck; "), HasSubstr("not returned for 10 s")));
}

TEST_F(ReleaseEventsTest, EachCauseHasItsAdvice) {
  events_.Kept(Record("a"), {.error = absl::NotFoundError("no such chip"), .chip_lost = true});
  events_.Kept(Record("a"), {.error = absl::UnavailableError("no agent")});
  events_.Kept(Record("a"), {.error = absl::InternalError("-8007")});
  const auto events = Events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_THAT(events[0].message, HasSubstr("its chip is away; it is destroyed when"));
  EXPECT_THAT(events[1].message, HasSubstr("not reachable; see that the ascend-npu-agent"));
  EXPECT_THAT(events[2].message, AllOf(HasSubstr("error; see the"), HasSubstr("-8007")));
}

TEST_F(ReleaseEventsTest, TheNodeIsToldOfAClaimThatIsGone) {
  client_.RemoveClaim("default", "claim-a");
  events_.Kept(Record("a"), {.error = absl::FailedPreconditionError("busy")});
  // Another claim of that name is not concerned.
  kube::ResourceClaim other;
  other.namespace_name = "default";
  other.name = "claim-b";
  other.uid = "not-b";
  client_.SetClaim(other);
  events_.Kept(Record("b"), {.error = absl::FailedPreconditionError("busy")});
  const auto events = Events();
  ASSERT_EQ(events.size(), 2u);
  for (const kube::Event& event : events) {
    EXPECT_EQ(event.regarding.kind, "Node");
    EXPECT_EQ(event.regarding.name, "node-1");
    EXPECT_EQ(event.regarding.uid, "uid-of-node-1");
  }
  EXPECT_THAT(events[0].message, HasSubstr("default/claim-a"));
}

TEST_F(ReleaseEventsTest, AfterTheEndItIsNewsAgain) {
  events_.Kept(Record("a"), {.error = absl::FailedPreconditionError("busy")});
  events_.Gone(Record("a"));
  events_.Kept(Record("a"), {.error = absl::FailedPreconditionError("busy, a second time")});
  EXPECT_EQ(Events().size(), 2u);
}

}  // namespace
}  // namespace ascend::kubeletplugin
