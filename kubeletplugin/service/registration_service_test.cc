#include "kubeletplugin/service/registration_service.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pluginregistration_v1.grpc.pb.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RegistrationServiceTest : public ::testing::Test {
 protected:
  RegistrationServiceTest() : state_([this](bool) { ++changes_; }) {
    service_ = MakeRegistrationService("npu.huawei.com", "/kubelet/dra.sock", state_);
    grpc::ServerBuilder builder;
    const std::string address = absl::StrCat("unix:", dir_.File("s"));
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = pluginregistration::Registration::NewStub(
        grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  }

  // True if the call itself succeeded: since 1.35 a failed one takes the registration back.
  bool Notify(bool registered, const std::string& error = "") {
    grpc::ClientContext context;
    pluginregistration::RegistrationStatus status;
    status.set_plugin_registered(registered);
    status.set_error(error);
    pluginregistration::RegistrationStatusResponse response;
    return stub_->NotifyRegistrationStatus(&context, status, &response).ok();
  }

  std::atomic<int> changes_ = 0;
  RegistrationState state_;
  TempDir dir_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<pluginregistration::Registration::Stub> stub_;
};

TEST_F(RegistrationServiceTest, SaysWhoWeAreWithinTheKubeletsSecond) {  // REG-04
  const auto start = std::chrono::steady_clock::now();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
  pluginregistration::PluginInfo info;
  ASSERT_TRUE(stub_->GetInfo(&context, {}, &info).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_EQ(info.type(), "DRAPlugin");
  EXPECT_EQ(info.name(), "npu.huawei.com");
  EXPECT_EQ(info.endpoint(), "/kubelet/dra.sock");
  // The kubelet takes the first that it knows.
  EXPECT_THAT(info.supported_versions(),
              ElementsAre("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth",
                          "v1alpha1.DRAResourceHealth"));
}

TEST_F(RegistrationServiceTest, KeepsTheLastAnswerOfTheKubelet) {  // REG-05
  EXPECT_FALSE(state_.registered());
  EXPECT_THAT(state_.message(), HasSubstr("not registered the driver yet"));

  EXPECT_TRUE(Notify(false, "unsupported version"));
  EXPECT_FALSE(state_.registered());
  EXPECT_THAT(state_.message(), HasSubstr("unsupported version"));

  EXPECT_TRUE(Notify(true));
  EXPECT_TRUE(state_.registered());
  EXPECT_EQ(state_.message(), "registered");

  EXPECT_TRUE(Notify(false, "endpoint already registered"));
  EXPECT_FALSE(state_.registered());
  EXPECT_EQ(changes_, 3);
}

}  // namespace
}  // namespace ascend::kubeletplugin
