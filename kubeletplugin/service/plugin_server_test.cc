#include "kubeletplugin/service/plugin_server.h"

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "base/core/unique_fd.h"
#include "base/runtime/clock.h"
#include "base/runtime/task_pool.h"
#include "dra_v1.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/service/dra_service.h"
#include "kubeletplugin/service/registration_service.h"
#include "pluginregistration_v1.grpc.pb.h"

namespace ascend::kubeletplugin {
namespace {

namespace v1 = ::k8s::io::kubelet::pkg::apis::dra::v1;
using ::testing::HasSubstr;

constexpr char kPod[] = "3f2b7d5e-0c1a-4a57-9c1f-6f0a3d1f9b11";
constexpr char kOtherPod[] = "aaaaaaaa-0c1a-4a57-9c1f-6f0a3d1f9b11";

bool IsSocket(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode);
}

bool Exists(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0;
}

// A socket as a process leaves it that was killed.
void LeaveSocket(const std::string& path) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_TRUE(IsSocket(path));
}

class PluginServerTest : public ::testing::Test {
 protected:
  PluginServerTest() : state_([](bool) {}), paths_(PathsOf(kPod)), pool_(8) {}

  Paths PathsOf(const std::string& pod_uid) const {
    auto paths = Paths::Create({.kubelet_root = dir_.path(),
                                .cdi_root = dir_.File("cdi"),
                                .driver_name = "npu.huawei.com",
                                .pod_uid = pod_uid});
    EXPECT_THAT(paths, IsOk());
    return *std::move(paths);
  }

  absl::StatusOr<std::unique_ptr<PluginServer>> Start(const Paths& paths) {
    const ClaimOperations operations = {
        .prepare = [this](const ClaimReference&) -> absl::StatusOr<std::vector<PreparedDevice>> {
          MutexLock lock(&mutex_);
          ++running_;
          changed_.SignalAll();
          while (blocked_) changed_.Wait(&mutex_);
          --running_;
          ++finished_;
          return std::vector<PreparedDevice>();
        },
        .unprepare = [](const ClaimReference&) { return absl::OkStatus(); }};
    std::vector<std::unique_ptr<grpc::Service>> services;
    services.push_back(MakeDraServiceV1(operations, pool_));
    services.push_back(
        MakeRegistrationService(paths.driver_name(), paths.service_socket(), state_));
    return PluginServer::Start(paths, std::move(services));
  }

  void Block(bool blocked) {
    MutexLock lock(&mutex_);
    blocked_ = blocked;
    changed_.SignalAll();
  }
  void WaitUntilRunning() {
    MutexLock lock(&mutex_);
    while (running_ == 0) changed_.Wait(&mutex_);
  }

  // One call on a connection of its own.
  static grpc::Status Prepare(const std::string& socket, const std::string& authority = "localhost",
                              const std::string& uid = "u1") {
    grpc::ChannelArguments arguments;
    if (!authority.empty()) arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, authority);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = v1::DRAPlugin::NewStub(grpc::CreateCustomChannel(
        absl::StrCat("unix:", socket), grpc::InsecureChannelCredentials(), arguments));
    grpc::ClientContext context;
    v1::NodePrepareResourcesRequest request;
    request.add_claims()->set_uid(uid);
    v1::NodePrepareResourcesResponse response;
    return stub->NodePrepareResources(&context, request, &response);
  }

  TempDir dir_;
  RegistrationState state_;
  const Paths paths_;
  Mutex mutex_;
  CondVar changed_;
  bool blocked_ ABSL_GUARDED_BY(mutex_) = false;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  int finished_ ABSL_GUARDED_BY(mutex_) = 0;
  TaskPool pool_;
};

TEST_F(PluginServerTest, ServesBothSocketsForRootAlone) {
  const mode_t mask = ::umask(0);
  const auto server = Start(paths_);
  EXPECT_EQ(::umask(mask), 0u);  // as it was
  ASSERT_THAT(server, IsOk());
  for (const std::string& socket : {paths_.service_socket(), paths_.registration_socket()}) {
    struct stat info;
    ASSERT_EQ(::lstat(socket.c_str(), &info), 0);
    EXPECT_TRUE(S_ISSOCK(info.st_mode)) << socket;
    EXPECT_EQ(info.st_mode & 07777, 0600u) << socket;
  }
  EXPECT_THAT(CheckSockets(paths_, absl::Seconds(5)), IsOk());
}

TEST_F(PluginServerTest, ReplacesWhatThisPodLeft) {  // REG-02
  ASSERT_THAT(MakeDirectories(paths_.plugin_directory()), IsOk());
  ASSERT_THAT(MakeDirectories(paths_.registry_directory()), IsOk());
  LeaveSocket(paths_.service_socket());
  LeaveSocket(paths_.registration_socket());
  const auto server = Start(paths_);
  ASSERT_THAT(server, IsOk());
  EXPECT_THAT(CheckSockets(paths_, absl::Seconds(5)), IsOk());
}

TEST_F(PluginServerTest, TwoInstancesLeaveEachOtherAlone) {  // REG-12
  const Paths other = PathsOf(kOtherPod);
  auto first = Start(other);
  ASSERT_THAT(first, IsOk());
  auto second = Start(paths_);
  ASSERT_THAT(second, IsOk());
  (*second)->Stop(absl::Seconds(5));
  EXPECT_FALSE(Exists(paths_.service_socket()));
  EXPECT_THAT(CheckSockets(other, absl::Seconds(5)), IsOk());
}

TEST_F(PluginServerTest, AnOrderlyStopRemovesBothSockets) {  // REG-02
  auto server = Start(paths_);
  ASSERT_THAT(server, IsOk());
  ASSERT_THAT(CheckSockets(paths_, absl::Seconds(5)), IsOk());
  (*server)->Stop(absl::Seconds(5));
  EXPECT_FALSE(Exists(paths_.registration_socket()));
  EXPECT_FALSE(Exists(paths_.service_socket()));
  (*server)->Stop(absl::Seconds(5));  // once more does nothing
  // The same pod can begin again.
  server = Start(paths_);
  ASSERT_THAT(server, IsOk());
  EXPECT_THAT(CheckSockets(paths_, absl::Seconds(5)), IsOk());
  server->reset();
  EXPECT_FALSE(Exists(paths_.registration_socket()));
  EXPECT_FALSE(Exists(paths_.service_socket()));
}

TEST_F(PluginServerTest, StopWaitsForARunningCall) {
  auto server = Start(paths_);
  ASSERT_THAT(server, IsOk());
  Block(true);
  grpc::Status status;
  std::thread caller([&] { status = Prepare(paths_.service_socket()); });
  WaitUntilRunning();
  bool hurried = false;
  std::thread stopper([&] { (*server)->Stop(absl::Seconds(30), [&] { hurried = true; }); });
  while (Exists(paths_.registration_socket())) ::usleep(1000);  // taken back first
  Block(false);
  stopper.join();
  caller.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_FALSE(hurried);
  EXPECT_FALSE(Exists(paths_.service_socket()));
}

TEST_F(PluginServerTest, AfterTheGraceWorkIsHurriedNotAbandoned) {
  auto server = Start(paths_);
  ASSERT_THAT(server, IsOk());
  Block(true);
  std::thread caller([&] { Prepare(paths_.service_socket()); });
  WaitUntilRunning();
  (*server)->Stop(absl::Milliseconds(50), [&] { Block(false); });
  caller.join();
  MutexLock lock(&mutex_);
  EXPECT_EQ(finished_, 1);
}

TEST_F(PluginServerTest, CheckSocketsNamesTheOneThatIsSilent) {  // REG-07
  EXPECT_THAT(CheckSockets(paths_, absl::Seconds(2)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(paths_.registration_socket())));
  const auto server = Start(paths_);
  ASSERT_THAT(server, IsOk());
  ASSERT_EQ(::unlink(paths_.service_socket().c_str()), 0);
  EXPECT_THAT(CheckSockets(paths_, absl::Seconds(2)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(paths_.service_socket())));
}

TEST_F(PluginServerTest, CheckSocketsEndsInTime) {
  ASSERT_THAT(MakeDirectories(paths_.registry_directory()), IsOk());
  // Accepts and says nothing: a backlog that nobody serves.
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  paths_.registration_socket().copy(address.sun_path, paths_.registration_socket().size());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  const absl::Duration start = Clock::Real().Monotonic();
  EXPECT_THAT(CheckSockets(paths_, absl::Milliseconds(200)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(paths_.registration_socket())));
  EXPECT_LT(Clock::Real().Monotonic() - start, absl::Seconds(5));
}

TEST_F(PluginServerTest, LivesWhileAllClaimsWait) {  // REG-07
  const auto server = Start(paths_);
  ASSERT_THAT(server, IsOk());
  Block(true);
  std::vector<std::thread> callers;
  for (int i = 0; i < 12; ++i) {  // more than the pool has threads
    callers.emplace_back(
        [&, i] { Prepare(paths_.service_socket(), "localhost", absl::StrCat(i)); });
  }
  WaitUntilRunning();
  EXPECT_THAT(CheckSockets(paths_, absl::Seconds(5)), IsOk());
  Block(false);
  for (std::thread& caller : callers) caller.join();
}

TEST_F(PluginServerTest, APathThatIsNoSocketIsNotRemoved) {
  for (const bool registration : {false, true}) {
    const Paths paths = PathsOf(registration ? "pod-a" : "pod-b");
    const std::string path = registration ? paths.registration_socket() : paths.service_socket();
    ASSERT_THAT(MakeDirectories(paths.plugin_directory()), IsOk());
    ASSERT_THAT(MakeDirectories(paths.registry_directory()), IsOk());
    ASSERT_THAT(WriteFileAtomically(path, "keep"), IsOk());
    EXPECT_THAT(Start(paths), StatusIs(absl::StatusCode::kUnavailable, HasSubstr(path)));
    EXPECT_THAT(ReadFile(path), IsOkAndHolds("keep"));
    EXPECT_FALSE(IsSocket(registration ? paths.service_socket() : paths.registration_socket()));
  }
}

TEST_F(PluginServerTest, AnyAuthorityWillDo) {  // grpc-go and others send their own
  const auto server = Start(paths_);
  ASSERT_THAT(server, IsOk());
  for (const std::string& authority :
       {std::string(), std::string("localhost"), std::string("%2Fvar%2Flib%2Fkubelet%2Fdra.sock"),
        std::string("npu.huawei.com:443"), std::string("unix")}) {
    const grpc::Status status = Prepare(paths_.service_socket(), authority);
    EXPECT_TRUE(status.ok()) << authority << ": " << status.error_message();
  }
}

TEST_F(PluginServerTest, FiftyReconnects) {  // REG-03
  const auto server = Start(paths_);
  ASSERT_THAT(server, IsOk());
  for (int i = 0; i < 50; ++i) {
    const grpc::Status status = Prepare(paths_.service_socket());
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
}

}  // namespace
}  // namespace ascend::kubeletplugin
