// What others do to our slices, and a watch that lags behind or ends.
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/slices/publisher.h"
#include "kubeletplugin/testing/publisher_fixture.h"
#include "nlohmann/json.hpp"

namespace ascend::kubeletplugin {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// --- others touch our slices ---

TEST_F(PublisherTest, DeletedSlicesAreBackAtOnce) {  // SLC-09
  Instance& instance = Published(70);
  const std::vector<json> before = server_.Slices();
  const absl::Duration start = Monotonic();
  ASSERT_EQ(server_.DeleteSlices(kNode), 2);  // as a kubelet that starts
  ASSERT_THAT(server_.WaitForSlices([](const auto& slices) { return slices.size() == 2; }), IsOk());
  const absl::Duration took = Monotonic() - start;
  std::printf("deleted slices back after %s\n", absl::FormatDuration(took).c_str());
  EXPECT_LT(took, absl::Seconds(1));
  instance.Settle();
  const std::vector<json> after = server_.Slices();
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(before[i]["spec"], after[i]["spec"]);
  // One of two is back without a touch on the other.
  const int writes = server_.slice_writes();
  ASSERT_THAT(server_.Delete("resourceslices", "", after[1]["metadata"]["name"]), IsOk());
  EXPECT_TRUE(WaitForDevices(70));
  instance.Settle();
  EXPECT_EQ(server_.slice_writes(), writes + 2);  // the deletion and ours
}

TEST_F(PublisherTest, WhoDeletesAgainAndAgainIsAnsweredSlower) {
  SlicePublisher::Options options = Quick();
  options.min_backoff = absl::Milliseconds(20);
  options.max_backoff = absl::Seconds(10);
  Instance& instance = Published(1, options);
  const absl::Duration start = Monotonic();
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(server_.DeleteSlices(kNode), 1);
    instance.publisher().Wake();
    ASSERT_TRUE(WaitForDevices(1));
  }
  EXPECT_GE(Monotonic() - start, absl::Milliseconds(20 + 40 + 80 + 160 + 320));
}

TEST_F(PublisherTest, AReplacedNodeOwnsTheRestoredSlices) {
  Instance& instance = Published(1);
  ASSERT_THAT(server_.Delete("nodes", "", kNode), IsOk());
  ASSERT_EQ(server_.DeleteSlices(kNode), 1);  // as the garbage collector does
  EXPECT_TRUE(Eventually([&] { return !instance.publisher().ready().ok(); }));
  EXPECT_THAT(instance.publisher().ready(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(kNode)));
  EXPECT_EQ(Devices(), 0);  // it would be collected again at once
  const std::string uid = server_.AddNode(kNode);
  ASSERT_NE(uid, node_uid_);
  EXPECT_TRUE(WaitForDevices(1));
  EXPECT_EQ(server_.Slices()[0]["metadata"]["ownerReferences"][0]["uid"], uid);
}

TEST_F(PublisherTest, AForeignEditIsUndoneAfterAWhile) {  // SLC-09
  SlicePublisher::Options options = Quick();
  options.restore_edits_after = absl::Milliseconds(300);
  Instance& instance = Published(2, options);
  const absl::Duration start = Monotonic();
  Edit(0, "edited");
  instance.Settle();
  if (Monotonic() - start < absl::Milliseconds(300)) {
    EXPECT_EQ(Model(0), "edited");  // not at once
  }
  EXPECT_TRUE(Eventually([&] { return Model(0) == "910B3"; }));
  EXPECT_GE(Monotonic() - start, absl::Milliseconds(300));
}

TEST_F(PublisherTest, WakingUpDoesNotPutTheRestoreOff) {  // SLC-09
  SlicePublisher::Options options = Quick();
  options.restore_edits_after = absl::Milliseconds(200);
  Instance& instance = Published(70, options);
  Edit(1, "edited");
  EXPECT_TRUE(Eventually([&] {
    instance.publisher().Wake();
    return Model(1) == "910B3";
  }));
  EXPECT_EQ(server_.slice_writes(), 4);
}

TEST_F(PublisherTest, AnEditIsUndoneAtOnceWithAChangeOfOurOwn) {  // SLC-09
  SlicePublisher::Options options = Quick();
  options.restore_edits_after = absl::Hours(1);
  Instance& instance = Published(2, options);
  Edit(0, "edited");
  for (int i = 0; i < 5; ++i) instance.Settle();
  EXPECT_EQ(Model(0), "edited");
  instance.SetChips(Chips(3));
  EXPECT_TRUE(WaitForDevices(3));
  EXPECT_EQ(Model(0), "910B3");
}

TEST_F(PublisherTest, AnEditOfAnAdoptedSliceWaitsToo) {  // SLC-09
  SlicePublisher::Options options = Quick();
  options.restore_edits_after = absl::Hours(1);
  Published(2, options);
  instances_.clear();
  Instance& again = Published(2, options);  // found all as wanted, wrote nothing
  Edit(0, "edited");
  for (int i = 0; i < 5; ++i) again.Settle();
  EXPECT_EQ(Model(0), "edited");
}

TEST_F(PublisherTest, DeletesObsoleteSlices) {
  for (const char* name : {"node-1-npu.huawei.com-x7k2p", "00007-npu.huawei.com-node-1"}) {
    ASSERT_THAT(
        server_.Create({{"apiVersion", "resource.k8s.io/v1"},
                        {"kind", "ResourceSlice"},
                        {"metadata", {{"name", name}}},
                        {"spec",
                         {{"driver", kDriver},
                          {"nodeName", kNode},
                          {"pool", {{"name", kNode}, {"generation", 7}, {"resourceSliceCount", 2}}},
                          {"devices", json::array()}}}}),
        IsOk());
  }
  Instance& instance = Make();
  instance.SetChips(Chips(2));
  instance.Start();
  ASSERT_TRUE(instance.WaitUntilReady());
  ASSERT_THAT(server_.Slices(), SizeIs(1));
  EXPECT_GE(Generations()[0], 7);  // lower ones would be ignored
  instance.Settle();
  EXPECT_EQ(server_.slice_writes(), 2 + 3);
}

TEST_F(PublisherTest, ReplacesASliceOfAnotherPool) {
  const json slice = {
      {"apiVersion", "resource.k8s.io/v1"},
      {"kind", "ResourceSlice"},
      {"metadata", {{"name", "00000-npu.huawei.com-node-1"}}},
      {"spec",
       {{"driver", kDriver},
        {"nodeName", kNode},
        {"pool", {{"name", "old-pool"}, {"generation", 1}, {"resourceSliceCount", 1}}},
        {"devices", json::array()}}}};
  ASSERT_THAT(server_.Create(slice), IsOk());
  Instance& instance = Make();
  instance.SetChips(Chips(2));
  instance.Start();
  ASSERT_TRUE(instance.WaitUntilReady()) << instance.publisher().ready();
  ASSERT_THAT(server_.Slices(), SizeIs(1));
  EXPECT_EQ(server_.Slices()[0]["spec"]["pool"]["name"], kNode);
}

TEST_F(PublisherTest, SurvivesTheHighestGeneration) {
  Instance& instance = Published(70);
  json slice = server_.Slices()[0];
  slice["spec"]["pool"]["generation"] = std::numeric_limits<int64_t>::max();
  ASSERT_THAT(server_.Update(slice), IsOk());
  instance.Settle();
  instance.SetChips(Chips(70, "another"));
  EXPECT_TRUE(Eventually([&] { return Model(0) == "another" && Model(1) == "another"; }));
  EXPECT_TRUE(instance.WaitUntilReady());
}

TEST_F(PublisherTest, SlicesOfOthersAreLeftAlone) {
  for (const auto& [name, driver, node] :
       {std::tuple("a", "other.driver", kNode), {"b", kDriver, "node-2"}}) {
    ASSERT_THAT(
        server_.Create({{"apiVersion", "resource.k8s.io/v1"},
                        {"kind", "ResourceSlice"},
                        {"metadata", {{"name", name}}},
                        {"spec",
                         {{"driver", driver},
                          {"nodeName", node},
                          {"pool", {{"name", node}, {"generation", 1}, {"resourceSliceCount", 1}}},
                          {"devices", json::array()}}}}),
        IsOk());
  }
  Published(1);
  EXPECT_THAT(server_.Slices(), SizeIs(3));
}

// --- the watch ---

TEST_F(PublisherTest, LateEventsOfOurOwnWritesCauseNone) {
  Instance& instance = Published(70);
  instance.client().Hold();
  for (const char* model : {"a", "b", "c"}) {
    instance.SetChips(Chips(70, model));
    ASSERT_TRUE(Eventually([&] { return Model(0) == model && Model(1) == model; }));
  }
  instance.SetChips(Chips(1, "c"));  // deletes one
  ASSERT_TRUE(WaitForDevices(1));
  instance.Settle();
  const int writes = server_.slice_writes();
  const int requests = Count("");
  ASSERT_TRUE(instance.client().Release(8));
  for (int i = 0; i < 3; ++i) instance.Settle();
  EXPECT_EQ(server_.slice_writes(), writes);
  EXPECT_EQ(Count(""), requests);  // not even one that changes nothing
}

TEST_F(PublisherTest, AWatchThatEndsIsContinuedWithoutListing) {
  Instance& instance = Published(1);
  for (int i = 1; i <= 10; ++i) {
    ASSERT_TRUE(Eventually([&] {
      server_.CloseWatches();
      return Count("watch") > i;
    })) << i;
  }
  EXPECT_EQ(Count("list"), 1);
  // And what happened meanwhile is not missed.
  server_.CloseWatches();
  ASSERT_EQ(server_.DeleteSlices(kNode), 1);
  EXPECT_TRUE(WaitForDevices(1));
  instance.Settle();
  EXPECT_EQ(Count("list"), 1);
  EXPECT_THAT(instance.publisher().ready(), IsOk());
}

TEST_F(PublisherTest, ATooOldVersionIsListedAgain) {  // 410
  Published(1);
  ASSERT_TRUE(Eventually([&] { return server_.active_watches() == 1; }));
  const int id = server_.AddRule({.verb = "watch", .count = 1, .status = 503});
  server_.CloseWatches();
  server_.Compact();
  ASSERT_EQ(server_.DeleteSlices(kNode), 1);
  server_.Compact();
  EXPECT_TRUE(WaitForDevices(1));
  EXPECT_LE(Count("list"), 3);
  server_.RemoveRule(id);
}

TEST_F(PublisherTest, AForbiddenWatchCausesNoStorm) {
  SlicePublisher::Options options = Quick();
  options.max_backoff = absl::Hours(1);
  options.min_backoff = absl::Milliseconds(20);
  server_.AddRule({.verb = "watch", .status = 403});
  Instance& instance = Make(options);
  instance.SetChips(Chips(2));
  instance.Start();
  ASSERT_TRUE(instance.WaitUntilReady());  // it can publish nevertheless
  const absl::Duration start = Monotonic();
  while (Monotonic() - start < absl::Milliseconds(500)) instance.Settle();
  EXPECT_LE(Count("list"), 8);  // 20, 40, 80, 160, 320 ms apart
  EXPECT_LE(Count("watch"), 8);
  EXPECT_EQ(server_.slice_writes(), 1);
}

}  // namespace
}  // namespace ascend::kubeletplugin
