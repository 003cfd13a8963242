// A server in trouble.
#include <string>

#include "absl/strings/match.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/slices/publisher.h"
#include "kubeletplugin/testing/publisher_fixture.h"
#include "test/sim/api_server.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::HasSubstr;

TEST_F(PublisherTest, TriesAgainAfterErrors) {
  Instance& instance = Published(2);
  int chips = 2;
  for (const int status : {400, 403, 404, 409, 410, 422, 429, 500, 503}) {
    SCOPED_TRACE(status);
    server_.AddRule({.verb = "update", .count = 2, .status = status, .message = "no"});
    instance.SetChips(Chips(++chips));
    EXPECT_TRUE(Eventually([&] { return !instance.publisher().ready().ok(); }));
    EXPECT_TRUE(WaitForDevices(chips));
    EXPECT_TRUE(instance.WaitUntilReady());
  }
}

TEST_F(PublisherTest, NotReadyWhileWritesAreRefused) {  // SLC-08
  server_.AddRule({.verb = "create", .status = 422, .message = "devices: Invalid value"});
  Instance& instance = Make();
  instance.SetChips(Chips(1));
  instance.Start();
  ASSERT_THAT(server_.WaitForRequests("create", sim::kSlicesPath, 2), IsOk());
  EXPECT_THAT(instance.publisher().ready(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("devices: Invalid value")));
  server_.ClearRules();
  EXPECT_TRUE(instance.WaitUntilReady());
}

TEST_F(PublisherTest, EveryStepOfTheStartIsTriedAgain) {
  for (const char* verb : {"get", "list", "create"}) {
    server_.AddRule({.verb = verb, .count = 2, .status = 500});
  }
  Published(2);
}

TEST_F(PublisherTest, RespectsRetryAfterWhateverWakesIt) {
  Instance& instance = Published(1);
  server_.AddRule({.verb = "update", .count = 1, .status = 429, .retry_after = 1});
  const absl::Duration start = Monotonic();
  instance.SetChips(Chips(2));
  ASSERT_THAT(server_.WaitForRequests("update", sim::kSlicesPath, 1), IsOk());
  EXPECT_TRUE(Eventually([&] {
    instance.publisher().Wake();
    return Devices() == 2;
  }));
  EXPECT_GE(Monotonic() - start, absl::Seconds(1));
  EXPECT_EQ(Count("update"), 2);
}

TEST_F(PublisherTest, AServerThatHangsIsLeftAfterTheTimeout) {
  SlicePublisher::Options options = Quick();
  options.request_timeout = absl::Milliseconds(100);
  const int id = server_.AddRule({.verb = "list", .hang = true});
  Instance& instance = Make(options);
  instance.SetChips(Chips(1));
  instance.Start();
  EXPECT_TRUE(Eventually([&] { return absl::IsDeadlineExceeded(instance.publisher().ready()); }));
  server_.RemoveRule(id);
  EXPECT_TRUE(instance.WaitUntilReady());
}

TEST_F(PublisherTest, ACreateWhoseAnswerIsLostIsNotRepeated) {
  server_.AddRule({.verb = "create", .count = 1, .cut = true});
  Instance& instance = Published(1);
  instance.Settle();
  EXPECT_EQ(server_.slice_writes(), 1);
}

TEST_F(PublisherTest, AMissingNodeIsNamed) {
  SlicePublisher::Options options = Quick();
  options.node_name = "node-9";
  Instance& instance = Make(options);
  instance.SetChips(Chips(1));
  instance.Start();
  EXPECT_TRUE(Eventually([&] { return absl::IsNotFound(instance.publisher().ready()); }));
  EXPECT_THAT(instance.publisher().ready(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("node-9")));
  EXPECT_EQ(server_.slice_writes(), 0);
  server_.AddNode("node-9");
  EXPECT_TRUE(instance.WaitUntilReady());
}

TEST_F(PublisherTest, NobodyListens) {
  std::string url;
  {
    sim::ApiServer gone;
    url = gone.url();
  }
  Instance instance(url, roles_.path(), 1, Quick());
  instance.SetChips(Chips(1));
  instance.Start();
  EXPECT_TRUE(Eventually([&] {
    return absl::StrContains(std::string(instance.publisher().ready().message()), "GET");
  })) << instance.publisher().ready();
  EXPECT_TRUE(absl::IsUnavailable(instance.publisher().ready()));
}

class OldServerTest : public PublisherTest {
 protected:
  OldServerTest() : PublisherTest({.serve_resource_v1 = false}) {}
};

TEST_F(OldServerTest, TheMissingApiIsNamed) {  // REG-08
  Instance& instance = Make();
  instance.SetChips(Chips(1));
  instance.Start();
  EXPECT_TRUE(Eventually([&] { return absl::IsUnimplemented(instance.publisher().ready()); }));
  EXPECT_THAT(instance.publisher().ready(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("resource.k8s.io/v1")));
}

TEST_F(PublisherTest, TheApiAppearsLater) {
  const int id = server_.AddRule(
      {.verb = "list", .path_prefix = sim::kSlicesPath, .status = 404, .message = "no such API"});
  Instance& instance = Make();
  instance.SetChips(Chips(1));
  instance.Start();
  ASSERT_THAT(server_.WaitForRequests("list", sim::kSlicesPath, 3), IsOk());
  server_.RemoveRule(id);
  EXPECT_TRUE(instance.WaitUntilReady());
}

TEST_F(PublisherTest, StopsQuicklyWhileTheServerHangs) {
  for (const char* verb : {"get", "list", "create"}) {
    server_.AddRule({.verb = verb, .hang = true});
    Instance& instance = Make();
    instance.SetChips(Chips(1));
    server_.ClearRequests();
    instance.Start();
    ASSERT_TRUE(Eventually([&] { return Count(verb) > 0; })) << verb;
    const absl::Duration start = Monotonic();
    instance.client().Shutdown();
    instance.Stop();
    EXPECT_LT(Monotonic() - start, absl::Seconds(2)) << verb;
    server_.ClearRules();
  }
}

}  // namespace
}  // namespace ascend::kubeletplugin
