#include "kubeletplugin/kube/resource_slice.h"

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace ascend::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using Json = nlohmann::json;

ResourceSlice FullSlice() {
  ResourceSlice slice;
  slice.name = "00000-npu.huawei.com-n1";
  slice.uid = "s-1";
  slice.resource_version = "42";
  slice.owner_node.name = "n1";
  slice.owner_node.uid = "n-1";
  slice.driver = "npu.huawei.com";
  slice.node_name = "n1";
  slice.pool_name = "n1";
  slice.pool_generation = 3;
  slice.pool_slice_count = 2;
  SliceDevice device;
  device.name = "npu-0";
  device.attributes["index"] = int64_t{-7};
  device.attributes["healthy"] = true;
  device.attributes["family"] = std::string("910B");
  device.attributes["driverVersion"] = Version{"25.5.1"};
  device.capacity["memory"] = "64Gi";
  device.taints = {{"npu.huawei.com/unhealthy", "v", "NoExecute", "2026-01-02T03:04:05Z"},
                   {"k", "", "None", ""}};
  slice.devices = {device, {.name = "npu-1"}};
  return slice;
}

TEST(ResourceSliceTest, WritesTheApiForm) {
  EXPECT_EQ(ToJson(FullSlice()), Json::parse(R"({
    "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
    "metadata": {"name": "00000-npu.huawei.com-n1", "uid": "s-1", "resourceVersion": "42",
      "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n-1", "controller": true}]},
    "spec": {"driver": "npu.huawei.com", "nodeName": "n1",
      "pool": {"name": "n1", "generation": 3, "resourceSliceCount": 2},
      "devices": [
        {"name": "npu-0",
         "attributes": {"index": {"int": -7}, "healthy": {"bool": true}, "family": {"string": "910B"},
                        "driverVersion": {"version": "25.5.1"}},
         "capacity": {"memory": {"value": "64Gi"}},
         "taints": [{"key": "npu.huawei.com/unhealthy", "value": "v", "effect": "NoExecute",
                     "timeAdded": "2026-01-02T03:04:05Z"}, {"key": "k", "effect": "None"}]},
        {"name": "npu-1"}]}})"));
}

TEST(ResourceSliceTest, ReadsBackWhatItWrites) {
  const ResourceSlice slice = FullSlice();
  const auto read = ParseResourceSlice(ToJson(slice));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->name, slice.name);
  EXPECT_EQ(read->uid, slice.uid);
  EXPECT_EQ(read->resource_version, slice.resource_version);
  EXPECT_EQ(read->owner_node.name, "n1");
  EXPECT_EQ(read->owner_node.uid, "n-1");
  EXPECT_EQ(read->driver, slice.driver);
  EXPECT_EQ(read->node_name, slice.node_name);
  EXPECT_EQ(read->pool_name, slice.pool_name);
  EXPECT_EQ(read->pool_generation, 3);
  EXPECT_EQ(read->pool_slice_count, 2);
  EXPECT_EQ(read->devices, slice.devices);
}

TEST(ResourceSliceTest, WritesAnEmptyPoolWithoutServerFields) {
  ResourceSlice slice;
  slice.name = "s";
  const Json json = ToJson(slice);
  EXPECT_EQ(json["metadata"], Json::parse(R"({"name": "s"})"));
  EXPECT_EQ(json["spec"]["devices"], Json::array());
}

TEST(ResourceSliceTest, DropsWhatItDoesNotKnow) {
  const auto slice = ParseResourceSlice(Json::parse(R"({
    "metadata": {"name": "s", "managedFields": 1,
      "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d-1"}]},
    "spec": {"allNodes": true, "perDeviceNodeSelection": 7, "devices": [
      {"name": "a", "consumesCounters": [], "taints": null,
       "attributes": {"list": {"ints": [1]}, "dropped": {}, "kept": {"int": 18446744073709551, "ints": null}},
       "capacity": {"memory": {"value": "1Gi", "requestPolicy": {}}}}]}})"));
  ASSERT_THAT(slice, IsOk());
  EXPECT_EQ(slice->owner_node.name, "") << "only a Node is one";
  EXPECT_EQ(slice->pool_slice_count, 1);
  ASSERT_THAT(slice->devices, SizeIs(1));
  EXPECT_THAT(slice->devices[0].attributes,
              ElementsAre(Pair("kept", AttributeValue(int64_t{18446744073709551}))));
  EXPECT_THAT(slice->devices[0].capacity, ElementsAre(Pair("memory", "1Gi")));
  EXPECT_THAT(slice->devices[0].taints, IsEmpty());
}

struct Wrong {
  const char* json;
  const char* message;
};
class ParseWrongSliceTest : public ::testing::TestWithParam<Wrong> {};

TEST_P(ParseWrongSliceTest, NamesTheMember) {
  EXPECT_THAT(ParseResourceSlice(Json::parse(GetParam().json)),
              StatusIs(absl::StatusCode::kInvalidArgument, GetParam().message));
}

#define DEVICE(text) R"({"spec":{"devices":[{"name":"a"},)" text "]}}"
INSTANTIATE_TEST_SUITE_P(
    All, ParseWrongSliceTest,
    ::testing::Values(
        Wrong{"[]", "not an object"}, Wrong{"null", "not an object"},
        Wrong{R"({"metadata":1})", "metadata: not an object"},
        Wrong{R"({"metadata":{"name":1}})", "metadata.name: not a string"},
        Wrong{R"({"metadata":{"ownerReferences":[1]}})",
              "metadata.ownerReferences[0]: not an object"},
        Wrong{R"({"metadata":{"ownerReferences":[{"kind":true}]}})",
              "metadata.ownerReferences[0].kind: not a string"},
        Wrong{R"({"spec":{"pool":{"generation":"1"}}})",
              "spec.pool.generation: not a 64-bit integer"},
        Wrong{R"({"spec":{"pool":{"generation":1.5}}})",
              "spec.pool.generation: not a 64-bit integer"},
        Wrong{R"({"spec":{"pool":{"resourceSliceCount":18446744073709551615}}})",
              "spec.pool.resourceSliceCount: not a 64-bit integer"},
        Wrong{R"({"spec":{"devices":{}}})", "spec.devices: not an array"},
        Wrong{DEVICE("null"), "spec.devices[1]: not an object"},
        Wrong{DEVICE(R"({"name":[]})"), "spec.devices[1].name: not a string"},
        Wrong{DEVICE(R"({"attributes":[]})"), "spec.devices[1].attributes: not an object"},
        Wrong{DEVICE(R"({"attributes":{"x.y/z":1}})"),
              "spec.devices[1].attributes.x.y/z: not an object"},
        Wrong{DEVICE(R"({"attributes":{"a":{"int":"1"}}})"),
              "spec.devices[1].attributes.a.int: not a 64-bit integer"},
        Wrong{DEVICE(R"({"attributes":{"a":{"bool":0}}})"),
              "spec.devices[1].attributes.a.bool: not a boolean"},
        Wrong{DEVICE(R"({"attributes":{"a":{"version":{}}}})"),
              "spec.devices[1].attributes.a.version: not a string"},
        Wrong{DEVICE(R"({"capacity":{"memory":{"value":1}}})"),
              "spec.devices[1].capacity.memory.value: not a string"},
        Wrong{R"({"spec":{"sharedCounters":7}})", "spec.sharedCounters: not an array"},
        Wrong{R"({"spec":{"sharedCounters":[{"counters":{"a":{"value":1}}}]}})",
              "spec.sharedCounters[0].counters.a.value: not a string"},
        Wrong{DEVICE(R"({"consumesCounters":[{"counterSet":1}]})"),
              "spec.devices[1].consumesCounters[0].counterSet: not a string"},
        Wrong{DEVICE(R"({"taints":[{"effect":1}]})"),
              "spec.devices[1].taints[0].effect: not a string"}));

// Since 1.35 a slice has devices or counter sets.
TEST(ResourceSliceTest, CounterSetsAndTheirConsumers) {
  ResourceSlice counters = FullSlice();
  counters.devices.clear();
  counters.shared_counters = {{"npu-0", {{"aicore", "20"}, {"memory", "28Gi"}}}};
  const Json json = ToJson(counters);
  EXPECT_FALSE(json["spec"].contains("devices"));
  EXPECT_EQ(json["spec"]["sharedCounters"], Json::parse(R"([{"name": "npu-0",
      "counters": {"aicore": {"value": "20"}, "memory": {"value": "28Gi"}}}])"));
  const auto read = ParseResourceSlice(json);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->shared_counters, counters.shared_counters);

  ResourceSlice devices = FullSlice();
  devices.devices[0].consumes_counters = {{"npu-0", {{"aicore", "5"}}}};
  const Json device = ToJson(devices)["spec"]["devices"][0];
  EXPECT_EQ(device["consumesCounters"],
            Json::parse(R"([{"counterSet": "npu-0", "counters": {"aicore": {"value": "5"}}}])"));
  EXPECT_THAT(ParseSliceDevice(device), IsOkAndHolds(devices.devices[0]));
}

TEST(ParseSliceDeviceTest, ReadsOneDeviceAlone) {
  const SliceDevice device = FullSlice().devices[0];
  EXPECT_THAT(ParseSliceDevice(ToJson(device)), IsOkAndHolds(device));
  EXPECT_THAT(ParseSliceDevice(Json(1)),
              StatusIs(absl::StatusCode::kInvalidArgument, "not an object"));
  EXPECT_THAT(ParseSliceDevice(Json{{"name", 1}}),
              StatusIs(absl::StatusCode::kInvalidArgument, "name: not a string"));
}

}  // namespace
}  // namespace ascend::kube
