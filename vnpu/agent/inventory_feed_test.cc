#include "vnpu/agent/inventory_feed.h"

#include <atomic>
#include <thread>

#include "gmock/gmock.h"

namespace ascend::agent {
namespace {

using ::testing::IsEmpty;
using ::testing::MatchesRegex;

vnpu::Inventory WithChip(int physical_id) {
  return {.library = vnpu::LibraryState::kReady, .chips = {{.physical_id = physical_id}}};
}

TEST(InventoryFeedTest, StartsWithAnEmptyInventoryThatSaysSo) {
  InventoryFeed feed("instance");
  const auto current = feed.Current();
  ASSERT_NE(current, nullptr);
  EXPECT_EQ(current->revision, 1u);
  EXPECT_EQ(current->agent_instance, "instance");
  EXPECT_EQ(current->library, vnpu::LibraryState::kStarting);
  EXPECT_FALSE(current->library_message.empty());
  EXPECT_THAT(current->chips, IsEmpty());
}

TEST(InventoryFeedTest, RevisionGrowsOnlyWithTheContent) {
  InventoryFeed feed("instance");
  EXPECT_TRUE(feed.Publish(WithChip(0)));
  EXPECT_EQ(feed.Current()->revision, 2u);

  vnpu::Inventory same = WithChip(0);
  same.revision = 77;  // set by the feed
  same.agent_instance = "another";
  EXPECT_FALSE(feed.Publish(same));
  EXPECT_EQ(feed.Current()->revision, 2u);

  EXPECT_TRUE(feed.Publish(WithChip(1)));
  EXPECT_EQ(feed.Current()->revision, 3u);
  EXPECT_EQ(feed.Current()->agent_instance, "instance");
}

TEST(InventoryFeedTest, ASnapshotInUseDoesNotChange) {
  InventoryFeed feed("instance");
  feed.Publish(WithChip(0));
  const auto held = feed.Current();
  feed.Publish(WithChip(1));
  EXPECT_EQ(held->chips[0].physical_id, 0);
}

TEST(InventoryFeedTest, ListenersHearOfChangesUntilTheyUnsubscribe) {
  InventoryFeed feed("instance");
  int first = 0;
  int second = 0;
  const int64_t one = feed.Subscribe([&] { ++first; });
  feed.Subscribe([&] { ++second; });
  feed.Publish(WithChip(0));
  feed.Publish(WithChip(0));
  feed.Unsubscribe(one);
  feed.Publish(WithChip(1));
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
}

TEST(InventoryFeedTest, UnsubscribeWaitsForARunningListener) {
  InventoryFeed feed("instance");
  for (int i = 0; i < 100; ++i) {
    auto alive = std::make_unique<std::atomic<int>>(0);
    const int64_t subscription = feed.Subscribe([&alive] { ++*alive; });
    std::thread publisher([&] { feed.Publish(WithChip(i)); });
    feed.Unsubscribe(subscription);
    alive.reset();  // a listener that still runs would be a use after free
    publisher.join();
  }
}

TEST(InventoryFeedTest, WaitReturnsAtOnceForAnOldRevisionAndTimesOutForTheCurrentOne) {
  InventoryFeed feed("instance");
  EXPECT_EQ(feed.WaitNewerThan(0, absl::Hours(1))->revision, 1u);
  EXPECT_EQ(feed.WaitNewerThan(1, absl::Milliseconds(10))->revision, 1u);
}

TEST(InventoryFeedTest, WaitWakesUpOnAChange) {
  InventoryFeed feed("instance");
  std::thread publisher([&] { feed.Publish(WithChip(4)); });
  EXPECT_EQ(feed.WaitNewerThan(1, absl::Minutes(1))->chips.at(0).physical_id, 4);
  publisher.join();
}

TEST(InstanceIdTest, IsRandom) {
  EXPECT_THAT(NewInstanceId(), MatchesRegex("[0-9a-f]{16}"));
  EXPECT_NE(NewInstanceId(), NewInstanceId());
}

}  // namespace
}  // namespace ascend::agent
