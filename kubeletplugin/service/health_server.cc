#include "kubeletplugin/service/health_server.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/mutex.h"
#include "base/runtime/logging.h"
#include "base/runtime/task_pool.h"
#include "health_v1.grpc.pb.h"

namespace ascend::kubeletplugin {
namespace {

constexpr size_t kMaxChecks = 4;  // at once

}  // namespace

class HealthServer::Impl final : public grpc::health::v1::Health::CallbackService {
 public:
  Impl(std::function<absl::Status()> live, std::function<absl::Status()> ready)
      : live_(std::move(live)), ready_(std::move(ready)) {}

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  grpc::health::v1::HealthCheckResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const std::string& service = request->service();
    if (service != "" && service != "liveness" && service != "readiness") {
      reactor->Finish(grpc::Status(grpc::StatusCode::NOT_FOUND,
                                   "unknown service: ask for liveness or readiness"));
      return reactor;
    }
    pool_.Submit([=, this] {
      const absl::Status status = service == "readiness" ? ready_() : live_();
      LogChange(service, status);
      response->set_status(status.ok() ? grpc::health::v1::HealthCheckResponse::SERVING
                                       : grpc::health::v1::HealthCheckResponse::NOT_SERVING);
      reactor->Finish(grpc::Status::OK);
    });
    return reactor;
  }

  absl::Status Listen(int port) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("[::]:", port), grpc::InsecureServerCredentials(),
                             &port_);
    builder.SetOption(grpc::MakeChannelArgumentOption(GRPC_ARG_ALLOW_REUSEPORT, 0));
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0) {
      return absl::UnavailableError(absl::StrCat("health port ", port, " cannot be opened"));
    }
    return absl::OkStatus();
  }

  void Stop() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
    server_->Wait();
  }

  int port() const { return port_; }

 private:
  // Probes come every few seconds: only what changed is worth a line.
  void LogChange(const std::string& service, const absl::Status& status) {
    MutexLock lock(&mutex_);
    const std::string message(status.message());
    auto [last, first_time] = last_.try_emplace(service, "");
    if (last->second == message) return;
    last->second = message;
    if (status.ok()) {
      LogInfo("probe succeeds again", {{"service", service}});
    } else {
      LogWarning("probe fails", {{"service", service}, {"error", status}});
    }
  }

  const std::function<absl::Status()> live_;
  const std::function<absl::Status()> ready_;
  Mutex mutex_;
  std::map<std::string, std::string> last_ ABSL_GUARDED_BY(mutex_);
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  TaskPool pool_{kMaxChecks};  // the first to go: its tasks use the rest
};

HealthServer::HealthServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HealthServer::~HealthServer() { impl_->Stop(); }
int HealthServer::port() const { return impl_->port(); }

absl::StatusOr<std::unique_ptr<HealthServer>> HealthServer::Start(
    int port, std::function<absl::Status()> live, std::function<absl::Status()> ready) {
  auto impl = std::make_unique<Impl>(std::move(live), std::move(ready));
  if (absl::Status status = impl->Listen(port); !status.ok()) return status;
  return std::unique_ptr<HealthServer>(new HealthServer(std::move(impl)));
}

}  // namespace ascend::kubeletplugin
