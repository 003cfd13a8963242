#include "kubeletplugin/service/plugin_server.h"

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/core/status_macros.h"
#include "base/runtime/clock.h"
#include "dra_v1.grpc.pb.h"
#include "pluginregistration_v1.grpc.pb.h"

namespace ascend::kubeletplugin {
namespace {

std::chrono::system_clock::time_point After(absl::Duration duration) {
  return std::chrono::system_clock::now() + absl::ToChronoMilliseconds(duration);
}

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& socket) {
  grpc::ChannelArguments arguments;
  // The default authority would be the percent-encoded path.
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(absl::StrCat("unix:", socket),
                                   grpc::InsecureChannelCredentials(), arguments);
}

absl::Status FromGrpc(const grpc::Status& status, const std::string& socket) {
  if (status.ok()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("socket ", socket, ": ", status.error_message()));
}

}  // namespace

PluginServer::PluginServer(const Paths& paths, std::vector<std::unique_ptr<grpc::Service>> services)
    : paths_(paths), services_(std::move(services)) {}

absl::StatusOr<std::unique_ptr<PluginServer>> PluginServer::Start(
    const Paths& paths, std::vector<std::unique_ptr<grpc::Service>> services) {
  ASCEND_RETURN_IF_ERROR(MakeDirectories(paths.plugin_directory(), 0750, /*durable=*/true));
  ASCEND_RETURN_IF_ERROR(MakeDirectories(paths.registry_directory(), 0750));

  std::unique_ptr<PluginServer> server(new PluginServer(paths, std::move(services)));
  grpc::ServerBuilder builder;
  builder.SetOption(grpc::MakeChannelArgumentOption(GRPC_ARG_ALLOW_REUSEPORT, 0));
  int service_bound = 0, registration_bound = 0;
  builder.AddListeningPort(absl::StrCat("unix:", paths.service_socket()),
                           grpc::InsecureServerCredentials(), &service_bound);
  // Bound last, and served from the same moment on as the service itself.
  builder.AddListeningPort(absl::StrCat("unix:", paths.registration_socket()),
                           grpc::InsecureServerCredentials(), &registration_bound);
  for (const auto& service : server->services_) builder.RegisterService(service.get());
  // The mask is the whole process's: one that would leave directories made meanwhile unusable
  // (0177) is not an option.
  const mode_t old_mask = ::umask(0077);
  server->server_ = builder.BuildAndStart();
  ::umask(old_mask);
  if (server->server_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ",
                     service_bound == 0 ? paths.service_socket() : paths.registration_socket(),
                     ": check that its directory is mounted and writable"));
  }
  for (const std::string& socket : {paths.service_socket(), paths.registration_socket()}) {
    if (::chmod(socket.c_str(), 0600) != 0) {
      return ErrnoToStatus(errno, absl::StrCat("chmod ", socket));
    }
  }
  return server;
}

PluginServer::~PluginServer() { Stop(absl::ZeroDuration()); }

void PluginServer::Stop(absl::Duration grace, const std::function<void()>& hurry) {
  if (server_ == nullptr) return;
  ::unlink(paths_.registration_socket().c_str());
  Mutex mutex;
  CondVar changed;
  bool ended = false;
  // After its deadline gRPC cancels the calls, but goes on waiting for their handlers.
  std::thread stopper([&] {
    server_->Shutdown(After(grace));
    MutexLock lock(&mutex);
    ended = true;
    changed.SignalAll();
  });
  if (hurry) {
    const absl::Duration deadline = Clock::Real().Monotonic() + grace;
    MutexLock lock(&mutex);
    while (!ended) {
      const absl::Duration left = deadline - Clock::Real().Monotonic();
      if (left <= absl::ZeroDuration()) break;
      changed.WaitFor(&mutex, left);
    }
    if (!ended) hurry();
  }
  stopper.join();
  server_->Wait();
  server_.reset();
  ::unlink(paths_.service_socket().c_str());
}

absl::Status CheckSockets(const Paths& paths, absl::Duration timeout) {
  const auto deadline = After(timeout);
  {
    grpc::ClientContext context;
    context.set_deadline(deadline);
    pluginregistration::PluginInfo info;
    const auto stub =
        pluginregistration::Registration::NewStub(ChannelTo(paths.registration_socket()));
    ASCEND_RETURN_IF_ERROR(
        FromGrpc(stub->GetInfo(&context, {}, &info), paths.registration_socket()));
  }
  grpc::ClientContext context;
  context.set_deadline(deadline);
  k8s::io::kubelet::pkg::apis::dra::v1::NodePrepareResourcesResponse response;
  const auto stub =
      k8s::io::kubelet::pkg::apis::dra::v1::DRAPlugin::NewStub(ChannelTo(paths.service_socket()));
  return FromGrpc(stub->NodePrepareResources(&context, {}, &response), paths.service_socket());
}

}  // namespace ascend::kubeletplugin
