#include "test/sim/slice_validation.h"

#include <functional>

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "test/sim/test_slices.h"

namespace ascend::sim {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kNow[] = "2026-11-30T03:00:00Z";

// The fields that the server complains about, after decoding.
std::vector<std::string> Complaints(json slice, const json* old = nullptr) {
  EXPECT_THAT(DecodeSlice(kNow, &slice), IsOk());
  std::vector<std::string> fields;
  for (const Cause& cause : ValidateSlice(slice, old)) fields.push_back(cause.field);
  return fields;
}

json WithDevice(const json& device) {
  json slice = MakeSlice(1);
  slice["spec"]["devices"][0].update(device);
  return slice;
}

json Counters(int count) {
  json counters = json::object();
  for (int i = 0; i < count; ++i) counters[absl::StrCat("c-", i)] = {{"value", "1"}};
  return counters;
}

TEST(SliceValidation, DeviceCountAtTheLimits) {
  EXPECT_THAT(Complaints(MakeSlice(128)), IsEmpty());
  EXPECT_THAT(Complaints(MakeSlice(129)), ElementsAre("spec.devices"));
  for (const json& feature :
       {json{{"taints", {MakeTaint("None")}}},
        json{{"consumesCounters", {{{"counterSet", "chip"}, {"counters", Counters(1)}}}}}}) {
    json slice = MakeSlice(64);
    slice["spec"]["devices"][63].update(feature);
    EXPECT_THAT(Complaints(slice), IsEmpty());
    slice["spec"]["devices"].push_back({{"name", "one-more"}});
    EXPECT_THAT(Complaints(slice), ElementsAre("spec.devices"));
  }
}

TEST(SliceValidation, Names) {
  const std::string label63(63, 'a');
  EXPECT_THAT(Complaints(WithDevice({{"name", label63}})), IsEmpty());
  for (const std::string& bad : {label63 + "a", std::string("Npu-0"), std::string("npu_0"),
                                 std::string("npu-"), std::string("npu.0"), std::string()}) {
    EXPECT_THAT(Complaints(WithDevice({{"name", bad}})), ElementsAre("spec.devices[0].name"))
        << bad;
  }
  json twice = MakeSlice(2);
  twice["spec"]["devices"][1]["name"] = "npu-0";
  EXPECT_THAT(Complaints(twice), ElementsAre("spec.devices[1].name"));

  json slice = MakeSlice(1);
  slice["spec"]["driver"] = std::string(31, 'a') + "." + std::string(31, 'b');
  EXPECT_THAT(Complaints(slice), IsEmpty());
  slice["spec"]["driver"] = std::string(32, 'a') + "." + std::string(31, 'b');
  EXPECT_THAT(Complaints(slice), ElementsAre("spec.driver"));
  slice = MakeSlice(1);
  slice["spec"]["pool"]["name"] = "rack-1/node-1";
  EXPECT_THAT(Complaints(slice), IsEmpty());
  slice["spec"]["pool"]["name"] = "rack//node";
  EXPECT_THAT(Complaints(slice), ElementsAre("spec.pool.name"));
}

TEST(SliceValidation, AttributesAndCapacities) {
  json attributes = json::object();
  for (int i = 0; i < 31; ++i) attributes[absl::StrCat("a", i)] = {{"int", i}};
  json device = {{"attributes", attributes}, {"capacity", {{"memory", {{"value", "64Gi"}}}}}};
  EXPECT_THAT(Complaints(WithDevice(device)), IsEmpty());
  device["capacity"]["aicore"] = {{"value", "20"}};
  EXPECT_THAT(Complaints(WithDevice(device)), ElementsAre("spec.devices[0]"));

  const auto attribute = [](const std::string& name, const json& value) {
    return Complaints(WithDevice({{"attributes", {{name, value}}}}));
  };
  const std::string domain63 = std::string(31, 'a') + "." + std::string(31, 'b');
  EXPECT_THAT(attribute(std::string(32, 'a'), {{"int", 1}}), IsEmpty());
  EXPECT_THAT(attribute(domain63 + "/numaNode", {{"int", 1}}), IsEmpty());
  EXPECT_THAT(attribute("model", {{"string", std::string(64, 'x')}}), IsEmpty());
  EXPECT_THAT(attribute("model", {{"string", ""}}), IsEmpty());
  EXPECT_THAT(attribute("driver", {{"version", "25.5.1-rc.2+build.7"}}), IsEmpty());
  EXPECT_THAT(attribute(std::string(33, 'a'), {{"int", 1}}), ::testing::SizeIs(1));
  EXPECT_THAT(attribute("a" + domain63 + "/numaNode", {{"int", 1}}), ::testing::SizeIs(1));
  EXPECT_THAT(attribute("1st", {{"int", 1}}), ::testing::SizeIs(1));
  EXPECT_THAT(attribute("a-b", {{"int", 1}}), ::testing::SizeIs(1));
  EXPECT_THAT(attribute("model", {{"string", std::string(65, 'x')}}), ::testing::SizeIs(1));
  EXPECT_THAT(attribute("none", json::object()), ::testing::SizeIs(1));
  EXPECT_THAT(attribute("two", {{"int", 1}, {"bool", true}}), ::testing::SizeIs(1));
  // A list attribute loses its list while the gate is off.
  EXPECT_THAT(attribute("numaNode", {{"ints", {0, 1}}}), ::testing::SizeIs(1));
  for (const char* version : {"25.5", "v1.2.3", "24.1.rc2", "1.2.3.4", "01.2.3", "1.2.3-01", ""}) {
    EXPECT_THAT(attribute("driver", {{"version", version}}), ::testing::SizeIs(1)) << version;
  }
}

TEST(SliceValidation, Taints) {
  const auto taints = [](int count, const json& taint) {
    return Complaints(WithDevice({{"taints", json(static_cast<size_t>(count), taint)}}));
  };
  EXPECT_THAT(taints(16, MakeTaint("NoSchedule")), IsEmpty());
  EXPECT_THAT(taints(17, MakeTaint("NoSchedule")), ElementsAre("spec.devices[0].taints"));
  EXPECT_THAT(taints(1, MakeTaint("NoRun")), ElementsAre("spec.devices[0].taints[0].effect"));
  json taint = MakeTaint("NoExecute");
  taint["key"] = "a b";
  EXPECT_THAT(taints(1, taint), ElementsAre("spec.devices[0].taints[0].key"));
  taint = MakeTaint("NoExecute");
  taint["value"] = std::string(64, 'v');
  EXPECT_THAT(taints(1, taint), ElementsAre("spec.devices[0].taints[0].value"));
}

TEST(SliceValidation, Counters) {
  json slice = MakeSlice(0);
  slice["spec"].erase("devices");
  for (int i = 0; i < 8; ++i) {
    slice["spec"]["sharedCounters"].push_back(
        {{"name", absl::StrCat("chip-", i)}, {"counters", Counters(32)}});
  }
  EXPECT_THAT(Complaints(slice), IsEmpty());
  slice["spec"]["sharedCounters"][0]["counters"] = Counters(33);
  EXPECT_THAT(Complaints(slice), ElementsAre("spec.sharedCounters[0].counters"));
  slice["spec"]["sharedCounters"][0]["counters"] = Counters(1);
  slice["spec"]["sharedCounters"].push_back({{"name", "chip-8"}, {"counters", Counters(1)}});
  EXPECT_THAT(Complaints(slice), ElementsAre("spec.sharedCounters"));
  slice["spec"]["sharedCounters"].erase(8);
  slice["spec"]["devices"] = {{{"name", "npu-0"}}};
  EXPECT_THAT(Complaints(slice), ElementsAre("spec"));

  json consumed = json::array();
  for (int i = 0; i < 2; ++i) {
    consumed.push_back({{"counterSet", absl::StrCat("chip-", i)}, {"counters", Counters(1)}});
  }
  EXPECT_THAT(Complaints(WithDevice({{"consumesCounters", consumed}})), IsEmpty());
  consumed.push_back({{"counterSet", "chip-2"}, {"counters", Counters(1)}});
  EXPECT_THAT(Complaints(WithDevice({{"consumesCounters", consumed}})),
              ElementsAre("spec.devices[0].consumesCounters"));
}

TEST(SliceValidation, PoolAndNodeSelection) {
  json slice = MakeSlice(1);
  slice["spec"]["pool"]["resourceSliceCount"] = 0;
  EXPECT_THAT(Complaints(slice), ElementsAre("spec.pool.resourceSliceCount"));
  slice = MakeSlice(1);
  slice["spec"]["pool"]["generation"] = -1;
  EXPECT_THAT(Complaints(slice), ElementsAre("spec.pool.generation"));
  slice = MakeSlice(1);
  slice["spec"]["allNodes"] = true;
  EXPECT_THAT(Complaints(slice), ElementsAre("spec"));
  slice["spec"].erase("allNodes");
  slice["spec"].erase("nodeName");
  EXPECT_THAT(Complaints(slice), ElementsAre("spec"));
}

TEST(SliceValidation, WhatMayNotChange) {
  const json old = MakeSlice(1);
  json slice = old;
  slice["spec"]["devices"] = json::array();
  EXPECT_THAT(Complaints(slice, &old), IsEmpty());
  slice["spec"]["driver"] = "other.example.com";
  slice["spec"]["nodeName"] = "node-2";
  slice["spec"]["pool"]["name"] = "node-2";
  EXPECT_THAT(Complaints(slice, &old),
              ElementsAre("spec.driver", "spec.nodeName", "spec.pool.name"));
}

TEST(SliceDecoding, KeepsWhatTheApiKnows) {
  json slice = MakeSlice(1);
  slice["spec"]["surprise"] = 1;
  slice["spec"]["devices"][0].update({{"basic", json::object()},
                                      {"taints", {MakeTaint("NoSchedule")}},
                                      {"capacity", {{"memory", {{"value", "65536Mi"}}}}},
                                      {"attributes", json::object()}});
  ASSERT_THAT(DecodeSlice(kNow, &slice), IsOk());
  json taint = MakeTaint("NoSchedule");
  taint["timeAdded"] = kNow;
  EXPECT_FALSE(slice["spec"].contains("surprise"));
  EXPECT_EQ(slice["spec"]["devices"][0], json({{"name", "npu-0"},
                                               {"taints", {taint}},
                                               {"capacity", {{"memory", {{"value", "64Gi"}}}}}}));
  DropTaints(&slice);
  EXPECT_FALSE(slice["spec"]["devices"][0].contains("taints"));
}

TEST(SliceDecoding, WrongTypesAreRefused) {
  const auto decode = [](const json& device) {
    json slice = WithDevice(device);
    return DecodeSlice(kNow, &slice);
  };
  const auto refused = [](const std::string& field) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(field));
  };
  EXPECT_THAT(decode({{"name", 7}}), refused("spec.devices[0].name"));
  EXPECT_THAT(decode({{"attributes", {{"numa", {{"int", "1"}}}}}}), refused("attributes.numa.int"));
  EXPECT_THAT(decode({{"capacity", {{"memory", {{"value", "64GB"}}}}}}), refused("memory.value"));
  EXPECT_THAT(decode({{"taints", json::object()}}), refused("spec.devices[0].taints"));
}

}  // namespace
}  // namespace ascend::sim
