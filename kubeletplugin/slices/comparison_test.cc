#include "kubeletplugin/slices/comparison.h"

#include <functional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

kube::ResourceSlice Slice() {
  kube::ResourceSlice slice;
  slice.driver = "npu.huawei.com";
  slice.node_name = slice.pool_name = "node-1";
  slice.devices = {{.name = "npu-0",
                    .attributes = {{"physicalID", int64_t{0}}},
                    .capacity = {{"memory", "64Gi"}},
                    .consumes_counters = {{.name = "npu-0", .counters = {{"aicore", "20"}}}},
                    .taints = {{.key = "npu.huawei.com/unhealthy",
                                .value = "major",
                                .effect = "NoSchedule",
                                .time_added = ""}}}};
  return slice;
}

TEST(ComparisonTest, WhatTheServerSetsIsNoDifference) {
  kube::ResourceSlice stored = Slice();
  stored.uid = "uid";
  stored.resource_version = "7";
  stored.pool_generation = 3;
  stored.devices[0].taints[0].time_added = "2026-01-02T03:04:05Z";
  EXPECT_TRUE(SameContent(Slice(), stored));
  kube::ResourceSlice insisting = Slice();
  insisting.devices[0].taints[0].time_added = "2026-01-02T03:04:06Z";
  EXPECT_FALSE(SameContent(insisting, stored));
  KeepTaintTimes(stored, &insisting);
  EXPECT_TRUE(SameContent(insisting, stored));
}

TEST(ComparisonTest, EverythingElseIsOne) {
  const std::vector<std::function<void(kube::ResourceSlice&)>> edits = {
      [](auto& slice) { slice.driver = "other"; },
      [](auto& slice) { slice.node_name = "other"; },
      [](auto& slice) { slice.pool_name = "other"; },
      [](auto& slice) { slice.pool_slice_count = 2; },
      [](auto& slice) { slice.shared_counters.push_back({.name = "npu-0", .counters = {}}); },
      [](auto& slice) { slice.devices.clear(); },
      [](auto& slice) { slice.devices.push_back(slice.devices[0]); },
      [](auto& slice) { slice.devices[0].name = "npu-1"; },
      [](auto& slice) { slice.devices[0].attributes["physicalID"] = int64_t{1}; },
      [](auto& slice) { slice.devices[0].capacity.clear(); },
      [](auto& slice) { slice.devices[0].consumes_counters.clear(); }};
  for (size_t i = 0; i < edits.size(); ++i) {
    kube::ResourceSlice edited = Slice();
    edits[i](edited);
    EXPECT_FALSE(SameContent(Slice(), edited)) << i;
    EXPECT_FALSE(SameContentButTaints(Slice(), edited)) << i;
  }
  for (const char* value : {"", "critical"}) {
    kube::ResourceSlice edited = Slice();
    edited.devices[0].taints[0].value = value;
    EXPECT_FALSE(SameContent(Slice(), edited)) << value;
    EXPECT_TRUE(SameContentButTaints(Slice(), edited)) << value;
  }
}

TEST(ComparisonTest, ATaintThatChangedHasATimeOfItsOwn) {
  kube::ResourceSlice stored = Slice();
  stored.devices[0].taints[0].time_added = "2026-01-02T03:04:05Z";
  kube::ResourceSlice wanted = Slice();
  wanted.devices[0].taints[0].value = "critical";
  KeepTaintTimes(stored, &wanted);
  EXPECT_EQ(wanted.devices[0].taints[0].time_added, "");
}

TEST(ComparisonTest, DroppedFieldsAreNamed) {
  const Dropped none = DroppedFields(Slice(), Slice());
  EXPECT_THAT(none.fields, IsEmpty());
  EXPECT_FALSE(none.taints || none.counters);

  kube::ResourceSlice stored = Slice();
  stored.devices[0].taints.clear();
  Dropped dropped = DroppedFields(Slice(), stored);
  EXPECT_TRUE(dropped.taints);
  EXPECT_FALSE(dropped.counters);
  EXPECT_THAT(dropped.fields, ElementsAre(HasSubstr("DRADeviceTaints")));

  stored = Slice();
  stored.devices[0].consumes_counters.clear();
  dropped = DroppedFields(Slice(), stored);
  EXPECT_TRUE(dropped.counters);
  EXPECT_FALSE(dropped.taints);
  EXPECT_THAT(dropped.fields, ElementsAre(HasSubstr("DRAPartitionableDevices")));

  kube::ResourceSlice counters = Slice();
  counters.devices.clear();
  counters.shared_counters.push_back({.name = "npu-0", .counters = {{"aicore", "20"}}});
  stored = counters;
  stored.shared_counters.clear();
  EXPECT_TRUE(DroppedFields(counters, stored).counters);

  stored = Slice();
  stored.devices[0].attributes.clear();
  stored.devices[0].capacity.clear();
  EXPECT_THAT(DroppedFields(Slice(), stored).fields,
              ElementsAre("attribute physicalID", "capacity memory"));
}

}  // namespace
}  // namespace ascend::kubeletplugin
