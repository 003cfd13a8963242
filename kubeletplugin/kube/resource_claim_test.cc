#include "kubeletplugin/kube/resource_claim.h"

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kFull[] = R"({
  "kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1",
  "metadata": {"name": "job-1", "namespace": "ml", "uid": "u-1", "resourceVersion": "5",
    "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:devices": [1, {"a": null}]}}}]},
  "spec": {"devices": {"requests": [{"name": "npu", "exactly": {"deviceClassName": "npu"}}]}},
  "status": {
    "allocation": {
      "devices": {
        "results": [
          {"request": "npu/large", "driver": "npu.huawei.com", "pool": "n1", "device": "npu-0",
           "tolerations": [{"key": "x"}]},
          {"request": "mon", "driver": "npu.huawei.com", "pool": "n1", "device": "npu-1",
           "adminAccess": true, "shareID": "s-1"},
          {"request": "nic", "driver": "nic.example.com", "pool": "n1", "device": "nic-0",
           "adminAccess": null}],
        "config": [
          {"source": "FromClass", "opaque": {"driver": "npu.huawei.com",
            "parameters": {"kind": "NpuConfig", "text": "q\"b\\s\/\u0001é\n", "n": [1, -2, 2.50, 1E2, true, null, {}, []],
                           "twice": 1, "twice": 2}}},
          {"source": "FromClaim", "requests": ["npu", "npu/large"]},
          {"source": "FromClaim", "requests": ["npu", "npu/large"],
           "opaque": {"driver": "other.example.com", "parameters": {}}}]},
      "nodeSelector": {"nodeSelectorTerms": []}},
    "reservedFor": [{"resource": "pods", "name": "p", "uid": "p-1"},
                    {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g-1"}],
    "devices": [{"driver": 7}]}})";

TEST(ParseResourceClaimTest, ReadsWhatADriverNeeds) {
  const auto claim = ParseResourceClaim(kFull);
  ASSERT_THAT(claim, IsOk());
  EXPECT_EQ(claim->name, "job-1");
  EXPECT_EQ(claim->namespace_name, "ml");
  EXPECT_EQ(claim->uid, "u-1");
  EXPECT_FALSE(claim->deletion_requested);

  ASSERT_TRUE(claim->allocation.has_value());
  ASSERT_THAT(claim->allocation->results, SizeIs(3));
  const DeviceResult& first = claim->allocation->results[0];
  EXPECT_EQ(first.request, "npu/large");
  EXPECT_EQ(first.driver, "npu.huawei.com");
  EXPECT_EQ(first.pool, "n1");
  EXPECT_EQ(first.device, "npu-0");
  EXPECT_FALSE(first.admin_access);
  EXPECT_EQ(first.share_id, "");
  const DeviceResult& second = claim->allocation->results[1];
  EXPECT_TRUE(second.admin_access);
  EXPECT_EQ(second.share_id, "s-1");
  EXPECT_EQ(claim->allocation->results[2].device, "nic-0");

  ASSERT_THAT(claim->reserved_for, SizeIs(2));
  EXPECT_EQ(claim->reserved_for[0].resource, "pods");
  EXPECT_EQ(claim->reserved_for[0].api_group, "");
  EXPECT_EQ(claim->reserved_for[1].api_group, "scheduling.k8s.io");
  EXPECT_EQ(claim->reserved_for[1].name, "g");
  EXPECT_EQ(claim->reserved_for[1].uid, "g-1");
}

TEST(ParseResourceClaimTest, KeepsOpaqueParametersAsTheyAreWritten) {
  const auto claim = ParseResourceClaim(kFull);
  ASSERT_THAT(claim, IsOk());
  ASSERT_THAT(claim->allocation->config, SizeIs(2)) << "the entry without opaque is left out";
  const OpaqueConfig& first = claim->allocation->config[0];
  EXPECT_EQ(first.source, OpaqueConfig::Source::kClass);
  EXPECT_THAT(first.requests, IsEmpty());
  EXPECT_EQ(first.driver, "npu.huawei.com");
  EXPECT_EQ(
      first.parameters_json,
      R"({"kind":"NpuConfig","text":"q\"b\\s/\u0001é\u000a","n":[1,-2,2.50,1E2,true,null,{},[]],)"
      R"("twice":1,"twice":2})");
  const OpaqueConfig& second = claim->allocation->config[1];
  EXPECT_EQ(second.source, OpaqueConfig::Source::kClaim);
  EXPECT_THAT(second.requests, ElementsAre("npu", "npu/large"));
  EXPECT_EQ(second.parameters_json, "{}");
}

TEST(ParseResourceClaimTest, ToleratesAbsentParts) {
  const auto bare = ParseResourceClaim(R"({"metadata":{"name":"a","uid":"u"}})");
  ASSERT_THAT(bare, IsOk());
  EXPECT_FALSE(bare->allocation.has_value());
  const auto nulls = ParseResourceClaim(
      R"({"metadata":{"name":"a","uid":"u","deletionTimestamp":"2026-01-01T00:00:00Z"},
          "status":{"allocation":null,"reservedFor":null}})");
  ASSERT_THAT(nulls, IsOk());
  EXPECT_TRUE(nulls->deletion_requested);
  EXPECT_FALSE(nulls->allocation.has_value());
  const auto empty =
      ParseResourceClaim(R"({"metadata":{"name":"a","uid":"u"},"status":{"allocation":{}}})");
  ASSERT_THAT(empty, IsOk());
  ASSERT_TRUE(empty->allocation.has_value());
  EXPECT_THAT(empty->allocation->results, IsEmpty());
}

struct Wrong {
  const char* json;
  const char* message;
};
class ParseWrongClaimTest : public ::testing::TestWithParam<Wrong> {};

TEST_P(ParseWrongClaimTest, NamesTheMember) {
  EXPECT_THAT(ParseResourceClaim(GetParam().json),
              StatusIs(absl::StatusCode::kInvalidArgument, GetParam().message));
}

#define STATUS(text) R"({"metadata":{"name":"a","uid":"u"},"status":)" text "}"
#define DEVICES(text) STATUS(R"({"allocation":{"devices":)" text "}}")
INSTANTIATE_TEST_SUITE_P(
    All, ParseWrongClaimTest,
    ::testing::Values(
        Wrong{"", "not valid JSON at byte 1"}, Wrong{"{", "not valid JSON at byte 2"},
        Wrong{"{} x", "not valid JSON at byte 4"}, Wrong{"[]", "not an object"},
        Wrong{"7", "not an object"}, Wrong{"null", "metadata.name: missing"},
        Wrong{R"({"metadata":{"name":"a"}})", "metadata.uid: missing"},
        Wrong{R"({"metadata":{"uid":"u"}})", "metadata.name: missing"},
        Wrong{R"({"metadata":{"name":["a"]}})", "metadata.name: not a string"},
        Wrong{R"({"metadata":{"name":{}}})", "metadata.name: not a string"},
        Wrong{R"({"metadata":{"uid":7}})", "metadata.uid: not a string"},
        Wrong{R"({"metadata":[]})", "metadata: not an object"},
        Wrong{STATUS("true"), "status: not an object"},
        Wrong{STATUS(R"({"allocation":"x"})"), "status.allocation: not an object"},
        Wrong{STATUS(R"({"reservedFor":{}})"), "status.reservedFor: not an array"},
        Wrong{STATUS(R"({"reservedFor":[{},{"uid":1.5}]})"),
              "status.reservedFor[1].uid: not a string"},
        Wrong{DEVICES("[]"), "status.allocation.devices: not an object"},
        Wrong{DEVICES(R"({"results":[null]})"),
              "status.allocation.devices.results[0]: not an object"},
        Wrong{DEVICES(R"({"results":[{"device":"a"},{"device":3}]})"),
              "status.allocation.devices.results[1].device: not a string"},
        Wrong{DEVICES(R"({"results":[{"adminAccess":"yes"}]})"),
              "status.allocation.devices.results[0].adminAccess: not a boolean"},
        Wrong{DEVICES(R"({"config":[{"source":"FromPod","opaque":{}}]})"),
              "status.allocation.devices.config[0].source: neither FromClass nor FromClaim"},
        Wrong{DEVICES(R"({"config":[{"opaque":{}}]})"),
              "status.allocation.devices.config[0].source: neither FromClass nor FromClaim"},
        Wrong{DEVICES(R"({"config":[{"requests":["a",1]}]})"),
              "status.allocation.devices.config[0].requests[1]: not a string"},
        Wrong{DEVICES(R"({"config":[{"opaque":{"parameters":[]}}]})"),
              "status.allocation.devices.config[0].opaque.parameters: not an object"},
        Wrong{DEVICES(R"({"config":[{"opaque":{"parameters":"{}"}}]})"),
              "status.allocation.devices.config[0].opaque.parameters: not an object"}));

TEST(ParseResourceClaimTest, AnyCutIsAnErrorAndDeepNestingIsNot) {
  const std::string text = kFull;
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_THAT(ParseResourceClaim(absl::string_view(text).substr(0, size)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not valid JSON")));
  }
  const std::string deep(200'000, '[');
  EXPECT_THAT(ParseResourceClaim(R"({"metadata":{"name":"a","uid":"u"},"x":)" + deep +
                                 std::string(deep.size(), ']') + "}"),
              IsOk());
}

TEST(ParseResourceClaimTest, RefusesBadUtf8) {
  EXPECT_THAT(ParseResourceClaim("{\"metadata\":{\"name\":\"\xff\"}}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not valid JSON")));
}

}  // namespace
}  // namespace ascend::kube
