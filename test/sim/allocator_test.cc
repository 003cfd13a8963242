#include "test/sim/allocator.h"

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "test/sim/test_slices.h"

namespace ascend::sim {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

class AllocatorTest : public ::testing::Test {
 protected:
  void Publish(json slice) { ASSERT_THAT(server_.Create(slice), IsOk()); }
  std::vector<std::string> Devices(const ClaimSpec& spec) {
    const absl::StatusOr<ClaimRef> claim = AllocateClaim(server_, spec);
    return claim.ok() ? claim->devices : std::vector<std::string>{claim.status().ToString()};
  }
  json Allocation(const std::string& name) {
    return (*server_.Get("resourceclaims", "default", name))["status"]["allocation"];
  }

  ApiServer server_;
};

TEST_F(AllocatorTest, TakesFreeHealthyDevicesInOrder) {
  json slice = MakeSlice(5);
  slice["spec"]["devices"][1]["taints"] = {MakeTaint("NoSchedule")};
  slice["spec"]["devices"][2]["taints"] = {MakeTaint("None")};
  Publish(slice);
  EXPECT_THAT(Devices({.name = "a", .requests = {{.count = 2}}}), ElementsAre("npu-0", "npu-2"));
  EXPECT_THAT(Devices({.name = "b", .requests = {{.name = "x"}, {.name = "y"}}}),
              ElementsAre("npu-3", "npu-4"));
  EXPECT_THAT(AllocateClaim(server_, {.name = "c"}),
              StatusIs(absl::StatusCode::kResourceExhausted));
  ASSERT_THAT(server_.Delete("resourceclaims", "default", "a"), IsOk());
  EXPECT_THAT(Devices({.name = "c"}), ElementsAre("npu-0"));
  EXPECT_EQ(Allocation("b")["devices"]["results"][1], json({{"request", "y"},
                                                            {"driver", "npu.huawei.com"},
                                                            {"pool", "node-1"},
                                                            {"device", "npu-4"}}));
  EXPECT_EQ(Allocation("b")["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"],
            json({"node-1"}));
}

TEST_F(AllocatorTest, NamedAndAdminDevicesMayBeHeld) {
  Publish(MakeSlice(2));
  EXPECT_THAT(Devices({.name = "a", .requests = {{.devices = {"npu-1", "npu-0"}}}}),
              ElementsAre("npu-1", "npu-0"));
  EXPECT_THAT(Devices({.name = "b", .requests = {{.devices = {"npu-1"}}}}), ElementsAre("npu-1"));
  EXPECT_THAT(Devices({.name = "m", .requests = {{.count = 2, .admin_access = true}}}),
              ElementsAre("npu-0", "npu-1"));
  EXPECT_EQ(Allocation("m")["devices"]["results"][0]["adminAccess"], true);
  EXPECT_THAT(AllocateClaim(server_, {.name = "x", .requests = {{.devices = {"npu-9"}}}}),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(AllocatorTest, SubrequestsConfigurationAndPods) {
  Publish(MakeSlice(1));
  EXPECT_THAT(Devices({.name = "a",
                       .requests = {{.name = "npu/large"}},
                       .config = {{.parameters = R"({"kind":"Own"})"},
                                  {.from_class = true, .requests = {"npu"}, .parameters = "{}"}},
                       .pods = {"job"}}),
              ElementsAre("npu-0"));
  EXPECT_EQ(Allocation("a")["devices"]["results"][0]["request"], "npu/large");
  const json config = Allocation("a")["devices"]["config"];
  ASSERT_EQ(config.size(), 2u);
  EXPECT_EQ(config[0]["source"], "FromClass");
  EXPECT_EQ(config[0]["requests"], json({"npu"}));
  EXPECT_EQ(config[1]["opaque"]["parameters"]["kind"], "Own");
  const json claim = *server_.Get("resourceclaims", "default", "a");
  EXPECT_EQ(claim["spec"]["devices"]["requests"][0]["firstAvailable"][0]["name"], "large");
  EXPECT_EQ(claim["status"]["reservedFor"][0]["name"], "job");
}

TEST_F(AllocatorTest, IncompleteAndOldPoolsAreNotUsed) {
  json half = MakeSlice(1, "half", "node-1");
  half["spec"]["pool"]["resourceSliceCount"] = 2;
  Publish(half);
  Publish(MakeSlice(1, "old", "node-2"));
  json newer = MakeSlice(0, "new", "node-2");
  newer["spec"]["pool"]["generation"] = 2;
  Publish(newer);
  EXPECT_THAT(AllocateClaim(server_, {.name = "a"}),
              StatusIs(absl::StatusCode::kResourceExhausted));
  Publish(MakeSlice(1, "third", "node-3"));
  EXPECT_THAT(Devices({.name = "a", .node_name = "node-3"}), ElementsAre("npu-0"));
}

}  // namespace
}  // namespace ascend::sim
