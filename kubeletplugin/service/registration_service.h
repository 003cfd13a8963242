// Tells the kubelet who we are. Answers from constants: the kubelet gives GetInfo one second, and
// neither hardware nor the API server may be in the way.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SERVICE_REGISTRATION_SERVICE_H_
#define ASCEND_DRA_KUBELETPLUGIN_SERVICE_REGISTRATION_SERVICE_H_

#include <functional>
#include <memory>
#include <string>

#include "base/core/mutex.h"

namespace grpc {
class Service;
}

namespace ascend::kubeletplugin {

// What the kubelet last said of our registration. Thread-safe.
class RegistrationState {
 public:
  // `on_change` runs after each notification from the kubelet, with what it said; it must return
  // quickly.
  explicit RegistrationState(std::function<void(bool registered)> on_change)
      : on_change_(std::move(on_change)) {}

  bool registered() const;
  // "registered", or why not, for people.
  std::string message() const;

  void Notify(bool registered, const std::string& error);

 private:
  const std::function<void(bool)> on_change_;
  mutable Mutex mutex_;
  bool registered_ ABSL_GUARDED_BY(mutex_) = false;
  std::string message_ ABSL_GUARDED_BY(mutex_) = "the kubelet has not registered the driver yet";
};

// `state` must outlive the server that serves the service.
std::unique_ptr<grpc::Service> MakeRegistrationService(std::string driver_name,
                                                       std::string service_socket,
                                                       RegistrationState& state);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SERVICE_REGISTRATION_SERVICE_H_
