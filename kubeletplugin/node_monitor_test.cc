#include "kubeletplugin/node_monitor.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/testing/fake_kube_client.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Reasons(const kube::Node& node) {
  std::vector<std::string> reasons;
  for (const auto& [reason, message] : NodeProblems(node)) reasons.push_back(reason);
  return reasons;
}

// CDI-07
TEST(NodeProblemsTest, RuntimesWithoutCdi) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"docker://27.1.0", {"CdiUnsupported"}},
      {"containerd://1.6.36", {"CdiUnsupported"}},
      {"containerd://1.7.2", {"CdiMaybeOff"}},
      {"containerd://1.7.28-k3s1", {"CdiMaybeOff"}},
      {"containerd://2.0.0", {}},
      {"containerd://v2.3.1", {}},
      {"containerd://10.0.0", {}},
      {"cri-o://1.22.5", {"CdiUnsupported"}},
      {"cri-o://1.28.0", {}},
      {"cri-o://1.9.0", {"CdiUnsupported"}},
      // What cannot be told is not accused.
      {"containerd://Unknown", {}},
      {"other://1.0.0", {}},
      {"containerd", {}},
      {"", {}},
  };
  for (const auto& [runtime, reasons] : cases) {
    EXPECT_EQ(Reasons({.container_runtime_version = runtime}), reasons) << runtime;
  }
}

// REG-15
TEST(NodeProblemsTest, ClassicDevicePlugin) {
  const auto offers = [](std::map<std::string, std::string> allocatable) {
    return Reasons({.allocatable = std::move(allocatable)});
  };
  const std::vector<std::string> active = {"DevicePluginActive"}, none;
  EXPECT_EQ(offers({{"cpu", "8"}, {"huawei.com/Ascend910", "8"}}), active);
  EXPECT_EQ(offers({{"huawei.com/Ascend310P-2c", "1"}}), active);
  EXPECT_EQ(offers({{"huawei.com/Ascend910", "0"}}), none);
  EXPECT_EQ(offers({{"cpu", "8"}, {"nvidia.com/gpu", "8"}, {"huawei.com/other", "1"}}), none);
}

TEST(NodeMonitorTest, ReportsEachProblemOnceAndTellsWhenItEnds) {
  kube::FakeClient client;
  kube::EventRecorder events({.controller = "npu.huawei.com", .node_name = "node-1"}, client);
  client.SetNode({.name = "node-1", .uid = "u", .allocatable = {{"huawei.com/Ascend910", "8"}}});
  Mutex mutex;
  CondVar changed;
  int changes = 0;
  NodeMonitor monitor({.node_name = "node-1", .period = absl::Milliseconds(1)}, client, events,
                      [&] {
                        MutexLock lock(&mutex);
                        ++changes;
                        changed.SignalAll();
                      });
  const auto wait_for_changes = [&](int count) {
    MutexLock lock(&mutex);
    while (changes < count) changed.Wait(&mutex);
  };
  wait_for_changes(1);
  EXPECT_TRUE(monitor.device_plugin_active());
  client.SetNode({.name = "node-1", .uid = "u"});
  wait_for_changes(2);
  EXPECT_FALSE(monitor.device_plugin_active());
  ASSERT_EQ(client.events().size(), 1u);
  EXPECT_EQ(client.events()[0].reason, "DevicePluginActive");
  EXPECT_EQ(client.events()[0].regarding.kind, "Node");
  EXPECT_EQ(client.events()[0].regarding.uid, "u");
  EXPECT_EQ(client.events()[0].reporting_component, "npu.huawei.com");
  EXPECT_EQ(client.events()[0].reporting_instance, "node-1");
  EXPECT_THAT(client.events()[0].message, HasSubstr("huawei.com/Ascend910: 8"));
  // Back again is news again.
  client.SetNode({.name = "node-1", .uid = "u", .allocatable = {{"huawei.com/Ascend910", "8"}}});
  wait_for_changes(3);
  EXPECT_TRUE(client.WaitUntil([&] { return client.events().size() == 2; }));
}

TEST(NodeMonitorTest, WritesTheEventOnceTheApiServerIsBack) {
  kube::FakeClient client;
  kube::EventRecorder events({.controller = "npu.huawei.com", .node_name = "node-1"}, client);
  client.SetNode({.name = "node-1", .uid = "u", .container_runtime_version = "docker://27.1.0"});
  client.FailEvents(absl::UnavailableError("HTTP 503"), 2);
  ::testing::internal::CaptureStderr();
  {
    NodeMonitor monitor({.node_name = "node-1", .period = absl::Milliseconds(1)}, client, events,
                        [] {});
    EXPECT_TRUE(client.WaitUntil([&] { return !client.events().empty(); }));
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_EQ(client.events().size(), 1u);
  EXPECT_TRUE(client.events()[0].warning);
  EXPECT_EQ(client.event_attempts(), 3);
  const std::vector<std::string> parts = absl::StrSplit(log, "the node is not fit for claims");
  EXPECT_EQ(parts.size(), 2u) << log;  // said once
}

// CDI-07: containerd 1.7 with CDI on looks the same.
TEST(NodeMonitorTest, WhatCannotBeToldIsNoWarning) {
  kube::FakeClient client;
  kube::EventRecorder events({.controller = "npu.huawei.com", .node_name = "node-1"}, client);
  client.SetNode(
      {.name = "node-1", .uid = "u", .container_runtime_version = "containerd://1.7.28"});
  ::testing::internal::CaptureStderr();
  {
    NodeMonitor monitor({.node_name = "node-1", .period = absl::Milliseconds(1)}, client, events,
                        [] {});
    EXPECT_TRUE(client.WaitUntil([&] { return !client.events().empty(); }));
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_EQ(client.events().size(), 1u);
  EXPECT_EQ(client.events()[0].reason, "CdiMaybeOff");
  EXPECT_FALSE(client.events()[0].warning);
  EXPECT_THAT(client.events()[0].message,
              AllOf(HasSubstr("cannot be told"), HasSubstr("check that enable_cdi = true")));
  EXPECT_THAT(log, AllOf(HasSubstr("level=info"), HasSubstr("CdiMaybeOff"),
                         Not(HasSubstr("level=warning")), Not(HasSubstr("not fit"))));
}

}  // namespace
}  // namespace ascend::kubeletplugin
