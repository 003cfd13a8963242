#include "test/sim/kubelet.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "dra_v1.grpc.pb.h"
#include "dra_v1beta1.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "pluginregistration_v1.grpc.pb.h"
#include "test/sim/test_slices.h"

namespace ascend::sim {
namespace {

namespace v1 = ::k8s::io::kubelet::pkg::apis::dra::v1;
namespace v1beta1 = ::k8s::io::kubelet::pkg::apis::dra::v1beta1;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A plugin that says what the test wants it to say, on sockets of its own below `root`. Of v1beta1
// it serves only Prepare.
class FakePlugin : public pluginregistration::Registration::Service,
                   public v1::DRAPlugin::Service,
                   public v1beta1::DRAPlugin::Service {
 public:
  FakePlugin(const std::string& root, const std::string& name)
      : socket(JoinPath(root, "plugins_registry/" + name + "-reg.sock")),
        service_socket_(JoinPath(root, "plugins/" + name + ".sock")) {
    EXPECT_THAT(MakeDirectories(JoinPath(root, "plugins")), IsOk());
    info.set_type("DRAPlugin");
    info.set_name("npu.huawei.com");
    info.set_endpoint(service_socket_);
    info.add_supported_versions("v1.DRAPlugin");
    info.add_supported_versions("v1beta1.DRAPlugin");
  }
  ~FakePlugin() override { Stop(); }

  void Start() {
    StartService();
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(static_cast<pluginregistration::Registration::Service*>(this));
    registration_ = builder.BuildAndStart();
  }
  void StartService() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + service_socket_, grpc::InsecureServerCredentials());
    builder.RegisterService(static_cast<v1::DRAPlugin::Service*>(this));
    builder.RegisterService(static_cast<v1beta1::DRAPlugin::Service*>(this));
    service_ = builder.BuildAndStart();
  }
  // Each ends with the removal of its socket.
  void StopRegistration() { Shutdown(registration_); }
  void StopService() { Shutdown(service_); }
  void Stop() {
    StopRegistration();
    StopService();
  }

  const std::string socket;
  // Set before Start.
  pluginregistration::PluginInfo info;
  grpc::Status notify_answer;
  std::function<void(grpc::ServerContextBase&)> before_get_info;
  std::function<grpc::Status(const v1::NodePrepareResourcesRequest&,
                             v1::NodePrepareResourcesResponse*)>
      prepare = [](const auto& request, auto* response) {
        for (const auto& claim : request.claims()) {
          auto& device = *(*response->mutable_claims())[claim.uid()].add_devices();
          device.add_request_names("npu");
          device.set_pool_name("node-1");
          device.set_device_name("npu-0");
          device.add_cdi_device_ids("kind=" + claim.uid());
          device.set_share_id("share");
        }
        return grpc::Status::OK;
      };
  std::atomic<int> prepare_calls = 0;
  std::vector<std::string> notices() {
    MutexLock lock(&mutex_);
    return notices_;
  }

 private:
  static void Shutdown(std::unique_ptr<grpc::Server>& server) {
    if (server != nullptr) server->Shutdown(std::chrono::system_clock::now());
    server.reset();
  }

  grpc::Status GetInfo(grpc::ServerContext* context, const pluginregistration::InfoRequest*,
                       pluginregistration::PluginInfo* response) override {
    if (before_get_info) before_get_info(*context);
    *response = info;
    return grpc::Status::OK;
  }
  grpc::Status NotifyRegistrationStatus(grpc::ServerContext*,
                                        const pluginregistration::RegistrationStatus* request,
                                        pluginregistration::RegistrationStatusResponse*) override {
    MutexLock lock(&mutex_);
    notices_.push_back(request->plugin_registered() ? "registered" : request->error());
    return notify_answer;
  }
  grpc::Status NodePrepareResources(grpc::ServerContext*,
                                    const v1::NodePrepareResourcesRequest* request,
                                    v1::NodePrepareResourcesResponse* response) override {
    ++prepare_calls;
    return prepare(*request, response);
  }
  grpc::Status NodePrepareResources(grpc::ServerContext*,
                                    const v1beta1::NodePrepareResourcesRequest* request,
                                    v1beta1::NodePrepareResourcesResponse* response) override {
    for (const auto& claim : request->claims()) {
      (*response->mutable_claims())[claim.uid()].add_devices()->set_device_name("old");
    }
    return grpc::Status::OK;
  }
  grpc::Status NodeUnprepareResources(grpc::ServerContext*,
                                      const v1::NodeUnprepareResourcesRequest* request,
                                      v1::NodeUnprepareResourcesResponse* response) override {
    for (const auto& claim : request->claims()) (*response->mutable_claims())[claim.uid()];
    return grpc::Status::OK;
  }

  const std::string service_socket_;
  std::unique_ptr<grpc::Server> registration_;
  std::unique_ptr<grpc::Server> service_;
  Mutex mutex_;
  std::vector<std::string> notices_;
};

class KubeletTest : public ::testing::Test {
 protected:
  KubeletOptions Options() {
    return {.root = dir_.path(),
            .api_server = &server_,
            .wipe_delay = absl::Milliseconds(100),
            .get_info_timeout = absl::Milliseconds(300),
            .first_retry = absl::Milliseconds(20)};
  }
  static ClaimRef Claim(const std::string& name) { return {.name = name, .uid = name + "-uid"}; }

  TempDir dir_;
  ApiServer server_;
};

TEST_F(KubeletTest, RegistersAndCalls) {
  Kubelet kubelet(Options());
  FakePlugin plugin(dir_.path(), "a");
  plugin.Start();
  ASSERT_THAT(kubelet.WaitForRegistrations(1), IsOk());
  EXPECT_THAT(plugin.notices(), ElementsAre("registered"));
  ASSERT_THAT(kubelet.instances(), SizeIs(1));
  EXPECT_EQ(kubelet.instances()[0].service, "v1.DRAPlugin");

  const absl::StatusOr<PreparedClaims> prepared = kubelet.Prepare({Claim("x"), Claim("y")});
  ASSERT_THAT(prepared, IsOk());
  ASSERT_THAT(*prepared, SizeIs(2));
  const std::vector<PreparedDevice>& devices = prepared->at("x-uid");
  EXPECT_EQ(devices[0].share_id, "share");
  EXPECT_THAT(ContainerCdiIds(devices), ElementsAre("kind=x-uid"));
  EXPECT_THAT(ContainerCdiIds(devices, "npu"), ElementsAre("kind=x-uid"));
  EXPECT_THAT(ContainerCdiIds(devices, "other"), IsEmpty());

  // Marked as prepared until Unprepare or a restart.
  ASSERT_THAT(kubelet.SyncPod({Claim("x")}), IsOk());
  EXPECT_EQ(plugin.prepare_calls, 1);
  EXPECT_THAT(kubelet.Unprepare({Claim("x")}), IsOk());
  ASSERT_THAT(kubelet.SyncPod({Claim("x"), Claim("y")}), IsOkAndHolds(SizeIs(2)));
  EXPECT_EQ(plugin.prepare_calls, 2);
  kubelet.Restart();
  ASSERT_THAT(kubelet.WaitForRegistrations(2), IsOk());
  ASSERT_THAT(kubelet.SyncPod({Claim("y")}), IsOk());
  EXPECT_EQ(plugin.prepare_calls, 3);

  plugin.StopRegistration();
  ASSERT_THAT(kubelet.WaitForDeregistration(), IsOk());
  EXPECT_THAT(kubelet.Prepare({Claim("x")}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not registered")));
}

TEST_F(KubeletTest, AnOlderKubeletSpeaksV1beta1) {
  KubeletOptions options = Options();
  options.services = {"v1beta1.DRAPlugin"};
  Kubelet kubelet(options);
  FakePlugin plugin(dir_.path(), "a");
  plugin.Start();
  ASSERT_THAT(kubelet.WaitForRegistrations(1), IsOk());
  const absl::StatusOr<PreparedClaims> prepared = kubelet.Prepare({Claim("x")});
  ASSERT_THAT(prepared, IsOk());
  EXPECT_EQ(prepared->at("x-uid")[0].device, "old");
  // The fake serves only v1 there.
  EXPECT_THAT(kubelet.Unprepare({Claim("x")}), StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_F(KubeletTest, JudgesAnswers) {
  Kubelet kubelet(Options());
  FakePlugin plugin(dir_.path(), "a");
  std::function<grpc::Status(v1::NodePrepareResourcesResponse*)> answer;
  plugin.prepare = [&](const auto&, auto* response) { return answer(response); };
  plugin.Start();
  ASSERT_THAT(kubelet.WaitForRegistrations(1), IsOk());
  const auto prepare = [&] { return kubelet.Prepare({Claim("x"), Claim("y")}).status(); };

  answer = [](auto*) { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "busy"); };
  EXPECT_THAT(prepare(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("busy")));
  answer = [](auto* response) {
    (*response->mutable_claims())["x-uid"];
    return grpc::Status::OK;
  };
  EXPECT_THAT(prepare(), StatusIs(absl::StatusCode::kInternal, HasSubstr("skipped 1")));
  answer = [](auto* response) {
    for (const char* uid : {"x-uid", "y-uid", "z-uid"}) (*response->mutable_claims())[uid];
    return grpc::Status::OK;
  };
  EXPECT_THAT(prepare(), StatusIs(absl::StatusCode::kInternal, HasSubstr("unknown claim UID")));
  answer = [](auto* response) {
    (*response->mutable_claims())["x-uid"];
    (*response->mutable_claims())["y-uid"].set_error("chip is sick");
    return grpc::Status::OK;
  };
  EXPECT_THAT(prepare(), StatusIs(absl::StatusCode::kInternal, HasSubstr("chip is sick")));
  const absl::StatusOr<Answers> answers = kubelet.CallPrepare({Claim("x"), Claim("y")});
  ASSERT_THAT(answers, IsOk());
  EXPECT_EQ(answers->at("x-uid").error, "");
  EXPECT_EQ(answers->at("y-uid").error, "chip is sick");
}

TEST_F(KubeletTest, RefusesBadPlugins) {
  Kubelet kubelet(Options());
  int errors = 0;
  const auto refused = [&](const std::function<void(FakePlugin&)>& spoil) {
    FakePlugin plugin(dir_.path(), absl::StrCat("bad-", errors));
    spoil(plugin);
    plugin.Start();
    EXPECT_THAT(kubelet.WaitForRegistrationErrors(errors + 1), IsOk());
    plugin.Stop();
    EXPECT_THAT(kubelet.WaitForDeregistration(), IsOk());
    errors = static_cast<int>(kubelet.registration_errors().size());
    return kubelet.registration_errors().back();
  };
  EXPECT_THAT(refused([](FakePlugin& p) { p.info.set_type("ResourcePlugin"); }),
              HasSubstr("ResourcePlugin"));
  EXPECT_THAT(refused([](FakePlugin& p) { p.info.clear_supported_versions(); }),
              HasSubstr("no service"));
  EXPECT_THAT(refused([](FakePlugin& p) { p.info.set_endpoint("dra.sock"); }),
              HasSubstr("not an absolute path"));
  EXPECT_THAT(refused([](FakePlugin& p) {
                p.notify_answer = grpc::Status(grpc::StatusCode::INTERNAL, "no");
              }),
              HasSubstr("NotifyRegistrationStatus"));
  EXPECT_THAT(refused([](FakePlugin& p) {
                p.before_get_info = [](grpc::ServerContextBase& context) {
                  while (!context.IsCancelled()) std::this_thread::yield();
                };
              }),
              HasSubstr("GetInfo"));
  EXPECT_EQ(kubelet.registrations(), 0);
}

TEST_F(KubeletTest, NewestConnectedInstanceIsUsed) {
  Kubelet kubelet(Options());
  FakePlugin old(dir_.path(), "old"), fresh(dir_.path(), "fresh");
  old.Start();
  ASSERT_THAT(kubelet.WaitForRegistrations(1), IsOk());
  fresh.Start();
  ASSERT_THAT(kubelet.WaitForRegistrations(2), IsOk());
  ASSERT_THAT(kubelet.Prepare({Claim("x")}), IsOk());
  EXPECT_EQ(fresh.prepare_calls, 1);
  fresh.Stop();
  ASSERT_THAT(kubelet.WaitForRegistrations(2), IsOk());
  while (kubelet.instances().size() != 1) std::this_thread::yield();
  ASSERT_THAT(kubelet.Prepare({Claim("x")}), IsOk());
  EXPECT_EQ(old.prepare_calls, 1);

  // An endpoint can be registered once only.
  FakePlugin thief(dir_.path(), "thief");
  thief.info.set_endpoint(old.info.endpoint());
  thief.Start();
  ASSERT_THAT(kubelet.WaitForRegistrationErrors(1), IsOk());
  EXPECT_THAT(kubelet.registration_errors()[0], HasSubstr("already registered"));
}

TEST_F(KubeletTest, WipesSlicesOfALostDriver) {
  ASSERT_THAT(server_.Create(MakeSlice(1, "stale")), IsOk());
  Kubelet kubelet(Options());
  EXPECT_TRUE(server_.Slices().empty());  // at its start, all of the node

  FakePlugin plugin(dir_.path(), "a");
  plugin.Start();
  ASSERT_THAT(kubelet.WaitForRegistrations(1), IsOk());
  nlohmann::json other = MakeSlice(1, "other");
  other["spec"]["driver"] = "gpu.example.com";
  for (const nlohmann::json& slice :
       {MakeSlice(1, "mine"), MakeSlice(1, "remote", "node-2"), other}) {
    ASSERT_THAT(server_.Create(slice), IsOk());
  }
  // A lost connection starts the clock, registered or not.
  plugin.StopService();
  ASSERT_THAT(kubelet.WaitForDisconnect(), IsOk());
  ASSERT_THAT(kubelet.WaitForWipes(1), IsOk());
  EXPECT_THAT(server_.Slices(), SizeIs(2));
  EXPECT_THAT(kubelet.instances(), SizeIs(1));
  // It reconnects by itself.
  plugin.StartService();
  ASSERT_THAT(kubelet.WaitForRegistrations(1), IsOk());
  ASSERT_THAT(kubelet.Prepare({Claim("x")}), IsOk());
}

TEST_F(KubeletTest, EndOfRegistrationCancelsCalls) {
  Kubelet kubelet(Options());
  FakePlugin plugin(dir_.path(), "a");
  Mutex mutex;
  CondVar changed;
  bool called = false, finish = false;
  plugin.prepare = [&](const auto&, auto*) {
    MutexLock lock(&mutex);
    called = true;
    changed.SignalAll();
    while (!finish) changed.Wait(&mutex);
    return grpc::Status::OK;
  };
  plugin.Start();
  ASSERT_THAT(kubelet.WaitForRegistrations(1), IsOk());
  std::thread pod(
      [&] { EXPECT_THAT(kubelet.Prepare({Claim("x")}), StatusIs(absl::StatusCode::kCancelled)); });
  {
    MutexLock lock(&mutex);
    while (!called) changed.Wait(&mutex);
  }
  plugin.StopRegistration();
  pod.join();
  MutexLock lock(&mutex);
  finish = true;
  changed.SignalAll();
}

TEST_F(KubeletTest, IgnoresWhatIsNoSocket) {
  Kubelet kubelet(Options());
  ASSERT_THAT(WriteFileAtomically(JoinPath(dir_.path(), "plugins_registry/notes.txt"), "x"),
              IsOk());
  FakePlugin plugin(dir_.path(), "a");
  plugin.Start();
  ASSERT_THAT(kubelet.WaitForRegistrations(1), IsOk());
  EXPECT_THAT(kubelet.registration_errors(), IsEmpty());
}

}  // namespace
}  // namespace ascend::sim
