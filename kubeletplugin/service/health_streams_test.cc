#include "kubeletplugin/service/health_streams.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/core/mutex.h"
#include "base/core/temp_dir.h"
#include "cdi/text.h"
#include "dra_health_v1.grpc.pb.h"
#include "dra_health_v1alpha1.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class FakeClock : public Clock {
 public:
  absl::Time Now() const override {
    MutexLock lock(&mutex_);
    return absl::FromUnixSeconds(1'800'000'000) + passed_;
  }
  absl::Duration Monotonic() const override {
    MutexLock lock(&mutex_);
    return passed_;
  }
  void Advance(absl::Duration duration) {
    MutexLock lock(&mutex_);
    passed_ += duration;
  }

 private:
  mutable Mutex mutex_;
  absl::Duration passed_ ABSL_GUARDED_BY(mutex_) = absl::Hours(1);
};

struct V1 {
  using Api = ::v1::DRAResourceHealth;
  using Response = ::v1::NodeWatchResourcesResponse;
};
struct V1alpha1 {
  using Api = ::v1alpha1::DRAResourceHealth;
  using Response = ::v1alpha1::NodeWatchResourcesResponse;
};

constexpr absl::Duration kNever = absl::Hours(1);
constexpr absl::Duration kOften = absl::Milliseconds(5);

// A server with both services, and the feed behind them.
class Node {
 public:
  explicit Node(absl::Duration heartbeat)
      : streams_(feed, {.heartbeat = heartbeat, .timeout = absl::Seconds(30)}) {
    services_.push_back(streams_.MakeServiceV1());
    services_.push_back(streams_.MakeServiceV1alpha1());
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address(), grpc::InsecureServerCredentials());
    for (const auto& service : services_) builder.RegisterService(service.get());
    server_ = builder.BuildAndStart();
  }
  ~Node() { Stop(); }

  // As the plugin does.
  void Stop() {
    if (server_ == nullptr) return;
    streams_.End();
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(20));
    server_->Wait();
    server_.reset();
  }

  HealthStreams& streams() { return streams_; }
  std::string address() const { return absl::StrCat("unix:", dir_.File("dra.sock")); }

  void Publish(const std::string& device, HealthState state, const std::string& message = "") {
    feed.Publish({{.pool = "node-1",
                   .device = device,
                   .state = state,
                   .message = message,
                   .checked_at = clock.Now()}});
  }

  FakeClock clock;
  HealthFeed feed{clock};

 private:
  TempDir dir_;
  HealthStreams streams_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> server_;
};

// A kubelet's watch, on a connection of its own.
template <typename Version>
class Watch {
 public:
  explicit Watch(const Node& node) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = Version::Api::NewStub(
        grpc::CreateCustomChannel(node.address(), grpc::InsecureChannelCredentials(), arguments));
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(40));
    reader_ = stub_->NodeWatchResources(&context_, {});
  }
  ~Watch() {
    if (!ended_) End();
  }

  bool Read() { return reader_->Read(&response); }
  // "npu-0 HEALTHY", or "npu-0 UNHEALTHY: why", of the next message.
  std::string Next() {
    if (!Read()) return "the stream has ended";
    std::string text;
    for (const auto& device : response.devices()) {
      absl::StrAppend(&text, text.empty() ? "" : ", ", device.device().device_name(), " ",
                      HealthStatus_Name(device.health()), device.message().empty() ? "" : ": ",
                      device.message());
    }
    return text;
  }
  // The first message that says it; false if the stream ends before.
  bool WaitFor(const std::string& text) {
    for (;;) {
      const std::string next = Next();
      if (next == text) return true;
      if (next == "the stream has ended") return false;
    }
  }
  grpc::Status Finish() {
    ended_ = true;
    return reader_->Finish();
  }
  grpc::Status End() {
    context_.TryCancel();
    while (Read()) {
    }
    return Finish();
  }

  typename Version::Response response;

 private:
  std::unique_ptr<typename Version::Api::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<typename Version::Response>> reader_;
  bool ended_ = false;
};

// Streams come to and leave the server a moment after their client.
bool WaitForOpen(HealthStreams& streams, int count) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (streams.open() != count) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

template <typename Version>
class HealthStreamsTest : public ::testing::Test {};
using Versions = ::testing::Types<V1, V1alpha1>;
TYPED_TEST_SUITE(HealthStreamsTest, Versions);

TYPED_TEST(HealthStreamsTest, TheWholeStateAtOnceAndAtEachChange) {
  Node node(kNever);
  const auto device = [&](const std::string& name, HealthState state, const std::string& message) {
    return DeviceHealth{.pool = "node-1",
                        .device = name,
                        .state = state,
                        .message = message,
                        .checked_at = node.clock.Now()};
  };
  node.feed.Publish({device("npu-0", HealthState::kHealthy, ""),
                     device("npu-1", HealthState::kUnhealthy, "HBM"),
                     device("npu-2-vir05-1c-8g-0", HealthState::kUnknown, "")});
  Watch<TypeParam> watch(node);
  EXPECT_EQ(watch.Next(), "npu-0 HEALTHY, npu-1 UNHEALTHY: HBM, npu-2-vir05-1c-8g-0 UNKNOWN");
  ASSERT_EQ(watch.response.devices_size(), 3);
  for (const auto& entry : watch.response.devices()) {
    EXPECT_EQ(entry.device().pool_name(), "node-1");
    EXPECT_EQ(entry.health_check_timeout_seconds(), 30);
    EXPECT_EQ(entry.last_updated_time(), absl::ToUnixSeconds(node.clock.Now()));
  }

  node.feed.Publish({device("npu-0", HealthState::kUnhealthy, "lost"),
                     device("npu-1", HealthState::kUnhealthy, "HBM")});
  EXPECT_EQ(watch.Next(), "npu-0 UNHEALTHY: lost, npu-1 UNHEALTHY: HBM");
  node.feed.Publish({});  // no device is left, which is something to be told
  EXPECT_EQ(watch.Next(), "");
  node.Publish("npu-0", HealthState::kHealthy);
  EXPECT_EQ(watch.Next(), "npu-0 HEALTHY");
}

TYPED_TEST(HealthStreamsTest, SilentUntilSomethingIsKnown) {
  Node node(kOften);
  Watch<TypeParam> watch(node);
  ASSERT_TRUE(WaitForOpen(node.streams(), 1));
  node.Publish("npu-0", HealthState::kUnhealthy, "first");
  EXPECT_EQ(watch.Next(), "npu-0 UNHEALTHY: first");  // and nothing came before it
}

TYPED_TEST(HealthStreamsTest, AHeartbeatWithoutAnyChange) {
  Node node(kOften);
  node.Publish("npu-0", HealthState::kHealthy);
  Watch<TypeParam> watch(node);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(watch.Next(), "npu-0 HEALTHY") << i;
}

TYPED_TEST(HealthStreamsTest, NoMoreHeartbeatsThanWanted) {
  Node node(absl::Milliseconds(100));
  node.Publish("npu-0", HealthState::kHealthy);
  Watch<TypeParam> watch(node);
  EXPECT_EQ(watch.Next(), "npu-0 HEALTHY");
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(watch.Next(), "npu-0 HEALTHY");
  // The first may follow at once: the beat is that of all streams.
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(290));
}

TYPED_TEST(HealthStreamsTest, WhatNobodyConfirmsIsNotSentAgain) {
  Node node(kOften);
  node.Publish("npu-0", HealthState::kHealthy);
  Watch<TypeParam> watch(node);
  EXPECT_EQ(watch.Next(), "npu-0 HEALTHY");
  const absl::Time checked = node.clock.Now();
  node.clock.Advance(HealthFeed::kFreshFor + absl::Seconds(1));
  const std::string stale =
      absl::StrCat("npu-0 UNKNOWN: not checked since ",
                   absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", checked, absl::UTCTimeZone()));
  ASSERT_TRUE(watch.WaitFor(stale));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(watch.Next(), stale) << i;
  EXPECT_EQ(watch.response.devices(0).last_updated_time(), absl::ToUnixSeconds(checked));

  Watch<TypeParam> late(node);  // a kubelet that starts now
  EXPECT_EQ(late.Next(), stale);

  node.feed.Confirm(node.clock.Now());
  ASSERT_TRUE(watch.WaitFor("npu-0 HEALTHY"));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(watch.Next(), "npu-0 HEALTHY") << i;
}

TYPED_TEST(HealthStreamsTest, AConfirmationIsToldWithoutAHeartbeat) {
  Node node(kNever);
  node.Publish("npu-0", HealthState::kHealthy);
  node.clock.Advance(absl::Minutes(1));
  Watch<TypeParam> watch(node);
  EXPECT_THAT(watch.Next(), StartsWith("npu-0 UNKNOWN: not checked since"));
  node.feed.Confirm(node.clock.Now());
  EXPECT_EQ(watch.Next(), "npu-0 HEALTHY");
}

// 64 KB each, far more than the connection takes while nobody reads.
TYPED_TEST(HealthStreamsTest, ASlowReaderGetsTheLast) {
  Node node(kNever);
  const auto publish = [&](int round) {
    std::vector<DeviceHealth> devices;
    for (int i = 0; i < 64; ++i) {
      devices.push_back({.pool = "node-1",
                         .device = absl::StrCat("npu-", i),
                         .state = HealthState::kUnhealthy,
                         .message = absl::StrCat(round, " ", std::string(1000, 'x')),
                         .checked_at = node.clock.Now()});
    }
    node.feed.Publish(std::move(devices));
  };
  publish(0);
  Watch<TypeParam> watch(node);
  ASSERT_TRUE(watch.Read());
  constexpr int kRounds = 500;
  for (int round = 1; round <= kRounds; ++round) publish(round);
  int read = 0, last = 0;
  while (last != kRounds) {
    ASSERT_TRUE(watch.Read());
    ++read;
    int round = 0;
    ASSERT_TRUE(absl::SimpleAtoi(watch.response.devices(0).message().substr(
                                     0, watch.response.devices(0).message().find(' ')),
                                 &round));
    EXPECT_GE(round, last);  // the same again if it came while another was written
    last = round;
  }
  EXPECT_LT(read, kRounds / 2);
}

TYPED_TEST(HealthStreamsTest, TheEndOfTheServerIsTold) {
  Node node(kOften);
  node.Publish("npu-0", HealthState::kHealthy);
  Watch<TypeParam> one(node), two(node);
  ASSERT_TRUE(one.Read());
  ASSERT_TRUE(two.Read());
  const auto start = std::chrono::steady_clock::now();
  std::thread stop([&] { node.Stop(); });
  for (Watch<TypeParam>* watch : {&one, &two}) {
    while (watch->Read()) {
    }
    const grpc::Status status = watch->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_THAT(status.error_message(), HasSubstr("shutting down"));
  }
  stop.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
  EXPECT_EQ(node.streams().open(), 0);
}

TYPED_TEST(HealthStreamsTest, WhoComesAfterTheEndIsTurnedAway) {
  Node node(kOften);
  node.Publish("npu-0", HealthState::kHealthy);
  node.streams().End();
  Watch<TypeParam> watch(node);
  EXPECT_FALSE(watch.Read());
  EXPECT_EQ(watch.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TYPED_TEST(HealthStreamsTest, AKubeletMayGoAtAnyTime) {
  Node node(kOften);
  node.Publish("npu-0", HealthState::kHealthy);
  {
    Watch<TypeParam> watch(node);
    EXPECT_EQ(watch.Next(), "npu-0 HEALTHY");
    EXPECT_EQ(watch.End().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_TRUE(WaitForOpen(node.streams(), 0));
  node.Publish("npu-0", HealthState::kUnhealthy);
  Watch<TypeParam> watch(node);  // restarted
  EXPECT_EQ(watch.Next(), "npu-0 UNHEALTHY");
}

TYPED_TEST(HealthStreamsTest, LongMessagesAreCutBetweenCharacters) {
  Node node(kNever);
  const std::string longest(1024, 'x');
  node.Publish("npu-0", HealthState::kUnhealthy, longest);
  Watch<TypeParam> watch(node);
  ASSERT_TRUE(watch.Read());
  EXPECT_EQ(watch.response.devices(0).message(), longest);
  // 1021 bytes would end in the middle of the 341st of these.
  std::string chinese;
  for (int i = 0; i < 400; ++i) chinese += "芯";
  node.Publish("npu-0", HealthState::kUnhealthy, "!" + chinese);
  ASSERT_TRUE(watch.Read());
  const std::string& cut = watch.response.devices(0).message();
  EXPECT_EQ(cut, absl::StrCat("!", chinese.substr(0, 340 * 3), "..."));
  EXPECT_TRUE(cdi::IsValidUtf8(cut));
  EXPECT_LE(cut.size(), 1024u);
}

TYPED_TEST(HealthStreamsTest, BytesThatAreNoTextDoNotEndTheStream) {
  Node node(kNever);
  node.Publish("npu-0", HealthState::kUnhealthy, "bad \xff\xfe byte");
  Watch<TypeParam> watch(node);
  EXPECT_EQ(watch.Next(), "npu-0 UNHEALTHY: bad \\xff\\xfe byte");
  node.Publish("npu-0", HealthState::kUnhealthy, std::string(2000, '\xff'));
  ASSERT_TRUE(watch.Read());
  EXPECT_LE(watch.response.devices(0).message().size(), 1024u);
  EXPECT_THAT(watch.response.devices(0).message(), EndsWith("..."));
}

// The connections of an old kubelet and a new one, or of one that asks for both.
TEST(HealthStreamsOfTwoKubeletsTest, BothGetEverything) {
  Node node(kNever);
  node.Publish("npu-0", HealthState::kHealthy);
  Watch<V1> one(node);
  Watch<V1alpha1> other(node);
  EXPECT_EQ(one.Next(), "npu-0 HEALTHY");
  EXPECT_EQ(other.Next(), "npu-0 HEALTHY");
  EXPECT_EQ(node.streams().open(), 2);
  node.Publish("npu-0", HealthState::kUnhealthy);
  EXPECT_EQ(one.Next(), "npu-0 UNHEALTHY");
  EXPECT_EQ(other.Next(), "npu-0 UNHEALTHY");
  one.End();
  ASSERT_TRUE(WaitForOpen(node.streams(), 1));
  node.Publish("npu-0", HealthState::kHealthy);
  EXPECT_EQ(other.Next(), "npu-0 HEALTHY");
}

TEST(HealthStreamsOfTwoKubeletsTest, TheyComeAndGoWhileThingsChange) {
  Node node(absl::Milliseconds(1));
  node.Publish("npu-0", HealthState::kHealthy);
  const auto come_and_go = [&](auto version) {
    for (int i = 0; i < 10; ++i) {
      Watch<decltype(version)> watch(node);
      EXPECT_TRUE(watch.Read());
      EXPECT_TRUE(watch.Read());
    }
  };
  std::vector<std::thread> kubelets;
  for (int i = 0; i < 2; ++i) {
    kubelets.emplace_back([&] { come_and_go(V1{}); });
    kubelets.emplace_back([&] { come_and_go(V1alpha1{}); });
  }
  for (int i = 0; i < 200; ++i) {
    node.Publish("npu-0", i % 2 == 0 ? HealthState::kUnhealthy : HealthState::kHealthy);
  }
  for (std::thread& kubelet : kubelets) kubelet.join();
  EXPECT_TRUE(WaitForOpen(node.streams(), 0));
}

}  // namespace
}  // namespace ascend::kubeletplugin
