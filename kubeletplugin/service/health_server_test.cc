#include "kubeletplugin/service/health_server.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "health_v1.grpc.pb.h"

namespace ascend::kubeletplugin {
namespace {

namespace health = ::grpc::health::v1;
using ::testing::HasSubstr;

class HealthServerTest : public ::testing::Test {
 protected:
  void Start() {
    auto server =
        HealthServer::Start(0, [this] { return Get(live_); }, [this] { return Get(ready_); });
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    ASSERT_GT(server_->port(), 0);
    stub_ = health::Health::NewStub(grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                                        grpc::InsecureChannelCredentials()));
  }
  void Set(absl::Status live, absl::Status ready) {
    MutexLock lock(&mutex_);
    live_ = std::move(live);
    ready_ = std::move(ready);
  }
  absl::Status Get(const absl::Status& which) {
    MutexLock lock(&mutex_);
    return which;
  }
  // "SERVING", "NOT_SERVING", or the error.
  std::string Check(const std::string& service) {
    grpc::ClientContext context;
    health::HealthCheckRequest request;
    request.set_service(service);
    health::HealthCheckResponse response;
    const grpc::Status status = stub_->Check(&context, request, &response);
    if (!status.ok()) return absl::StrCat(status.error_code(), " ", status.error_message());
    return health::HealthCheckResponse::ServingStatus_Name(response.status());
  }

  Mutex mutex_;
  absl::Status live_, ready_;
  std::unique_ptr<HealthServer> server_;
  std::unique_ptr<health::Health::Stub> stub_;
};

TEST_F(HealthServerTest, TellsLivenessFromReadiness) {  // REG-07
  Start();
  EXPECT_EQ(Check("liveness"), "SERVING");
  EXPECT_EQ(Check("readiness"), "SERVING");
  EXPECT_EQ(Check(""), "SERVING");

  Set(absl::OkStatus(), absl::UnavailableError("no slices yet"));
  EXPECT_EQ(Check("liveness"), "SERVING");
  EXPECT_EQ(Check(""), "SERVING");
  EXPECT_EQ(Check("readiness"), "NOT_SERVING");

  Set(absl::UnavailableError("socket gone"), absl::OkStatus());
  EXPECT_EQ(Check("liveness"), "NOT_SERVING");
  EXPECT_EQ(Check(""), "NOT_SERVING");
  EXPECT_EQ(Check("readiness"), "SERVING");
}

TEST_F(HealthServerTest, AnUnknownServiceIsNotFound) {
  Start();
  EXPECT_THAT(Check("startup"), HasSubstr("unknown service"));
}

TEST_F(HealthServerTest, SaysWhatChangedOnce) {  // REG-05
  Start();
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) Check("readiness");
  Set(absl::OkStatus(), absl::UnavailableError("not registered"));
  for (int i = 0; i < 3; ++i) Check("readiness");
  Set(absl::OkStatus(), absl::OkStatus());
  for (int i = 0; i < 3; ++i) Check("readiness");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("not registered"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log;
}

TEST_F(HealthServerTest, ACheckThatTakesLongDelaysNoOther) {
  Mutex mutex;
  CondVar changed;
  bool go_on = false, begun = false;
  auto server = HealthServer::Start(
      0,
      [&] {
        MutexLock lock(&mutex);
        begun = true;
        changed.SignalAll();
        while (!go_on) changed.Wait(&mutex);
        return absl::OkStatus();
      },
      [] { return absl::OkStatus(); });
  ASSERT_THAT(server, IsOk());
  stub_ = health::Health::NewStub(grpc::CreateChannel(absl::StrCat("127.0.0.1:", (*server)->port()),
                                                      grpc::InsecureChannelCredentials()));
  std::thread slow([&] { EXPECT_EQ(Check("liveness"), "SERVING"); });
  {
    MutexLock lock(&mutex);
    while (!begun) changed.Wait(&mutex);
  }
  EXPECT_EQ(Check("readiness"), "SERVING");
  {
    MutexLock lock(&mutex);
    go_on = true;
    changed.SignalAll();
  }
  slow.join();
}

TEST_F(HealthServerTest, APortInUseIsNamed) {  // REG-12
  Start();
  EXPECT_THAT(
      HealthServer::Start(
          server_->port(), [] { return absl::OkStatus(); }, [] { return absl::OkStatus(); }),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr(absl::StrCat(server_->port()))));
}

}  // namespace
}  // namespace ascend::kubeletplugin
