#include "kubeletplugin/kube/event_recorder.h"

#include <memory>
#include <string>
#include <vector>

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/testing/fake_kube_client.h"

namespace ascend::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EventRecorderTest : public ::testing::Test {
 protected:
  EventRecorderTest() {
    options_.controller = "npu.huawei.com";
    options_.node_name = "node-1";
    options_.retry = absl::Milliseconds(1);
    ResourceClaim claim;
    claim.namespace_name = "ns";
    claim.name = "c";
    claim.uid = "uid-c";
    client_.SetClaim(claim);
  }
  void Start() { recorder_ = std::make_unique<EventRecorder>(options_, client_); }
  std::vector<std::string> Messages(size_t count) {
    EXPECT_TRUE(client_.WaitUntil([&] { return client_.events().size() >= count; }));
    std::vector<std::string> messages;
    for (const Event& event : client_.events()) {
      messages.push_back(event.regarding.kind + ": " + event.message);
    }
    return messages;
  }
  static Event About(const ObjectReference& object, const std::string& message) {
    return {.regarding = object, .reason = "Reason", .message = message};
  }

  EventRecorder::Options options_;
  FakeClient client_;
  std::unique_ptr<EventRecorder> recorder_;
};

TEST(EventObjectsTest, NameWhatKubectlLooksFor) {
  const ObjectReference pod = PodObject("ns", "p", "u");
  EXPECT_EQ(pod.api_version + "/" + pod.kind, "v1/Pod");
  EXPECT_EQ(pod.namespace_name + "/" + pod.name + "/" + pod.uid, "ns/p/u");
  const ObjectReference claim = ClaimObject("ns", "c", "u");
  EXPECT_EQ(claim.api_version + "/" + claim.kind, "resource.k8s.io/v1/ResourceClaim");
  EXPECT_EQ(claim.namespace_name + "/" + claim.name + "/" + claim.uid, "ns/c/u");
  const ObjectReference node = NodeObject("n", "u");
  EXPECT_EQ(node.api_version + "/" + node.kind, "v1/Node");
  EXPECT_EQ(node.namespace_name + "/" + node.name + "/" + node.uid, "/n/u");
}

TEST_F(EventRecorderTest, SendFillsInWhoReports) {
  Start();
  ASSERT_THAT(recorder_->Send(About(recorder_->node(), "one")), IsOk());
  ASSERT_THAT(recorder_->Send(About(NodeObject("node-1", "known"), "two")), IsOk());
  const std::vector<Event> events = client_.events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].regarding.name, "node-1");
  EXPECT_EQ(events[0].regarding.uid, "uid-of-node-1");
  EXPECT_EQ(events[1].regarding.uid, "known");
  for (const Event& event : events) {
    EXPECT_EQ(event.reporting_component, "npu.huawei.com");
    EXPECT_EQ(event.reporting_instance, "node-1");
  }
  client_.FailEvents(absl::UnavailableError("down"));
  EXPECT_THAT(recorder_->Send(About(recorder_->node(), "three")),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(EventRecorderTest, PostsInOrderAndTriesAgainWhileTheServerIsAway) {
  client_.FailEvents(absl::UnavailableError("down"), 3);
  Start();
  recorder_->Post(About(PodObject("ns", "p", "u"), "one"));
  recorder_->Post(About(PodObject("ns", "p", "u"), "two"));
  EXPECT_THAT(Messages(2), ElementsAre("Pod: one", "Pod: two"));
  EXPECT_EQ(client_.event_attempts(), 5);
}

TEST_F(EventRecorderTest, WhatTheServerDoesNotTakeIsDropped) {
  client_.FailEvents(absl::InvalidArgumentError("HTTP 422"));
  Start();
  ::testing::internal::CaptureStderr();
  recorder_->Post(About(PodObject("ns", "p", "u"), "one"));
  recorder_->Post(About(PodObject("ns", "p", "u"), "two"));
  EXPECT_THAT(Messages(1), ElementsAre("Pod: two"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("HTTP 422"));
  EXPECT_EQ(client_.event_attempts(), 2);
}

TEST_F(EventRecorderTest, TheSameWordIsSentOnce) {
  Start();
  for (int i = 0; i < 3; ++i) {
    recorder_->Post(About(PodObject("ns", "p", "u"), "one"));
    recorder_->Post(About(PodObject("ns", "p", "v"), "one"));  // another pod
  }
  recorder_->Post(About(PodObject("ns", "p", "u"), "two"));
  EXPECT_THAT(Messages(3), ElementsAre("Pod: one", "Pod: one", "Pod: two"));
}

TEST_F(EventRecorderTest, TheNodeIsToldWhereTheClaimCannotBe) {
  Start();
  const auto post = [&](const ObjectReference& claim, const std::string& message) {
    recorder_->Post(About(claim, message), EventRecorder::IfGone::kTellNode);
  };
  post(ClaimObject("ns", "c", "uid-c"), "there");
  post(ClaimObject("ns", "c", "uid-before"), "another by that name");
  post(ClaimObject("ns", "d", "uid-d"), "gone");
  EXPECT_THAT(Messages(3),
              ElementsAre("ResourceClaim: there", "Node: another by that name", "Node: gone"));
  // The namespace is being deleted: 403.
  client_.FailEvents(absl::PermissionDeniedError("because it is being terminated"));
  post(ClaimObject("ns", "c", "uid-c"), "last");
  EXPECT_EQ(Messages(4).back(), "Node: last");
  // Whether it is gone cannot be told yet.
  client_.FailGets(absl::UnavailableError("down"), 2);
  post(ClaimObject("ns", "c", "uid-c"), "later");
  EXPECT_EQ(Messages(5).back(), "ResourceClaim: later");
}

// Nobody waits: neither who posts nor who ends it.
TEST_F(EventRecorderTest, ADeadServerHoldsNobodyUp) {
  options_.retry = absl::Hours(1);
  client_.FailEvents(absl::UnavailableError("down"));
  Start();
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 300; ++i) {
    recorder_->Post(About(PodObject("ns", "p", "u"), std::to_string(i)));
  }
  EXPECT_TRUE(client_.WaitUntil([&] { return client_.event_attempts() == 1; }));
  recorder_.reset();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("too many wait to be sent"));
  EXPECT_EQ(client_.event_attempts(), 1);
}

}  // namespace
}  // namespace ascend::kube
