// Servers that do not store all fields of a slice.
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/slices/publisher.h"
#include "kubeletplugin/testing/publisher_fixture.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// --- servers without taints ---

class NoTaintsTest : public PublisherTest {
 protected:
  NoTaintsTest() : PublisherTest({.device_taints = false}) {}
};

TEST_F(NoTaintsTest, SickChipsAreWithheldUnlessHeld) {  // SLC-12
  Instance& instance = Published(4);
  ::testing::internal::CaptureStderr();
  std::vector<vnpu::Chip> chips = Chips(4);
  chips[1].health = chips[2].health = vnpu::Health::kCritical;
  instance.Set([](SlicePublisher::Wanted& wanted) { wanted.inputs.records = {RecordOf(2)}; });
  instance.SetChips(chips);
  EXPECT_TRUE(Eventually(
      [&] { return DeviceNames() == std::vector<std::string>{"npu-0", "npu-2", "npu-3"}; }));
  ASSERT_TRUE(instance.WaitUntilReady());
  for (int i = 0; i < 10; ++i) instance.Settle();
  const int writes = server_.slice_writes();
  for (int i = 0; i < 20; ++i) instance.Settle();
  EXPECT_EQ(server_.slice_writes(), writes);  // no loop
  EXPECT_LE(writes, 4);
  EXPECT_EQ(Generations()[0], 1);

  instance.SetChips(Chips(4));  // well again
  EXPECT_TRUE(WaitForDevices(4));
  chips[3].health = vnpu::Health::kMajor;  // and known from now on: one write
  instance.Settle();
  const int before = server_.slice_writes();
  instance.SetChips(chips);
  EXPECT_TRUE(WaitForDevices(2));
  instance.Settle();
  EXPECT_EQ(server_.slice_writes(), before + 1);

  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::vector<std::string> parts = absl::StrSplit(log, "DRADeviceTaints");
  EXPECT_THAT(parts, SizeIs(2)) << log;  // said once
}

// The last old server of an upgrade answered once.
TEST_F(NoTaintsTest, TaintsAreBackWithAServerThatKeepsThem) {  // SLC-12
  SlicePublisher::Options options = Quick();
  options.retry_taints_after = absl::ZeroDuration();
  Instance& instance = Published(3, options);
  std::vector<vnpu::Chip> chips = Chips(3);
  chips[1].health = vnpu::Health::kCritical;
  instance.SetChips(chips);
  // Tried a second time at once: the first watch began before.
  ASSERT_TRUE(Eventually([&] { return server_.slice_writes() == 4; }));
  ASSERT_TRUE(WaitForDevices(2));
  server_.SetFeatures(/*device_taints=*/true, /*partitionable_devices=*/true);
  for (int i = 0; i < 10; ++i) instance.Settle();
  EXPECT_EQ(Devices(), 2);  // nothing told of it

  server_.CloseWatches();
  ASSERT_TRUE(WaitForDevices(3));
  instance.Settle();
  EXPECT_TRUE(server_.Slices()[0]["spec"]["devices"][1].contains("taints"));
  EXPECT_EQ(server_.slice_writes(), 5);
  chips[2].health = vnpu::Health::kCritical;  // and so it stays
  instance.SetChips(chips);
  EXPECT_TRUE(
      Eventually([&] { return server_.Slices()[0]["spec"]["devices"][2].contains("taints"); }));
  EXPECT_EQ(server_.slice_writes(), 6);
}

TEST_F(NoTaintsTest, AServerThatKeepsDroppingThemIsTriedOncePerWatch) {  // SLC-12
  SlicePublisher::Options options = Quick();
  options.retry_taints_after = absl::ZeroDuration();
  Instance& instance = Published(3, options);
  std::vector<vnpu::Chip> chips = Chips(3);
  chips[1].health = vnpu::Health::kCritical;
  instance.SetChips(chips);
  int writes = 4;  // the first one with the taint changes nothing
  for (int watch = 0; watch < 3; ++watch) {
    ASSERT_TRUE(Eventually([&] { return server_.slice_writes() >= writes; })) << watch;
    for (int i = 0; i < 20; ++i) instance.Settle();
    EXPECT_EQ(server_.slice_writes(), writes) << watch;
    EXPECT_EQ(DeviceNames(), (std::vector<std::string>{"npu-0", "npu-2"})) << watch;
    ASSERT_TRUE(Eventually([&] { return server_.active_watches() == 1; }));
    server_.CloseWatches();
    writes += 2;  // with the taint, and without the device again
  }
}

TEST_F(NoTaintsTest, WatchesThatEndDoNotHurryIt) {  // SLC-12
  Instance& instance = Published(3);                // a minute
  std::vector<vnpu::Chip> chips = Chips(3);
  chips[1].health = vnpu::Health::kCritical;
  instance.SetChips(chips);
  ASSERT_TRUE(Eventually([&] { return server_.slice_writes() == 2; }));
  for (int i = 1; i <= 3; ++i) {
    const int watches = Count("watch");
    ASSERT_TRUE(Eventually([&] {
      server_.CloseWatches();
      return Count("watch") > watches;
    }));
    instance.Settle();
  }
  EXPECT_EQ(server_.slice_writes(), 2);
}

// Held devices keep their taints in the plan: that the server stored one is proof.
TEST_F(NoTaintsTest, AStoredTaintIsProof) {  // SLC-12
  Instance& instance = Published(3);
  std::vector<vnpu::Chip> chips = Chips(3);
  chips[1].health = vnpu::Health::kCritical;
  instance.Set([](SlicePublisher::Wanted& wanted) { wanted.inputs.records = {RecordOf(2)}; });
  instance.SetChips(chips);
  ASSERT_TRUE(WaitForDevices(2));
  server_.SetFeatures(/*device_taints=*/true, /*partitionable_devices=*/true);
  chips[2].health = vnpu::Health::kCritical;
  instance.SetChips(chips);
  ASSERT_TRUE(WaitForDevices(3));
  EXPECT_TRUE(server_.Slices()[0]["spec"]["devices"][1].contains("taints"));
}

// --- servers without counters ---

class NoCountersTest : public PublisherTest {
 protected:
  NoCountersTest() : PublisherTest({.partitionable_devices = false}) {}

  Instance& PublishedParts(const SlicePublisher::Options& options) {
    Instance& instance = Make(options);
    instance.Set([](SlicePublisher::Wanted& wanted) {
      wanted.inputs.devices.vnpu_mode = VnpuMode::kDynamic;
    });
    std::vector<vnpu::Chip> chips = Chips(2);
    for (vnpu::Chip& chip : chips) {
      chip.board_id = 0x33;
      chip.aicore_count = 20;
      chip.memory_mib = 32768;
      chip.partitioning.emplace();
    }
    instance.SetChips(chips);
    instance.Start();
    EXPECT_TRUE(instance.WaitUntilReady());
    return instance;
  }
};

// Parts without counters would be handed out beside the whole chip.
TEST_F(NoCountersTest, ChipsAreOfferedWhole) {  // SLC-12
  ::testing::internal::CaptureStderr();
  Instance& instance = PublishedParts(Quick());
  for (int i = 0; i < 10; ++i) instance.Settle();
  EXPECT_EQ(DeviceNames(), (std::vector<std::string>{"npu-0", "npu-1"}));
  const int writes = server_.slice_writes();
  for (int i = 0; i < 20; ++i) instance.Settle();
  EXPECT_EQ(server_.slice_writes(), writes);  // no loop
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("counters (feature gate DRAPartitionableDevices)"));
  EXPECT_THAT(log, HasSubstr("chips are offered whole only"));
}

TEST_F(NoCountersTest, PartsComeWithAServerThatKeepsThem) {  // SLC-12
  SlicePublisher::Options options = Quick();
  options.retry_counters_after = absl::ZeroDuration();
  Instance& instance = PublishedParts(options);
  for (int i = 0; i < 10; ++i) instance.Settle();
  EXPECT_EQ(Devices(), 2);
  server_.SetFeatures(/*device_taints=*/true, /*partitionable_devices=*/true);
  server_.CloseWatches();
  ASSERT_TRUE(Eventually([&] { return Devices() > 2; }));
  instance.Settle();
  bool counters = false;
  for (const auto& slice : server_.Slices()) {
    counters = counters || slice["spec"].contains("sharedCounters");
  }
  EXPECT_TRUE(counters);
}

}  // namespace
}  // namespace ascend::kubeletplugin
