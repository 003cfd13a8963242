#include "vnpu/agent/server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
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
#include "vnpu/agent/channel.h"
#include "vnpu/agent/convert.h"
#include "vnpu/agent/ping.h"

namespace ascend::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(30);

vnpu::Inventory WithChips(int count, const std::string& text = "") {
  vnpu::Inventory inventory = {.library = vnpu::LibraryState::kReady, .library_path = text};
  for (int i = 0; i < count; ++i) {
    inventory.chips.push_back({.physical_id = i, .health = vnpu::Health::kOk});
  }
  return inventory;
}

// One WatchInventory call.
class Watcher {
 public:
  explicit Watcher(const std::string& socket)
      : stub_(v1alpha1::NpuAgent::NewStub(
            NewChannel(socket, absl::InfiniteDuration(), absl::InfiniteDuration()))) {
    context_.set_deadline(MonotonicIn(kLong));
    reader_ = stub_->WatchInventory(&context_, v1alpha1::WatchInventoryRequest());
  }
  ~Watcher() {
    context_.TryCancel();
    while (Next()) {
    }
  }
  bool Next() { return reader_->Read(&message_); }
  const v1alpha1::Inventory& message() const { return message_; }
  grpc::Status Finish() { return reader_->Finish(); }

 private:
  const std::unique_ptr<v1alpha1::NpuAgent::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1alpha1::Inventory>> reader_;
  v1alpha1::Inventory message_;
};

class AgentServerTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<AgentServer>> TryStart(const std::string& path) {
    return AgentServer::Start({.socket_path = path, .version = "1.2.3"}, &feed_, queries_, calls_,
                              resets_);
  }
  void Start() {
    auto server = TryStart(socket_);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }

  TempDir directory_;
  const std::string socket_ = directory_.File("agent.sock");
  InventoryFeed feed_{"instance"};
  const std::shared_ptr<ProcessQueries> queries_ = std::make_shared<ProcessQueries>();
  const std::shared_ptr<ChipTurns> turns_ = std::make_shared<ChipTurns>();
  const std::shared_ptr<VnpuCalls> calls_ = std::make_shared<VnpuCalls>(&feed_, turns_);
  const std::shared_ptr<ResetCalls> resets_ =
      std::make_shared<ResetCalls>(ResetCalls::Options{}, &feed_, turns_);
  std::unique_ptr<AgentServer> server_;
};

TEST_F(AgentServerTest, AnswersPing) {
  Start();
  const absl::StatusOr<PingReply> reply = Ping(socket_, kLong);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->version, "1.2.3");
  EXPECT_EQ(reply->instance, "instance");
}

TEST_F(AgentServerTest, AnswersWithTheCurrentInventory) {
  Start();
  feed_.Publish(WithChips(3));
  const auto stub = v1alpha1::NpuAgent::NewStub(
      NewChannel(socket_, absl::InfiniteDuration(), absl::InfiniteDuration()));
  grpc::ClientContext context;
  context.set_deadline(MonotonicIn(kLong));
  v1alpha1::Inventory response;
  ASSERT_TRUE(stub->GetInventory(&context, v1alpha1::GetInventoryRequest(), &response).ok());
  EXPECT_EQ(FromProto(response), *feed_.Current());
}

TEST_F(AgentServerTest, StreamsTheCurrentInventoryAtOnceAndThenEachChange) {
  feed_.Publish(WithChips(1));
  Start();
  Watcher watcher(socket_);
  ASSERT_TRUE(watcher.Next());
  EXPECT_EQ(FromProto(watcher.message()), *feed_.Current());
  for (int chips = 2; chips < 10; ++chips) {
    feed_.Publish(WithChips(chips));
    ASSERT_TRUE(watcher.Next());
    EXPECT_EQ(FromProto(watcher.message()), *feed_.Current());
  }
}

// One ListProcesses call.
struct Listing {
  grpc::Status status;
  v1alpha1::ListProcessesResponse response;
};
Listing ListProcesses(const std::string& socket, const std::vector<int>& ids,
                      absl::Duration timeout) {
  const auto stub = v1alpha1::NpuAgent::NewStub(
      NewChannel(socket, absl::InfiniteDuration(), absl::InfiniteDuration()));
  grpc::ClientContext context;
  if (timeout != absl::InfiniteDuration()) context.set_deadline(MonotonicIn(timeout));
  v1alpha1::ListProcessesRequest request;
  request.mutable_physical_ids()->Add(ids.begin(), ids.end());
  Listing listing;
  listing.status = stub->ListProcesses(&context, request, &listing.response);
  return listing;
}

TEST_F(AgentServerTest, AsksAboutAllChipsIfNoneIsNamed) {
  feed_.Publish(WithChips(2));
  Start();
  queries_->SetListener([this] {
    const std::shared_ptr<ProcessQuery> query = queries_->Next();
    for (const int id : query->physical_ids()) query->Answer({.physical_id = id, .known = true});
  });
  const Listing listing = ListProcesses(socket_, {}, kLong);
  EXPECT_TRUE(listing.status.ok()) << listing.status.error_message();
  ASSERT_EQ(listing.response.chips_size(), 2);
  EXPECT_EQ(listing.response.chips(1).physical_id(), 1);
  EXPECT_TRUE(listing.response.chips(1).known());
}

TEST_F(AgentServerTest, ANodeWithoutChipsHasNoProcesses) {
  Start();
  const Listing listing = ListProcesses(socket_, {}, kLong);
  EXPECT_TRUE(listing.status.ok()) << listing.status.error_message();
  EXPECT_EQ(listing.response.chips_size(), 0);
}

TEST_F(AgentServerTest, AQuestionThatGetsNoAnswerIsAnsweredBeforeTheDeadline) {
  feed_.Publish(WithChips(2));
  Start();
  const absl::Duration start = Clock::Real().Monotonic();
  const Listing listing = ListProcesses(socket_, {1, 0}, absl::Seconds(1));
  EXPECT_GE(Clock::Real().Monotonic() - start, absl::Milliseconds(500));
  ASSERT_TRUE(listing.status.ok()) << listing.status.error_message();
  ASSERT_EQ(listing.response.chips_size(), 2);
  for (const v1alpha1::ChipProcesses& chip : listing.response.chips()) {
    EXPECT_FALSE(chip.known());
    EXPECT_THAT(chip.error(), HasSubstr("busy"));
  }
}

TEST_F(AgentServerTest, AQuestionWithoutAnswerTellsWhyTheLibraryIsSilent) {
  vnpu::Inventory inventory = WithChips(1);
  inventory.library = vnpu::LibraryState::kNotResponding;
  inventory.library_message = "libdcmi has not answered since noon";
  feed_.Publish(inventory);
  Start();
  const Listing listing = ListProcesses(socket_, {0}, absl::Milliseconds(300));
  ASSERT_TRUE(listing.status.ok()) << listing.status.error_message();
  EXPECT_EQ(listing.response.chips(0).error(), "libdcmi has not answered since noon");
}

TEST_F(AgentServerTest, ShutdownAnswersOpenQuestions) {
  feed_.Publish(WithChips(1));
  Start();
  Mutex mutex;
  CondVar asked;
  bool is_asked = false;
  queries_->SetListener([&] {
    MutexLock lock(&mutex);
    is_asked = true;
    asked.SignalAll();
  });
  Listing listing;
  std::thread caller([&] { listing = ListProcesses(socket_, {0}, absl::InfiniteDuration()); });
  {
    MutexLock lock(&mutex);
    while (!is_asked) asked.Wait(&mutex);
  }
  server_->Shutdown();
  caller.join();
  ASSERT_TRUE(listing.status.ok()) << listing.status.error_message();
  EXPECT_THAT(listing.response.chips(0).error(), HasSubstr("shutting down"));
}

TEST_F(AgentServerTest, TwoWatchersGetTheSame) {
  Start();
  Watcher one(socket_);
  Watcher two(socket_);
  ASSERT_TRUE(one.Next());
  ASSERT_TRUE(two.Next());
  feed_.Publish(WithChips(4));
  ASSERT_TRUE(one.Next());
  ASSERT_TRUE(two.Next());
  EXPECT_EQ(one.message().chips_size(), 4);
  EXPECT_EQ(two.message().chips_size(), 4);
}

TEST_F(AgentServerTest, ASlowReaderSkipsButGetsTheLast) {
  Start();
  Watcher watcher(socket_);
  ASSERT_TRUE(watcher.Next());
  // Far more than what the connection holds while nobody reads.
  constexpr int kChanges = 2000;
  const std::string filler(64 * 1024, 'x');
  for (int i = 0; i < kChanges; ++i) feed_.Publish(WithChips(1, filler + std::to_string(i)));
  const uint64_t last = feed_.Current()->revision;

  int received = 0;
  uint64_t revision = 0;
  while (revision != last) {
    ASSERT_TRUE(watcher.Next());
    EXPECT_GT(watcher.message().revision(), revision) << "never twice, never backwards";
    revision = watcher.message().revision();
    ++received;
  }
  EXPECT_LT(received, kChanges);
}

TEST_F(AgentServerTest, ClientsThatGoAwayDoNotDisturbOthers) {
  Start();
  Watcher stays(socket_);
  ASSERT_TRUE(stays.Next());
  for (int i = 1; i <= 50; ++i) {
    auto goes = std::make_unique<Watcher>(socket_);
    ASSERT_TRUE(goes->Next());
    goes.reset();
    feed_.Publish(WithChips(i));
    ASSERT_TRUE(stays.Next());
  }
}

TEST_F(AgentServerTest, WatchersComeAndGoDuringChanges) {
  Start();
  std::thread publisher([this] {
    for (int i = 1; i <= 300; ++i) feed_.Publish(WithChips(i % 16, std::to_string(i)));
  });
  std::vector<std::thread> clients;
  for (int c = 0; c < 3; ++c) {
    clients.emplace_back([this] {
      for (int i = 0; i < 30; ++i) {
        Watcher watcher(socket_);
        EXPECT_TRUE(watcher.Next());
      }
    });
  }
  publisher.join();
  for (std::thread& client : clients) client.join();
  server_->Shutdown();
}

TEST_F(AgentServerTest, ShutdownEndsWatchesAtOnceAndSaysWhy) {
  Start();
  Watcher watcher(socket_);
  ASSERT_TRUE(watcher.Next());
  const absl::Duration start = Clock::Real().Monotonic();
  server_->Shutdown(absl::Minutes(1));
  EXPECT_LT(Clock::Real().Monotonic() - start, absl::Seconds(10));
  EXPECT_FALSE(watcher.Next());
  const grpc::Status status = watcher.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("shutting down"));
  EXPECT_THAT(Ping(socket_, kLong), StatusIs(absl::StatusCode::kUnavailable));
  server_->Shutdown();  // again: nothing
  feed_.Publish(WithChips(1));
}

TEST_F(AgentServerTest, TheSocketIsForItsOwnerOnlyWhateverTheUmask) {
  const mode_t before = umask(0);
  Start();
  EXPECT_EQ(umask(before), 0u) << "the umask is put back";
  struct stat status;
  ASSERT_EQ(lstat(socket_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  ASSERT_EQ(lstat((socket_ + ".lock").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST_F(AgentServerTest, ASecondAgentIsRefusedAndTheFirstGoesOn) {
  Start();
  EXPECT_THAT(TryStart(socket_), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          AllOf(HasSubstr("another agent"), HasSubstr(socket_))));
  EXPECT_THAT(Ping(socket_, kLong), IsOk());
}

TEST_F(AgentServerTest, TheNextAgentMayStartWhenTheFirstHasGone) {
  Start();
  server_.reset();
  struct stat status;
  EXPECT_NE(lstat(socket_.c_str(), &status), 0) << "the socket is removed";
  Start();
  EXPECT_THAT(Ping(socket_, kLong), IsOk());
}

// A socket bound without the lock, by whatever process.
UniqueFd Listen(const std::string& path) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.data(), path.size());
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(listen(fd.get(), 1), 0);
  return fd;
}

TEST_F(AgentServerTest, ASocketOfADeadProcessIsReplaced) {
  Listen(socket_).Reset();
  Start();
  EXPECT_THAT(Ping(socket_, kLong), IsOk());
}

TEST_F(AgentServerTest, ASocketThatIsListenedOnIsLeftAlone) {
  const UniqueFd other = Listen(socket_);
  EXPECT_THAT(TryStart(socket_), StatusIs(absl::StatusCode::kFailedPrecondition));
  struct stat status;
  EXPECT_EQ(lstat(socket_.c_str(), &status), 0);
}

TEST_F(AgentServerTest, AFileAtThePathIsLeftAlone) {
  ASSERT_THAT(WriteFileAtomically(socket_, "precious"), IsOk());
  EXPECT_THAT(TryStart(socket_),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not a socket")));
  EXPECT_THAT(ReadFile(socket_), IsOkAndHolds(std::string("precious")));
}

TEST_F(AgentServerTest, ThePathHasToBeUsable) {
  EXPECT_THAT(TryStart("agent.sock"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("absolute")));
  EXPECT_THAT(TryStart(""), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(TryStart(directory_.File(std::string(108, 'x'))),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("107")));
  EXPECT_THAT(TryStart(directory_.File("none/agent.sock")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(directory_.File("none"))));
}

TEST_F(AgentServerTest, APathWithUnusualCharactersWorks) {
  const std::string path = directory_.File("a b%20?#.sock");
  auto server = TryStart(path);
  ASSERT_THAT(server, IsOk());
  struct stat status;
  EXPECT_EQ(lstat(path.c_str(), &status), 0);
  EXPECT_THAT(Ping(path, kLong), IsOk());
}

TEST(PingTest, SaysWhatIsWrong) {
  TempDir directory;
  const std::string path = directory.File("agent.sock");
  EXPECT_THAT(Ping(path, kLong), StatusIs(absl::StatusCode::kUnavailable, HasSubstr(path)));
  EXPECT_THAT(Ping("relative", kLong), StatusIs(absl::StatusCode::kInvalidArgument));

  // Accepted by the kernel, answered by nobody: what a stopped process looks like.
  const UniqueFd stopped = Listen(path);
  EXPECT_THAT(Ping(path, absl::Milliseconds(100)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr(path), HasSubstr("within 100ms"))));
}

}  // namespace
}  // namespace ascend::agent
