#include "vnpu/agent/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "base/core/unique_fd.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "vnpu/agent/channel.h"
#include "vnpu/agent/service.h"
#include "vnpu/agent/unix_target.h"

namespace ascend::agent {
namespace {

constexpr mode_t kSocketMode = 0600;
constexpr int kMaxRequestBytes = 64 * 1024;  // every request is nearly empty

absl::Status InUseError(const std::string& socket_path) {
  return absl::FailedPreconditionError(
      absl::StrCat("another agent serves ", socket_path,
                   "; stop it, or give this one another --control-socket"));
}

absl::StatusOr<UniqueFd> LockPath(const std::string& socket_path) {
  const std::string lock_path = absl::StrCat(socket_path, ".lock");
  UniqueFd fd(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return ErrnoToStatus(errno, absl::StrCat("open ", lock_path));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return InUseError(socket_path);
    return ErrnoToStatus(errno, absl::StrCat("lock ", lock_path));
  }
  return fd;
}

// Whether a process listens there; one that is stopped or busy counts.
absl::StatusOr<bool> SomebodyListens(const std::string& socket_path) {
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoToStatus(errno, "socket");
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, socket_path.data(), socket_path.size());
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
      errno == EAGAIN) {
    return true;
  }
  if (errno == ECONNREFUSED || errno == ENOENT) return false;
  return ErrnoToStatus(errno, absl::StrCat("connect to ", socket_path));
}

// Makes sure that gRPC, which unlinks what it finds, finds only a socket of a dead process.
absl::Status CheckReplaceable(const std::string& socket_path) {
  struct stat status;
  if (lstat(socket_path.c_str(), &status) != 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return ErrnoToStatus(errno, absl::StrCat("stat ", socket_path));
  }
  if (!S_ISSOCK(status.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(socket_path, " exists and is not a socket; remove it"));
  }
  ASCEND_ASSIGN_OR_RETURN(const bool in_use, SomebodyListens(socket_path));
  return in_use ? InUseError(socket_path) : absl::OkStatus();
}

absl::Status CheckDirectory(const std::string& socket_path) {
  const std::string directory = socket_path.substr(0, socket_path.rfind('/') + 1);
  struct stat status;
  if (stat(directory.c_str(), &status) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("directory of the control socket, ", directory));
  }
  if (!S_ISDIR(status.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(directory, " is not a directory"));
  }
  return absl::OkStatus();
}

}  // namespace

class AgentServer::Impl {
 public:
  Impl(const Options& options, InventoryFeed* feed, std::shared_ptr<ProcessQueries> queries,
       std::shared_ptr<VnpuCalls> calls, std::shared_ptr<ResetCalls> resets)
      : service_(options.version, feed, std::move(queries), std::move(calls), std::move(resets)) {}

  absl::Status Start(const std::string& socket_path) {
    ASCEND_RETURN_IF_ERROR(CheckSocketPath(socket_path));
    ASCEND_RETURN_IF_ERROR(CheckDirectory(socket_path));
    ASCEND_ASSIGN_OR_RETURN(lock_, LockPath(socket_path));
    ASCEND_RETURN_IF_ERROR(CheckReplaceable(socket_path));

    grpc::ServerBuilder builder;
    int bound = 0;
    builder.AddListeningPort(UnixTarget(socket_path), grpc::InsecureServerCredentials(), &bound);
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
    // The clients' keepalive pings are how they notice a stopped agent; none is a strike.
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
    // The socket gets its mode when it is bound. Other threads' files get tighter modes, at worst.
    const mode_t umask_before = umask(~kSocketMode & 0777);
    server_ = builder.BuildAndStart();
    umask(umask_before);
    if (server_ == nullptr || bound == 0) {
      return absl::InternalError(absl::StrCat("cannot listen on ", socket_path,
                                              "; is the directory writable for this user?"));
    }
    return absl::OkStatus();
  }

  void Shutdown(absl::Duration grace) {
    if (server_ == nullptr) return;
    service_.EndCalls();
    server_->Shutdown(MonotonicIn(grace));
    server_->Wait();
    server_.reset();
    lock_.Reset();
  }

 private:
  UniqueFd lock_;
  AgentService service_;
  std::unique_ptr<grpc::Server> server_;
};

AgentServer::AgentServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

AgentServer::~AgentServer() { Shutdown(); }

absl::StatusOr<std::unique_ptr<AgentServer>> AgentServer::Start(
    const Options& options, InventoryFeed* feed, std::shared_ptr<ProcessQueries> queries,
    std::shared_ptr<VnpuCalls> calls, std::shared_ptr<ResetCalls> resets) {
  auto impl = std::make_unique<Impl>(options, feed, std::move(queries), std::move(calls),
                                     std::move(resets));
  ASCEND_RETURN_IF_ERROR(impl->Start(options.socket_path));
  return std::unique_ptr<AgentServer>(new AgentServer(std::move(impl)));
}

void AgentServer::Shutdown(absl::Duration grace) { impl_->Shutdown(grace); }

}  // namespace ascend::agent
