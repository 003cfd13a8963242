#include "kubeletplugin/slices/publisher.h"

#include <utility>
#include <vector>

#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/testing/judged.h"
#include "kubeletplugin/testing/publisher_fixture.h"
#include "nlohmann/json.hpp"

namespace ascend::kubeletplugin {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// --- the plain way ---

TEST_F(PublisherTest, PublishesOnce) {  // SLC-08
  Instance& instance = Make();
  EXPECT_THAT(instance.publisher().ready(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("not published yet")));
  instance.SetChips(Chips(3));
  instance.Start();
  ASSERT_TRUE(instance.WaitUntilReady());

  const std::vector<json> slices = server_.Slices();
  ASSERT_THAT(slices, SizeIs(1));
  EXPECT_EQ(slices[0]["metadata"]["name"], "00000-npu.huawei.com-node-1");
  EXPECT_EQ(slices[0]["metadata"]["ownerReferences"][0]["uid"], node_uid_);
  EXPECT_THAT(DeviceNames(), ElementsAre("npu-0", "npu-1", "npu-2"));
  EXPECT_EQ(Generation(slices[0]), 1);
  EXPECT_EQ(Count("create"), 1);
  EXPECT_EQ(Count("list"), 1);
  EXPECT_EQ(Count("get"), 1);  // the node
  EXPECT_EQ(Count("update"), 0);
}

TEST_F(PublisherTest, WritesNothingWhenNothingChanged) {
  Instance& instance = Published(3);
  for (int i = 0; i < 100; ++i) instance.Settle();
  EXPECT_EQ(server_.slice_writes(), 1);
  EXPECT_EQ(Count("list"), 1);
  EXPECT_EQ(Count("watch"), 1);
}

TEST_F(PublisherTest, ARestartWritesNothing) {  // SLC-10
  Published(70);
  ASSERT_EQ(server_.slice_writes(), 2);
  instances_.clear();
  EXPECT_EQ(Devices(), 70);  // an ordinary stop leaves them alone
  Instance& again = Published(70);
  again.Settle();
  EXPECT_EQ(server_.slice_writes(), 2);
}

TEST_F(PublisherTest, AnEmptyPoolIsPublishedToo) {  // SLC-07
  Instance& instance = Published(0);
  ASSERT_THAT(server_.Slices(), SizeIs(1));
  instance.SetChips(Chips(2));
  EXPECT_TRUE(WaitForDevices(2));
}

TEST_F(PublisherTest, WaitsUntilItKnowsWhatToPublish) {  // SLC-07, SLC-08
  Instance& instance = Make();
  instance.Set([](SlicePublisher::Wanted& wanted) { wanted.unknown_because = "no agent"; });
  instance.Start();
  instance.Settle();
  EXPECT_THAT(instance.publisher().ready(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no agent")));
  EXPECT_EQ(server_.slice_writes(), 0);
  instance.SetChips(Chips(1));
  EXPECT_TRUE(instance.WaitUntilReady());
  // What is on the server stays while it is unknown again.
  instance.Set([](SlicePublisher::Wanted& wanted) {
    wanted.known = false;
    wanted.inputs.inventory = nullptr;
    wanted.unknown_because = "claim records cannot be read";
  });
  instance.Settle();
  EXPECT_THAT(instance.publisher().ready(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("claim records")));
  EXPECT_EQ(Devices(), 1);
}

TEST_F(PublisherTest, AsksAgainWhenToldTo) {
  Instance& instance = Published(1);
  instance.Set(
      [](SlicePublisher::Wanted& wanted) { wanted.ask_again_after = absl::Milliseconds(10); });
  const int before = Count("");
  instance.Settle();
  EXPECT_EQ(Count(""), before);  // asking costs the server nothing
}

// --- changes ---

TEST_F(PublisherTest, OneChangedSliceKeepsTheGeneration) {
  Instance& instance = Published(70);
  EXPECT_THAT(Generations(), ElementsAre(1, 1));
  std::vector<vnpu::Chip> chips = Chips(70);
  chips[0].model = "another";
  instance.SetChips(chips);
  EXPECT_TRUE(Eventually([&] { return Model(0) == "another"; }));
  instance.Settle();
  EXPECT_THAT(Generations(), ElementsAre(1, 1));
  EXPECT_EQ(server_.slice_writes(), 3);
}

TEST_F(PublisherTest, SeveralChangedSlicesGetANewGeneration) {
  Instance& instance = Published(70);
  instance.SetChips(Chips(70, "another"));
  EXPECT_TRUE(Eventually([&] { return Generations() == std::vector<int64_t>{2, 2}; }));
  EXPECT_EQ(Model(0), "another");
  EXPECT_EQ(Model(1), "another");
  instance.Settle();
  EXPECT_EQ(server_.slice_writes(), 4);
}

TEST_F(PublisherTest, GrowsAndShrinks) {  // SLC-01
  Instance& instance = Published(64);
  for (const auto& [chips, slices] : {std::pair<int, size_t>(65, 2), {129, 3}, {3, 1}, {0, 1}}) {
    instance.SetChips(Chips(chips));
    EXPECT_TRUE(Eventually([&] { return server_.Slices().size() == slices && Devices() == chips; }))
        << chips;
    ASSERT_TRUE(instance.WaitUntilReady());
    for (const json& slice : server_.Slices()) {
      EXPECT_EQ(slice["spec"]["pool"]["resourceSliceCount"], slices);
      EXPECT_EQ(Generation(slice), Generations()[0]);
    }
  }
}

TEST_F(PublisherTest, ATaintIsOneWriteWithoutANewGeneration) {
  Instance& instance = Published(70);
  std::vector<vnpu::Chip> chips = Chips(70);
  chips[1].health = vnpu::Health::kCritical;
  instance.SetChips(chips);
  EXPECT_TRUE(
      Eventually([&] { return server_.Slices()[0]["spec"]["devices"][1].contains("taints"); }));
  instance.Settle();
  EXPECT_EQ(server_.slice_writes(), 3);
  EXPECT_THAT(Generations(), ElementsAre(1, 1));
  const json taint = server_.Slices()[0]["spec"]["devices"][1]["taints"][0];
  EXPECT_EQ(taint["value"], "critical");

  // Another taint beside it: the time of the first one stays.
  chips[2].health = vnpu::Health::kMajor;
  instance.SetChips(chips);
  EXPECT_TRUE(
      Eventually([&] { return server_.Slices()[0]["spec"]["devices"][2].contains("taints"); }));
  EXPECT_EQ(server_.Slices()[0]["spec"]["devices"][1]["taints"][0], taint);

  instance.SetChips(Chips(70));  // and back
  EXPECT_TRUE(
      Eventually([&] { return !server_.Slices()[0]["spec"]["devices"][1].contains("taints"); }));
  instance.Settle();
  EXPECT_EQ(server_.slice_writes(), 5);
  EXPECT_THAT(Generations(), ElementsAre(1, 1));
}

TEST_F(PublisherTest, TaintsInSeveralSlicesNeedNoNewGeneration) {
  Instance& instance = Published(70);
  instance.Set([](SlicePublisher::Wanted& wanted) {
    wanted.inputs.health = Judge(*wanted.inputs.inventory, /*agent_known=*/false);
  });
  EXPECT_TRUE(
      Eventually([&] { return server_.Slices()[1]["spec"]["devices"][5].contains("taints"); }));
  instance.Settle();
  EXPECT_EQ(server_.slice_writes(), 4);
  EXPECT_THAT(Generations(), ElementsAre(1, 1));
}

TEST_F(PublisherTest, TellsWhatItDid) {
  Mutex mutex;
  std::vector<PublishReport::Event> events;
  int64_t generation = 0;
  size_t devices = 0;
  SlicePublisher::Options options = Quick();
  options.observe = [&](const PublishReport& report) {
    MutexLock lock(&mutex);
    events.push_back(report.event);
    if (report.event != PublishReport::Event::kCurrent) return;
    generation = report.generation;
    devices = 0;
    for (const auto& [name, slice] : *report.slices) devices += slice.devices.size();
  };
  Instance& instance = Published(3, options);
  // It is ready a moment before it tells so, and the watch may already have shown it its own write.
  EXPECT_TRUE(Eventually([&] {
    MutexLock lock(&mutex);
    return events.size() >= 2;
  }));
  size_t told = 0;
  {
    MutexLock lock(&mutex);
    EXPECT_EQ(events[0], PublishReport::Event::kWritten);
    EXPECT_EQ(events[1], PublishReport::Event::kCurrent);
    EXPECT_EQ(generation, 1);
    EXPECT_EQ(devices, 3u);
    told = events.size();
  }
  // A look that finds nothing to do is told too.
  instance.Settle();
  EXPECT_TRUE(Eventually([&] {
    MutexLock lock(&mutex);
    return events.size() > told;
  }));
  {
    MutexLock lock(&mutex);
    EXPECT_EQ(events.back(), PublishReport::Event::kCurrent);
  }
  // A newer instance takes over.
  Published(3);
  EXPECT_TRUE(Eventually([&] {
    MutexLock lock(&mutex);
    return events.back() == PublishReport::Event::kNotPublisher;
  }));
  instance.publisher().Stop();  // it reports to what ends here
}

}  // namespace
}  // namespace ascend::kubeletplugin
