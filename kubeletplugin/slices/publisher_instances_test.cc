// Several instances of the driver on one node.
#include <cstdio>

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/kube/rest_client.h"
#include "kubeletplugin/slices/publisher.h"
#include "kubeletplugin/testing/publisher_fixture.h"
#include "test/sim/api_server.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::HasSubstr;

TEST_F(PublisherTest, TheNewestPublishesAndTheOlderStepsBack) {  // SLC-09
  Instance& old_one = Make(Quick(), "old");
  old_one.SetChips(Chips(2, "old"));
  old_one.Start();
  ASSERT_TRUE(old_one.WaitUntilReady());

  Instance& new_one = Make(Quick(), "new");
  new_one.Start();
  new_one.Settle();
  // It does not know its chips yet, so the old one goes on.
  EXPECT_FALSE(new_one.publisher().ready().ok());
  ASSERT_EQ(server_.DeleteSlices(kNode), 1);
  EXPECT_TRUE(WaitForDevices(2));
  EXPECT_EQ(Model(0), "old");

  const absl::Duration start = Monotonic();
  new_one.SetChips(Chips(2, "new"));
  EXPECT_TRUE(Eventually([&] { return Model(0) == "new"; }));
  std::printf("handed over after %s\n", absl::FormatDuration(Monotonic() - start).c_str());
  ASSERT_TRUE(new_one.WaitUntilReady());
  EXPECT_TRUE(old_one.WaitUntilReady());  // the newer one's business now
  EXPECT_EQ(Count("delete"), 0);          // no gap

  server_.ClearRequests();
  old_one.SetChips(Chips(3, "old"));
  for (int i = 0; i < 3; ++i) {
    old_one.Settle();
    new_one.Settle();
  }
  ASSERT_EQ(server_.DeleteSlices(kNode), 1);
  EXPECT_TRUE(WaitForDevices(2));
  EXPECT_EQ(Model(0), "new");
  for (const sim::RecordedRequest& request : server_.Requests()) {
    EXPECT_EQ(request.user_agent, "new") << request.verb;
  }
}

TEST_F(PublisherTest, TheOlderFollowsWhenTheNewestEnds) {  // SLC-09
  SlicePublisher::Options options = Quick();
  options.restore_edits_after = absl::Hours(1);
  Instance& old_one = Published(2, options);
  Instance& new_one = Make(options);
  new_one.SetChips(Chips(2, "new"));
  new_one.Start();
  EXPECT_TRUE(Eventually([&] { return Model(0) == "new"; }));
  new_one.Stop();
  // What the other wrote is no foreign edit: at once.
  EXPECT_TRUE(Eventually([&] { return Model(0) == "910B3"; }));
  EXPECT_TRUE(old_one.WaitUntilReady());
}

TEST_F(PublisherTest, TheMiddleOneOfThreeIsReadyAndSilent) {
  Instance& first = Make(Quick(), "first");
  Instance& second = Make(Quick(), "second");
  Instance& third = Make(Quick(), "third");
  for (Instance* instance : {&third, &second, &first}) {
    instance->SetChips(Chips(1, instance == &third ? "third" : "other"));
    instance->Start();
    ASSERT_TRUE(instance->WaitUntilReady());
  }
  EXPECT_EQ(Model(0), "third");
  EXPECT_EQ(server_.slice_writes(), 1);
}

TEST_F(PublisherTest, AMissingRoleDirectoryIsAnError) {
  auto client = kube::CreateRestClient({.server = server_.url()}, "test");
  ASSERT_THAT(client, IsOk());
  SlicePublisher publisher(Quick(), **client, PublisherRole(roles_.File("missing"), 1), [] {
    SlicePublisher::Wanted wanted;
    wanted.known = true;
    return wanted;
  });
  publisher.Start();
  EXPECT_TRUE(Eventually([&] { return absl::IsNotFound(publisher.ready()); }));
  EXPECT_THAT(publisher.ready(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("missing")));
}

}  // namespace
}  // namespace ascend::kubeletplugin
