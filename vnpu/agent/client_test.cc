#include "vnpu/agent/client.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent.grpc.pb.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "base/core/unique_fd.h"
#include "base/runtime/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "vnpu/agent/channel.h"
#include "vnpu/agent/inventory_feed.h"
#include "vnpu/agent/server.h"
#include "vnpu/agent/unix_target.h"
#include "vnpu/fake_dcmi.h"

namespace ascend::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(30);

vnpu::Inventory WithChips(int count) {
  vnpu::Inventory inventory = {.library = vnpu::LibraryState::kReady};
  for (int i = 0; i < count; ++i) {
    inventory.chips.push_back({.physical_id = i,
                               .health = vnpu::Health::kOk,
                               .faults = {{{.code = 0x110001024, .active = true}}}});
  }
  return inventory;
}

// A client whose changes a test can wait for.
class TestClient {
 public:
  explicit TestClient(Client::Options options)
      : client_(std::move(options), [this] {
          MutexLock lock(&mutex_);
          ++changes_;
          changed_.SignalAll();
        }) {}

  template <typename Condition>
  [[nodiscard]] bool WaitUntil(Condition condition) {
    const absl::Duration end = Clock::Real().Monotonic() + kLong;
    MutexLock lock(&mutex_);
    while (!condition(client_.Current())) {
      const absl::Duration left = end - Clock::Real().Monotonic();
      if (left <= absl::ZeroDuration()) return false;
      changed_.WaitFor(&mutex_, left);
    }
    return true;
  }
  [[nodiscard]] bool WaitConnected() {
    return WaitUntil([](const View& view) { return view.connected; });
  }
  [[nodiscard]] bool WaitDisconnected() {
    return WaitUntil([](const View& view) { return !view.connected; });
  }
  [[nodiscard]] bool WaitForChips(size_t count) {
    return WaitUntil([count](const View& view) {
      return view.connected && view.inventory->chips.size() == count;
    });
  }
  int changes() {
    MutexLock lock(&mutex_);
    return changes_;
  }
  View Current() const { return client_.Current(); }
  const Client& operator*() const { return client_; }

 private:
  Mutex mutex_;
  CondVar changed_;
  int changes_ ABSL_GUARDED_BY(mutex_) = 0;
  Client client_;  // goes first
};

class ClientTest : public ::testing::Test {
 protected:
  void StartServer(const std::string& path = "") {
    auto server = AgentServer::Start({.socket_path = path.empty() ? socket_ : path, .version = "1"},
                                     feed_.get(), queries_, calls_, resets_);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }
  // As another process would: nothing of the old one is left.
  void RestartServer(const std::string& instance) {
    server_.reset();
    feed_ = std::make_unique<InventoryFeed>(instance);
    queries_ = std::make_shared<ProcessQueries>();
    calls_ = NewCalls();
    resets_ = NewResets();
    StartServer();
  }
  std::shared_ptr<VnpuCalls> NewCalls() const {
    return std::make_shared<VnpuCalls>(feed_.get(), std::make_shared<ChipTurns>());
  }
  std::shared_ptr<ResetCalls> NewResets() const {
    return std::make_shared<ResetCalls>(ResetCalls::Options{}, feed_.get(),
                                        std::make_shared<ChipTurns>());
  }
  Client::Options Options() const { return {.socket_path = socket_}; }

  TempDir directory_;
  const std::string socket_ = directory_.File("agent.sock");
  std::unique_ptr<InventoryFeed> feed_ = std::make_unique<InventoryFeed>("one");
  // One for each server: a server closes it.
  std::shared_ptr<ProcessQueries> queries_ = std::make_shared<ProcessQueries>();
  std::shared_ptr<VnpuCalls> calls_ = NewCalls();
  std::shared_ptr<ResetCalls> resets_ = NewResets();
  std::unique_ptr<AgentServer> server_;
};

TEST_F(ClientTest, NothingIsKnownBeforeAnAgentAnswered) {
  TestClient client(Options());
  const View view = client.Current();
  EXPECT_FALSE(view.connected);
  EXPECT_EQ(view.inventory, nullptr);
  EXPECT_GE(view.disconnected_for, absl::ZeroDuration());
  EXPECT_EQ(client.changes(), 0);
}

TEST_F(ClientTest, FollowsTheAgent) {
  feed_->Publish(WithChips(1));
  StartServer();
  TestClient client(Options());
  ASSERT_TRUE(client.WaitForChips(1));
  EXPECT_EQ(client.Current().inventory->chips, WithChips(1).chips);
  EXPECT_EQ(client.Current().disconnected_for, absl::ZeroDuration());
  EXPECT_EQ(*client.Current().inventory, *feed_->Current());
  feed_->Publish(WithChips(2));
  ASSERT_TRUE(client.WaitForChips(2));
  EXPECT_GE(client.changes(), 2);
}

TEST_F(ClientTest, AnAgentThatStartsLaterIsFoundAtOnce) {
  Client::Options options = Options();
  // So long that the wait ends only because the socket was seen to appear.
  options.connect_backoff_max = absl::Minutes(10);
  TestClient client(options);
  StartServer();
  EXPECT_TRUE(client.WaitConnected());
}

TEST_F(ClientTest, TheDirectoryMayAppearLater) {
  Client::Options options = Options();
  options.socket_path = directory_.File("later/agent.sock");
  TestClient client(options);
  ASSERT_EQ(mkdir(directory_.File("later").c_str(), 0700), 0);
  StartServer(options.socket_path);
  EXPECT_TRUE(client.WaitConnected());
  server_.reset();
}

TEST_F(ClientTest, KeepsTheLastInventoryWhileTheAgentIsAway) {
  feed_->Publish(WithChips(8));
  StartServer();
  TestClient client(Options());
  ASSERT_TRUE(client.WaitForChips(8));
  server_.reset();
  ASSERT_TRUE(client.WaitDisconnected());
  const View view = client.Current();
  ASSERT_NE(view.inventory, nullptr);
  EXPECT_EQ(view.inventory->chips.size(), 8u);
  EXPECT_EQ(view.inventory->agent_instance, "one");
  EXPECT_GT(view.disconnected_for, absl::ZeroDuration());
}

TEST_F(ClientTest, ReconnectsToTheNextAgent) {
  StartServer();
  TestClient client(Options());
  ASSERT_TRUE(client.WaitConnected());
  for (int i = 2; i < 6; ++i) {
    const std::string instance = std::to_string(i);
    RestartServer(instance);
    ASSERT_TRUE(client.WaitUntil([&](const View& view) {
      return view.connected && view.inventory->agent_instance == instance;
    }));
  }
}

TEST_F(ClientTest, FollowsASocketThatWasRemovedAndCreatedAnew) {
  StartServer();
  TestClient client(Options());
  ASSERT_TRUE(client.WaitConnected());
  server_.reset();
  ASSERT_TRUE(client.WaitDisconnected());
  ASSERT_EQ(unlink((socket_ + ".lock").c_str()), 0);
  StartServer();
  EXPECT_TRUE(client.WaitConnected());
}

// What the library's thread would answer: chip N is used by process 100 + N.
void AnswerAtOnce(const std::shared_ptr<ProcessQueries>& queries) {
  queries->SetListener([queries = queries.get()] {
    while (const std::shared_ptr<ProcessQuery> query = queries->Next()) {
      for (const int id : query->physical_ids()) {
        query->Answer({.physical_id = id,
                       .known = true,
                       .processes = {{.pid = 100 + id, .name = "python3", .memory_bytes = 7}}});
      }
    }
  });
}

TEST_F(ClientTest, TellsWhoUsesTheChips) {
  feed_->Publish(WithChips(4));
  StartServer();
  AnswerAtOnce(queries_);
  TestClient client(Options());
  for (const bool connected : {false, true}) {
    // Also before the watch is up, over a connection of its own.
    if (connected) {
      ASSERT_TRUE(client.WaitConnected());
    }
    const auto chips = (*client).ListProcesses({3, 1}, kLong);
    ASSERT_THAT(chips, IsOk());
    ASSERT_EQ(chips->size(), 2u);
    EXPECT_EQ(
        (*chips)[0],
        (vnpu::ChipProcesses{.physical_id = 3, .known = true, .processes = {{103, "python3", 7}}}));
    EXPECT_EQ((*chips)[1].physical_id, 1);
  }
}

TEST_F(ClientTest, ManyMayAskAtOnceWhileTheAgentComesAndGoes) {
  feed_->Publish(WithChips(4));
  StartServer();
  AnswerAtOnce(queries_);
  TestClient client(Options());
  ASSERT_TRUE(client.WaitConnected());
  std::vector<std::thread> askers;
  std::atomic<int> answered = 0, refused = 0;
  std::atomic<bool> stop = false;
  askers.reserve(4);
  for (int i = 0; i < 4; ++i) {
    askers.emplace_back([&] {
      while (!stop) {
        const auto chips = (*client).ListProcesses({1}, kLong);
        if (!chips.ok()) {
          EXPECT_THAT(chips.status(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr(socket_)));
          ++refused;
        } else if ((*chips)[0].known) {
          EXPECT_EQ((*chips)[0].processes[0].pid, 101);
          ++answered;
        } else {
          EXPECT_THAT((*chips)[0].error, HasSubstr("shutting down"));
        }
      }
    });
  }
  for (int round = 0; round < 3; ++round) {
    const int before = answered;
    while (answered == before) std::this_thread::yield();
    server_.reset();
    const int refused_before = refused;
    while (refused == refused_before) std::this_thread::yield();
    queries_ = std::make_shared<ProcessQueries>();
    AnswerAtOnce(queries_);
    StartServer();
  }
  const int before = answered;
  while (answered == before) std::this_thread::yield();
  stop = true;
  for (std::thread& asker : askers) asker.join();
}

TEST_F(ClientTest, SaysWhichAgentCannotBeAsked) {
  TestClient client(Options());
  EXPECT_THAT((*client).ListProcesses({1}, kLong),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(socket_)));
}

TEST_F(ClientTest, DoesNotWaitLongerForProcessesThanItWasTold) {
  // Like a stopped agent: connects, answers nothing.
  UniqueFd silent(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, socket_.data(), socket_.size());
  ASSERT_EQ(bind(silent.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(silent.get(), 8), 0);
  TestClient client(Options());
  const absl::Duration start = Clock::Real().Monotonic();
  EXPECT_THAT((*client).ListProcesses({1}, absl::Milliseconds(200)),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr(socket_)));
  EXPECT_LT(Clock::Real().Monotonic() - start, absl::Seconds(10));
}

// An agent of a version before ListProcesses.
class OldService : public v1alpha1::NpuAgent::Service {};

TEST_F(ClientTest, SaysThatAnOldAgentCannotTell) {
  OldService service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(UnixTarget(socket_), grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  TestClient client(Options());
  EXPECT_THAT(
      (*client).ListProcesses({1}, kLong),
      StatusIs(absl::StatusCode::kUnimplemented, AllOf(HasSubstr(socket_), HasSubstr("upgrade"))));
}

TEST_F(ClientTest, SaysThatAnOldAgentHasNoVnpus) {
  OldService service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(UnixTarget(socket_), grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  TestClient client(Options());
  EXPECT_THAT(
      (*client).ListVnpus(1, kLong),
      StatusIs(absl::StatusCode::kUnimplemented, AllOf(HasSubstr(socket_), HasSubstr("upgrade"))));
}

// Calls about vNPUs through client, server and queue, on a library that the test can stop.
class VnpuClientTest : public ClientTest {
 protected:
  VnpuClientTest() {
    dcmi_->Before([this](absl::string_view method, dcmi::ChipAddress chip) {
      MutexLock lock(&mutex_);
      if (method == "CreateVnpu" && chip.card == 0) {
        ++creations_;
        changed_.SignalAll();
        while (hanging_) changed_.Wait(&mutex_);
      }
      return absl::OkStatus();
    });
    vnpu::Inventory inventory = {.library = vnpu::LibraryState::kReady};
    for (int i = 0; i < 2; ++i) {
      inventory.chips.push_back({.physical_id = i, .card_id = i, .device_id = 0, .uuid = "AA"});
    }
    feed_->Publish(inventory);
    calls_->SetLibrary(dcmi_);
    StartServer();
  }
  ~VnpuClientTest() override {
    SetHanging(false);
    server_.reset();
    EXPECT_TRUE(calls_->Stop(kLong));
  }
  void SetHanging(bool hanging) {
    MutexLock lock(&mutex_);
    hanging_ = hanging;
    changed_.SignalAll();
  }
  void WaitForCreation() {
    MutexLock lock(&mutex_);
    while (creations_ == 0) changed_.Wait(&mutex_);
  }
  static VnpuRequest On(int chip) {
    return {.physical_id = chip, .uuid = "AA", .template_name = "vir05_1c_16g"};
  }

  const std::shared_ptr<vnpu::FakeDcmi> dcmi_ = std::make_shared<vnpu::FakeDcmi>(2);
  Mutex mutex_;
  CondVar changed_;
  bool hanging_ ABSL_GUARDED_BY(mutex_) = false;
  int creations_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST_F(VnpuClientTest, CreatesListsAndDestroys) {
  TestClient client(Options());
  VnpuRequest request = On(1);
  request.id = 120;
  request.vgroup = 2;
  const auto made = (*client).CreateVnpu(request, kLong);
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->id, 120);
  EXPECT_EQ(made->vgroup, 2);
  EXPECT_EQ(made->template_name, "vir05_1c_16g");
  const auto listed = (*client).ListVnpus(1, kLong);
  ASSERT_THAT(listed, IsOk());
  EXPECT_EQ(*listed, std::vector<vnpu::Vnpu>{*made});
  VnpuReference reference = {
      .physical_id = 1, .uuid = "AA", .id = 120, .template_name = "vir10_3c_32g"};
  EXPECT_THAT((*client).DestroyVnpu(reference, kLong),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(socket_), HasSubstr("vir05_1c_16g"))));
  reference.template_name = "vir05_1c_16g";
  EXPECT_THAT((*client).DestroyVnpu(reference, kLong), IsOk());
  EXPECT_EQ(dcmi_->Ids(1), std::vector<int>());
}

TEST_F(VnpuClientTest, PassesErrorsOn) {
  TestClient client(Options());
  VnpuRequest other = On(1);
  other.uuid = "BB";
  EXPECT_THAT((*client).CreateVnpu(other, kLong),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("BB")));
  EXPECT_THAT((*client).ListVnpus(9, kLong),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("physical id 9")));
  dcmi_->SetModes(dcmi::VdeviceMode::kVm, true);
  EXPECT_THAT((*client).PrepareVnpuModes(kLong), IsOk());
  EXPECT_THAT(dcmi_->GetVnpuRecovery(), IsOkAndHolds(false));
  dcmi_->SetModes(absl::UnimplementedError("no modes"), absl::UnimplementedError("no modes"));
  EXPECT_THAT((*client).PrepareVnpuModes(kLong),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("no modes")));
  server_.reset();
  EXPECT_THAT((*client).CreateVnpu(On(1), kLong),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(socket_)));
}

TEST_F(VnpuClientTest, TellsACallThatRunsFromOneThatNeverWill) {
  SetHanging(true);
  TestClient client(Options());
  EXPECT_THAT((*client).CreateVnpu(On(0), absl::Milliseconds(300)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("dcmi_create_vdevice"), HasSubstr("goes on with it"))));
  EXPECT_THAT((*client).CreateVnpu(On(0), absl::Milliseconds(300)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("dcmi_create_vdevice"), HasSubstr("nothing was changed"))));
  EXPECT_THAT((*client).CreateVnpu(On(1), kLong), IsOk()) << "the other chip";
  SetHanging(false);
  const auto vnpus = (*client).ListVnpus(0, kLong);
  ASSERT_THAT(vnpus, IsOk());
  EXPECT_EQ(vnpus->size(), 1u);
  EXPECT_EQ(dcmi_->requests().size(), 2u);
}

TEST_F(VnpuClientTest, AClientThatGoesAwayIsNotWaitedFor) {
  SetHanging(true);
  const auto stub = v1alpha1::NpuAgent::NewStub(
      NewChannel(socket_, absl::InfiniteDuration(), absl::InfiniteDuration()));
  grpc::ClientContext context;
  std::thread caller([&] {
    v1alpha1::CreateVnpuRequest request;
    request.set_physical_id(0);
    request.set_template_name("vir05_1c_16g");
    v1alpha1::Vnpu response;
    EXPECT_EQ(stub->CreateVnpu(&context, request, &response).error_code(),
              grpc::StatusCode::CANCELLED);
  });
  WaitForCreation();
  context.TryCancel();
  caller.join();
  SetHanging(false);
  TestClient client(Options());
  const auto vnpus = (*client).ListVnpus(0, kLong);
  ASSERT_THAT(vnpus, IsOk());
  EXPECT_EQ(vnpus->size(), 1u) << "the library could not be stopped";
}

TEST_F(VnpuClientTest, AServerEndsDuringACallThatHangs) {
  SetHanging(true);
  TestClient client(Options());
  std::thread caller([&] {
    EXPECT_THAT((*client).CreateVnpu(On(0), absl::Minutes(5)),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr(socket_)));
  });
  WaitForCreation();
  server_->Shutdown(absl::Milliseconds(50));
  caller.join();
  EXPECT_FALSE(calls_->Stop(absl::Milliseconds(1)));
}

TEST_F(ClientTest, TwoClientsSeeTheSame) {
  StartServer();
  TestClient one(Options());
  TestClient two(Options());
  feed_->Publish(WithChips(5));
  EXPECT_TRUE(one.WaitForChips(5));
  EXPECT_TRUE(two.WaitForChips(5));
}

TEST_F(ClientTest, ASocketThatNobodyServesIsGivenUpAndReplaced) {
  // Like an agent that was stopped right at its start: connects, answers nothing.
  UniqueFd silent(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, socket_.data(), socket_.size());
  ASSERT_EQ(bind(silent.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(silent.get(), 8), 0);

  Client::Options options = Options();
  options.connect_timeout = absl::Milliseconds(100);
  TestClient client(options);
  const UniqueFd attempt(accept(silent.get(), nullptr, nullptr));
  const UniqueFd next_attempt(accept(silent.get(), nullptr, nullptr));  // the first was given up
  ASSERT_TRUE(next_attempt.valid());
  EXPECT_FALSE(client.Current().connected);
  silent.Reset();
  StartServer();
  EXPECT_TRUE(client.WaitConnected());
}

TEST_F(ClientTest, DestructionIsPromptInEveryState) {
  const absl::Duration start = Clock::Real().Monotonic();
  Client::Options options = Options();
  options.connect_backoff_min = options.connect_backoff_max = absl::Minutes(10);
  {
    TestClient never_connected(options);
  }
  for (int i = 0; i < 20; ++i) TestClient at_once(Options());
  StartServer();
  for (int i = 0; i < 20; ++i) TestClient while_connecting(Options());
  {
    TestClient connected(options);
    ASSERT_TRUE(connected.WaitConnected());
  }
  {
    TestClient waiting(options);
    ASSERT_TRUE(waiting.WaitConnected());
    server_.reset();
    ASSERT_TRUE(waiting.WaitDisconnected());
  }
  EXPECT_LT(Clock::Real().Monotonic() - start, absl::Seconds(20));
}

}  // namespace
}  // namespace ascend::agent
