// Claims from allocation to release, as kubelet and containers see them.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "cdi/json.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "test/integration/driver_fixture.h"

namespace ascend::integration {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::vector<std::string> kEight = {"npu-0", "npu-1", "npu-2", "npu-3",
                                         "npu-4", "npu-5", "npu-6", "npu-7"};

class ClaimsTest : public DriverTest {
 protected:
  cdi::Spec ReadSpec(const sim::ClaimRef& claim) {
    const auto text = ReadFile(CdiFile(claim));
    EXPECT_THAT(text, IsOk());
    const auto spec = cdi::ReadJson(text.ok() ? *text : "");
    EXPECT_THAT(spec, IsOk());
    return spec.ok() ? *spec : cdi::Spec{};
  }

  // The chip nodes that a container with these CDI ids gets.
  std::vector<std::string> ChipNodes(const sim::ClaimRef& claim,
                                     const std::vector<std::string>& cdi_ids) {
    const cdi::Spec spec = ReadSpec(claim);
    std::vector<std::string> nodes;
    for (const cdi::Device& device : spec.devices) {
      const std::string id = absl::StrCat(spec.kind, "=", device.name);
      if (std::find(cdi_ids.begin(), cdi_ids.end(), id) == cdi_ids.end()) continue;
      for (const auto& node : device.container_edits.device_nodes) nodes.push_back(node.path);
    }
    return nodes;
  }
};

TEST_F(ClaimsTest, OneChipFromAllocationToRelease) {
  StartNode();
  if (IsSkipped()) return;
  EXPECT_THAT(Published(), kEight);
  const sim::ClaimRef claim = Allocate("one");
  const auto prepared = kubelet().Prepare({claim});
  ASSERT_THAT(prepared, IsOk());
  const auto& devices = prepared->at(claim.uid);
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_EQ(devices[0].pool, "mock-node");
  EXPECT_EQ(devices[0].device, claim.devices[0]);
  EXPECT_THAT(devices[0].requests, ElementsAre("npu"));
  EXPECT_THAT(ChipNodes(claim, sim::ContainerCdiIds(devices, "npu")), ElementsAre("/dev/davinci0"));

  const cdi::Spec spec = ReadSpec(claim);
  EXPECT_EQ(spec.version, "0.5.0");
  EXPECT_THAT(spec.container_edits.env, ElementsAre("ASCEND_VISIBLE_DEVICES=void"));
  EXPECT_THAT(spec.container_edits.hooks, IsEmpty());

  ASSERT_THAT(kubelet().Unprepare({claim}), IsOk());
  EXPECT_FALSE(HasCdiFile(claim));
  // Both are idempotent.
  EXPECT_THAT(kubelet().Unprepare({claim}), IsOk());
}

TEST_F(ClaimsTest, WholeNodeInAscendingOrderAndNothingLeftForANinth) {
  StartNode();
  if (IsSkipped()) return;
  const sim::ClaimRef claim = Allocate(
      "eight",
      {{.devices = {"npu-5", "npu-4", "npu-7", "npu-6", "npu-0", "npu-3", "npu-2", "npu-1"}}});
  const auto prepared = kubelet().Prepare({claim});
  ASSERT_THAT(prepared, IsOk());
  std::vector<std::string> names;
  for (const auto& device : prepared->at(claim.uid)) names.push_back(device.device);
  EXPECT_EQ(names, kEight);
  EXPECT_THAT(sim::AllocateClaim(api(), {.name = "ninth"}),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(ClaimsTest, EachRequestGetsOnlyItsOwnChips) {
  StartNode();
  if (IsSkipped()) return;
  const sim::ClaimRef claim =
      Allocate("two", {{.name = "left", .count = 1}, {.name = "right/big", .count = 2}});
  const auto prepared = kubelet().Prepare({claim});
  ASSERT_THAT(prepared, IsOk());
  const auto& devices = prepared->at(claim.uid);
  EXPECT_THAT(ChipNodes(claim, sim::ContainerCdiIds(devices, "left")),
              ElementsAre("/dev/davinci0"));
  // Subrequests are answered under the name of their request.
  EXPECT_THAT(ChipNodes(claim, sim::ContainerCdiIds(devices, "right")),
              ElementsAre("/dev/davinci1", "/dev/davinci2"));
}

TEST_F(ClaimsTest, AnOlderKubeletSpeaksV1beta1) {
  sim::StackOptions options;
  options.kubelet_services = {"v1beta1.DRAPlugin"};
  StartNode(options);
  if (IsSkipped()) return;
  ASSERT_THAT(kubelet().instances(), SizeIs(1));
  EXPECT_EQ(kubelet().instances()[0].service, "v1beta1.DRAPlugin");
  const sim::ClaimRef claim = Allocate("old");
  EXPECT_THAT(kubelet().Prepare({claim}), IsOk());
  EXPECT_TRUE(HasCdiFile(claim));
  EXPECT_THAT(kubelet().Unprepare({claim}), IsOk());
  EXPECT_FALSE(HasCdiFile(claim));
}

TEST_F(ClaimsTest, ABatchIsAnsweredClaimByClaim) {
  StartNode();
  if (IsSkipped()) return;
  const sim::ClaimRef good = Allocate("good");
  const sim::ClaimRef gone = {.name = "gone", .uid = "11111111-2222-4333-8444-555555555555"};
  const auto answers = kubelet().CallPrepare({good, gone});
  ASSERT_THAT(answers, IsOk());
  ASSERT_THAT(*answers, SizeIs(2));
  EXPECT_EQ(answers->at(good.uid).error, "");
  EXPECT_THAT(answers->at(gone.uid).error, HasSubstr("default/gone"));
  const auto empty = kubelet().CallPrepare({});
  ASSERT_THAT(empty, IsOk());
  EXPECT_THAT(*empty, IsEmpty());
}

TEST_F(ClaimsTest, ARepeatedPrepareAnswersTheSameAndRestoresTheFile) {
  StartNode();
  if (IsSkipped()) return;
  const sim::ClaimRef claim = Allocate("again", {{.count = 2}});
  const auto first = kubelet().CallPrepare({claim});
  ASSERT_THAT(first, IsOk());
  const auto bytes = ReadFile(CdiFile(claim));
  ASSERT_THAT(bytes, IsOk());
  ASSERT_EQ(::unlink(CdiFile(claim).c_str()), 0);
  const auto second = kubelet().CallPrepare({claim});
  ASSERT_THAT(second, IsOk());
  const auto ids = [&](const sim::Answers& answers) {
    std::vector<std::string> all;
    for (const auto& device : answers.at(claim.uid).devices) {
      all.insert(all.end(), device.cdi_device_ids.begin(), device.cdi_device_ids.end());
    }
    return all;
  };
  EXPECT_EQ(ids(*first), ids(*second));
  EXPECT_THAT(ReadFile(CdiFile(claim)), IsOkAndHolds(*bytes));
}

TEST_F(ClaimsTest, AHeldChipIsRefusedToAnotherClaimButNotToAMonitor) {
  StartNode();
  if (IsSkipped()) return;
  const sim::ClaimRef first = Allocate("first", {{.devices = {"npu-3"}}});
  ASSERT_THAT(kubelet().Prepare({first}), IsOk());
  const sim::ClaimRef monitor = Allocate("monitor", {{.devices = {"npu-3"}, .admin_access = true}});
  EXPECT_THAT(kubelet().Prepare({monitor}), IsOk());
  // The scheduler gave the chip away too early (a force-deleted pod): the first holder's release
  // inside the waiting time is enough.
  const sim::ClaimRef second = Allocate("second", {{.devices = {"npu-3"}}});
  std::thread release([&] { EXPECT_THAT(kubelet().Unprepare({first}), IsOk()); });
  EXPECT_THAT(kubelet().Prepare({second}), IsOk());
  release.join();
  EXPECT_THAT(kubelet().Unprepare({monitor}), IsOk());
  EXPECT_TRUE(HasCdiFile(second));
}

TEST_F(ClaimsTest, ForeignDriversOfAClaimAreLeftAlone) {
  StartNode();
  if (IsSkipped()) return;
  sim::ClaimRef claim = Allocate("mixed");
  auto object = api().Get("resourceclaims", "default", "mixed");
  ASSERT_THAT(object, IsOk());
  auto& allocation = (*object)["status"]["allocation"]["devices"];
  allocation["results"].push_back({{"request", "npu"},
                                   {"driver", "gpu.example.com"},
                                   {"pool", "mock-node"},
                                   {"device", "npu-5"}});
  allocation["config"].push_back(
      {{"source", "FromClaim"},
       {"opaque", {{"driver", "gpu.example.com"}, {"parameters", {{"anything", 1}}}}}});
  ASSERT_THAT(api().Update(*object), IsOk());
  const auto prepared = kubelet().Prepare({claim});
  ASSERT_THAT(prepared, IsOk());
  ASSERT_THAT(prepared->at(claim.uid), SizeIs(1));
  EXPECT_EQ(prepared->at(claim.uid)[0].device, claim.devices[0]);
}

TEST_F(ClaimsTest, ModulesOfTwoDies) {
  StartNode({.mock_node = "16xA3"});
  if (IsSkipped()) return;
  EXPECT_THAT(Published(), SizeIs(8));
  EXPECT_THAT(Published(), Contains("npu-14-15"));
  const sim::ClaimRef claim = Allocate("module");
  const auto prepared = kubelet().Prepare({claim});
  ASSERT_THAT(prepared, IsOk());
  EXPECT_THAT(ChipNodes(claim, sim::ContainerCdiIds(prepared->at(claim.uid))),
              ElementsAre("/dev/davinci0", "/dev/davinci1"));
}

// Every shipped mock node: published, prepared, and its file passes the strict reader.
class EveryNodeTest : public ClaimsTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(EveryNodeTest, AClaimForAllDevices) {
  StartNode({.mock_node = GetParam()});
  if (IsSkipped()) return;
  const std::vector<std::string> names = Published();
  ASSERT_FALSE(names.empty());
  const sim::ClaimRef claim = Allocate("all", {{.count = static_cast<int>(names.size())}});
  const auto prepared = kubelet().Prepare({claim});
  ASSERT_THAT(prepared, IsOk());
  EXPECT_THAT(prepared->at(claim.uid), SizeIs(names.size()));
  const std::vector<std::string> nodes =
      ChipNodes(claim, sim::ContainerCdiIds(prepared->at(claim.uid)));
  EXPECT_EQ(std::set<std::string>(nodes.begin(), nodes.end()).size(), nodes.size());
  for (const std::string& node : nodes) {
    EXPECT_EQ(::access(HostPath(node).c_str(), F_OK), 0) << node;
  }
  EXPECT_THAT(kubelet().Unprepare({claim}), IsOk());
}

INSTANTIATE_TEST_SUITE_P(Mock, EveryNodeTest,
                         ::testing::Values("8x910A", "8x910B1", "8x910B2", "8x910B3", "8x910B4",
                                           "16x910B2C", "16xA3", "4x310P3", "2x300IDuo",
                                           "2x300I-sparse", "1x950PR"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace ascend::integration
