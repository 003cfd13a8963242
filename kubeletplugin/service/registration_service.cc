#include "kubeletplugin/service/registration_service.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/runtime/logging.h"
#include "kubeletplugin/service/health_streams.h"
#include "pluginregistration_v1.grpc.pb.h"

namespace ascend::kubeletplugin {
namespace {

class RegistrationService final : public pluginregistration::Registration::CallbackService {
 public:
  RegistrationService(std::string driver_name, std::string service_socket, RegistrationState& state)
      : state_(state) {
    info_.set_type("DRAPlugin");
    info_.set_name(std::move(driver_name));
    info_.set_endpoint(std::move(service_socket));
    // The kubelet takes the first that it knows; v1beta1 would lose share ids.
    info_.add_supported_versions("v1.DRAPlugin");
    info_.add_supported_versions("v1beta1.DRAPlugin");
    // A kubelet skips what it does not know.
    info_.add_supported_versions(kHealthServiceV1);
    info_.add_supported_versions(kHealthServiceV1alpha1);
  }

  grpc::ServerUnaryReactor* GetInfo(grpc::CallbackServerContext* context,
                                    const pluginregistration::InfoRequest*,
                                    pluginregistration::PluginInfo* response) override {
    *response = info_;
    return Finish(context);
  }

  // Never an error: since 1.35 the kubelet would take the registration back.
  grpc::ServerUnaryReactor* NotifyRegistrationStatus(
      grpc::CallbackServerContext* context, const pluginregistration::RegistrationStatus* request,
      pluginregistration::RegistrationStatusResponse*) override {
    state_.Notify(request->plugin_registered(), request->error());
    return Finish(context);
  }

 private:
  static grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  pluginregistration::PluginInfo info_;
  RegistrationState& state_;
};

}  // namespace

bool RegistrationState::registered() const {
  MutexLock lock(&mutex_);
  return registered_;
}

std::string RegistrationState::message() const {
  MutexLock lock(&mutex_);
  return message_;
}

void RegistrationState::Notify(bool registered, const std::string& error) {
  {
    MutexLock lock(&mutex_);
    registered_ = registered;
    message_ = registered ? "registered" : absl::StrCat("the kubelet refused the driver: ", error);
  }
  if (registered) {
    LogInfo("registered with the kubelet");
  } else {
    LogError("the kubelet refused the driver", {{"error", error}});
  }
  on_change_(registered);
}

std::unique_ptr<grpc::Service> MakeRegistrationService(std::string driver_name,
                                                       std::string service_socket,
                                                       RegistrationState& state) {
  return std::make_unique<RegistrationService>(std::move(driver_name), std::move(service_socket),
                                               state);
}

}  // namespace ascend::kubeletplugin
