#include "test/sim/kubelet.h"

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/core/directory_watch.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/core/status_macros.h"
#include "dra_v1.grpc.pb.h"
#include "dra_v1beta1.grpc.pb.h"
#include "pluginregistration_v1.grpc.pb.h"

namespace ascend::sim {
namespace {

namespace dra_v1 = ::k8s::io::kubelet::pkg::apis::dra::v1;
namespace dra_v1beta1 = ::k8s::io::kubelet::pkg::apis::dra::v1beta1;

constexpr absl::Duration kDialTimeout = absl::Seconds(10);
constexpr absl::Duration kNotifyTimeout = absl::Seconds(5);
constexpr absl::Duration kMaxRetry = absl::Seconds(122);
constexpr absl::Duration kReconcileTick = absl::Seconds(1);
// How long the watch of a connection takes to notice that it is not wanted any more.
constexpr absl::Duration kConnectionPoll = absl::Milliseconds(50);

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

std::chrono::system_clock::time_point After(absl::Duration duration) {
  return absl::ToChronoTime(absl::Now() + duration);
}

std::shared_ptr<grpc::Channel> Dial(const std::string& path, const std::string& authority) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, authority);
  return grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments);
}

// Says whether two looks at a socket file saw the same one.
struct FileIdentity {
  ino_t inode = 0;
  int64_t changed_ns = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

std::map<std::string, FileIdentity> ListSockets(const std::string& directory) {
  std::map<std::string, FileIdentity> sockets;
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(directory);
  if (!names.ok()) return sockets;
  for (const std::string& name : *names) {
    const std::string path = JoinPath(directory, name);
    struct stat info;
    if (absl::StartsWith(name, ".") || ::lstat(path.c_str(), &info) != 0 ||
        !S_ISSOCK(info.st_mode)) {
      continue;
    }
    // A chmod changes ctime, but not which socket it is: the modification time is that of bind.
    sockets[path] = {info.st_ino,
                     info.st_mtim.tv_sec * int64_t{1'000'000'000} + info.st_mtim.tv_nsec};
  }
  return sockets;
}

struct Instance {
  PluginInstance info;
  std::shared_ptr<grpc::Channel> channel;
  bool removed = false;  // guarded by the kubelet's mutex, as info.connected
};

void CopyShareId(const dra_v1::Device& from, PreparedDevice* to) { to->share_id = from.share_id(); }
void CopyShareId(const dra_v1beta1::Device&, PreparedDevice*) {}

template <typename Request>
Request MakeRequest(const std::vector<ClaimRef>& claims) {
  Request request;
  for (const ClaimRef& claim : claims) {
    auto* entry = request.add_claims();
    entry->set_namespace_(claim.namespace_name);
    entry->set_name(claim.name);
    entry->set_uid(claim.uid);
  }
  return request;
}

template <typename Response>
Answers PrepareAnswers(const Response& response) {
  Answers answers;
  for (const auto& [uid, claim] : response.claims()) {
    ClaimAnswer& answer = answers[uid];
    answer.error = claim.error();
    for (const auto& from : claim.devices()) {
      PreparedDevice& to = answer.devices.emplace_back();
      to.requests.assign(from.request_names().begin(), from.request_names().end());
      to.pool = from.pool_name();
      to.device = from.device_name();
      to.cdi_device_ids.assign(from.cdi_device_ids().begin(), from.cdi_device_ids().end());
      CopyShareId(from, &to);
    }
  }
  return answers;
}

template <typename Response>
Answers UnprepareAnswers(const Response& response) {
  Answers answers;
  for (const auto& [uid, claim] : response.claims()) answers[uid].error = claim.error();
  return answers;
}

absl::Status Judge(const std::string& call, const std::vector<ClaimRef>& claims,
                   const Answers& answers) {
  for (const auto& [uid, answer] : answers) {
    const auto claim = absl::c_find_if(claims, [&](const ClaimRef& c) { return c.uid == uid; });
    if (claim == claims.end()) {
      return absl::InternalError(absl::StrCat(call, " returned unknown claim UID ", uid));
    }
    if (!answer.error.empty()) {
      return absl::InternalError(
          absl::StrCat(call, " failed for ResourceClaim ", claim->name, ": ", answer.error));
    }
  }
  if (answers.size() < claims.size()) {
    return absl::InternalError(
        absl::StrCat(call, " skipped ", claims.size() - answers.size(), " ResourceClaims"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> ContainerCdiIds(const std::vector<PreparedDevice>& devices,
                                         const std::string& request) {
  std::vector<std::string> ids;
  for (const PreparedDevice& device : devices) {
    if (request.empty() || device.requests.empty() ||
        absl::c_linear_search(device.requests, request)) {
      ids.insert(ids.end(), device.cdi_device_ids.begin(), device.cdi_device_ids.end());
    }
  }
  return ids;
}

class Kubelet::Impl {
 public:
  explicit Impl(const KubeletOptions& options)
      : options_(options), registry_(JoinPath(options.root, "plugins_registry")) {}

  ~Impl() { Stop(); }

  void Start() {
    absl::Status status = MakeDirectories(registry_, 0750);
    if (status.ok()) {
      {
        MutexLock lock(&mutex_);
        stopping_ = false;
        dirty_ = true;
      }
      if (options_.api_server != nullptr) options_.api_server->DeleteSlices(options_.node_name);
      queue_ = std::make_unique<grpc::CompletionQueue>();
      connections_ = std::thread([this] { WatchConnections(); });
      manager_ = std::thread([this] { Manage(); });
      absl::StatusOr<std::unique_ptr<DirectoryWatch>> watch =
          DirectoryWatch::Start(registry_, [this] {
            MutexLock lock(&mutex_);
            dirty_ = true;
            changed_.SignalAll();
          });
      status = watch.status();
      if (status.ok()) watch_ = *std::move(watch);
    }
    if (!status.ok()) {
      std::fprintf(stderr, "simulated kubelet: %s\n", status.ToString().c_str());
      std::abort();
    }
  }

  void Stop() {
    if (!manager_.joinable()) return;
    watch_.reset();
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      for (auto& [context, instance] : calls_) context->TryCancel();
      changed_.SignalAll();
    }
    manager_.join();
    for (std::thread& attempt : attempts_) attempt.join();
    attempts_.clear();
    {
      MutexLock lock(&mutex_);
      for (const std::shared_ptr<Instance>& instance : instances_) instance->removed = true;
      instances_.clear();
      sockets_.clear();
      prepared_.clear();
      wipe_at_.clear();
      while (watched_connections_ > 0) changed_.Wait(&mutex_);
    }
    queue_->Shutdown();
    connections_.join();
    queue_.reset();
  }

  absl::Status WaitUntil(const std::function<bool(const Impl&)>& condition, absl::Duration timeout,
                         absl::string_view what) {
    const absl::Time deadline = absl::Now() + timeout;
    MutexLock lock(&mutex_);
    while (!condition(*this)) {
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) {
        return absl::DeadlineExceededError(
            absl::StrCat(what, " did not come within ", absl::FormatDuration(timeout),
                         errors_.empty() ? "" : "; last registration error: ",
                         errors_.empty() ? "" : errors_.back()));
      }
      changed_.WaitFor(&mutex_, left);
    }
    return absl::OkStatus();
  }

  // The four below are read by conditions of WaitUntil, which hold the mutex.
  int registrations_locked() const { return registrations_; }
  int errors_locked() const { return static_cast<int>(errors_.size()); }
  int wipes_locked() const { return wipes_; }
  const Instance* Newest() const {
    for (auto it = instances_.rbegin(); it != instances_.rend(); ++it) {
      if ((*it)->info.driver == options_.driver) return it->get();
    }
    return nullptr;
  }
  bool AnyConnected(const std::string& driver) const {
    return absl::c_any_of(instances_, [&](const std::shared_ptr<Instance>& instance) {
      return instance->info.driver == driver && instance->info.connected;
    });
  }

  template <typename Read>
  auto WithLock(Read read) {
    MutexLock lock(&mutex_);
    return read(*this);
  }

  std::vector<std::string> errors() const { return errors_; }
  std::vector<PluginInstance> instances() const {
    std::vector<PluginInstance> infos;
    for (const std::shared_ptr<Instance>& instance : instances_) infos.push_back(instance->info);
    return infos;
  }

  absl::StatusOr<Answers> CallPrepare(const std::vector<ClaimRef>& claims) {
    return Call([&](Instance& instance, grpc::ClientContext* context) -> absl::StatusOr<Answers> {
      if (instance.info.service == "v1.DRAPlugin") {
        dra_v1::NodePrepareResourcesResponse response;
        ASCEND_RETURN_IF_ERROR(FromGrpc(
            dra_v1::DRAPlugin::NewStub(instance.channel)
                ->NodePrepareResources(
                    context, MakeRequest<dra_v1::NodePrepareResourcesRequest>(claims), &response)));
        return PrepareAnswers(response);
      }
      dra_v1beta1::NodePrepareResourcesResponse response;
      ASCEND_RETURN_IF_ERROR(
          FromGrpc(dra_v1beta1::DRAPlugin::NewStub(instance.channel)
                       ->NodePrepareResources(
                           context, MakeRequest<dra_v1beta1::NodePrepareResourcesRequest>(claims),
                           &response)));
      return PrepareAnswers(response);
    });
  }

  absl::StatusOr<Answers> CallUnprepare(const std::vector<ClaimRef>& claims) {
    return Call([&](Instance& instance, grpc::ClientContext* context) -> absl::StatusOr<Answers> {
      if (instance.info.service == "v1.DRAPlugin") {
        dra_v1::NodeUnprepareResourcesResponse response;
        ASCEND_RETURN_IF_ERROR(
            FromGrpc(dra_v1::DRAPlugin::NewStub(instance.channel)
                         ->NodeUnprepareResources(
                             context, MakeRequest<dra_v1::NodeUnprepareResourcesRequest>(claims),
                             &response)));
        return UnprepareAnswers(response);
      }
      dra_v1beta1::NodeUnprepareResourcesResponse response;
      ASCEND_RETURN_IF_ERROR(
          FromGrpc(dra_v1beta1::DRAPlugin::NewStub(instance.channel)
                       ->NodeUnprepareResources(
                           context, MakeRequest<dra_v1beta1::NodeUnprepareResourcesRequest>(claims),
                           &response)));
      return UnprepareAnswers(response);
    });
  }

  // The remembered devices of a claim that is marked prepared.
  std::optional<std::vector<PreparedDevice>> Remembered(const std::string& uid) {
    MutexLock lock(&mutex_);
    const auto it = prepared_.find(uid);
    if (it == prepared_.end()) return std::nullopt;
    return it->second;
  }
  void Remember(const PreparedClaims& claims) {
    MutexLock lock(&mutex_);
    for (const auto& [uid, devices] : claims) prepared_[uid] = devices;
  }
  void Forget(const std::vector<ClaimRef>& claims) {
    MutexLock lock(&mutex_);
    for (const ClaimRef& claim : claims) prepared_.erase(claim.uid);
  }

 private:
  struct Socket {
    FileIdentity identity;
    bool attempting = false;
    bool registered = false;
    absl::Time retry_at = absl::InfinitePast();
    absl::Duration backoff;
  };
  struct ConnectionWatch {
    std::shared_ptr<Instance> instance;
    grpc_connectivity_state state;
  };

  // --- Registration ---

  void Manage() {
    for (;;) {
      {
        MutexLock lock(&mutex_);
        const absl::Time tick = absl::Now() + kReconcileTick;
        while (!stopping_ && !dirty_) {
          const absl::Duration left = std::min(tick, NextTimer()) - absl::Now();
          if (left <= absl::ZeroDuration()) break;
          changed_.WaitFor(&mutex_, left);
        }
        if (stopping_) return;
        dirty_ = false;
      }
      WipeIfDue();
      // Outside the lock: the directory may be slow.
      const std::map<std::string, FileIdentity> files = ListSockets(registry_);
      MutexLock lock(&mutex_);
      Reconcile(files);
    }
  }

  absl::Time NextTimer() const {
    absl::Time next = absl::InfiniteFuture();
    for (const auto& [path, socket] : sockets_) {
      if (!socket.registered && !socket.attempting) next = std::min(next, socket.retry_at);
    }
    for (const auto& [driver, at] : wipe_at_) next = std::min(next, at);
    return next;
  }

  void Reconcile(const std::map<std::string, FileIdentity>& files) {
    for (auto it = sockets_.begin(); it != sockets_.end();) {
      const auto file = files.find(it->first);
      if (file != files.end() && file->second == it->second.identity) {
        ++it;
      } else {
        Deregister(it->first);
        it = sockets_.erase(it);
      }
    }
    for (const auto& [path, identity] : files) {
      const auto [it, inserted] = sockets_.emplace(path, Socket{.identity = identity});
      Socket& socket = it->second;
      if (inserted) socket.backoff = options_.first_retry;
      if (socket.registered || socket.attempting || socket.retry_at > absl::Now()) continue;
      socket.attempting = true;
      attempts_.emplace_back([this, p = path, id = identity] { Attempt(p, id); });
    }
    changed_.SignalAll();
  }

  // Forgets the instance behind a registration socket and cuts its calls.
  void Deregister(const std::string& path) {
    for (auto it = instances_.begin(); it != instances_.end();) {
      if ((*it)->info.registration_socket != path) {
        ++it;
        continue;
      }
      (*it)->removed = true;
      for (auto& [context, instance] : calls_) {
        if (instance == it->get()) context->TryCancel();
      }
      const std::string driver = (*it)->info.driver;
      it = instances_.erase(it);
      UpdateWipe(driver);
    }
  }

  void Attempt(const std::string& path, const FileIdentity& identity) {
    std::shared_ptr<Instance> instance;
    const absl::Status status = Register(path, identity, &instance);
    MutexLock lock(&mutex_);
    const auto it = sockets_.find(path);
    const bool current = it != sockets_.end() && it->second.identity == identity;
    if (current) {
      it->second.attempting = false;
      it->second.registered = status.ok();
      it->second.retry_at = absl::Now() + it->second.backoff;
      it->second.backoff = std::min(it->second.backoff * 2, kMaxRetry);
    }
    if (!status.ok() || !current) {
      if (instance != nullptr && !instance->removed) Deregister(path);
      if (!status.ok() && !stopping_) errors_.push_back(std::string(status.message()));
    } else {
      ++registrations_;
    }
    changed_.SignalAll();
  }

  // GetInfo, validate, connect, notify. On success the instance is in instances_.
  absl::Status Register(const std::string& path, const FileIdentity& identity,
                        std::shared_ptr<Instance>* registered) {
    const std::shared_ptr<grpc::Channel> channel =
        Dial(path, absl::StrReplaceAll(path, {{"/", "%2F"}}));
    std::unique_ptr<pluginregistration::Registration::Stub> stub =
        pluginregistration::Registration::NewStub(channel);
    pluginregistration::PluginInfo info;
    if (!Connect(*channel)) {
      return absl::UnavailableError(absl::StrCat("failed to dial socket ", path));
    }
    ASCEND_RETURN_IF_ERROR(Tracked(options_.get_info_timeout, nullptr,
                                   [&](grpc::ClientContext* context) {
                                     return FromGrpc(stub->GetInfo(context, {}, &info));
                                   }))
        .With("failed to get plugin info using RPC GetInfo at socket ", path);

    absl::StatusOr<std::shared_ptr<Instance>> instance = Validate(path, info);
    absl::Status status = instance.status();
    if (status.ok()) status = Adopt(*instance, identity);
    if (status.ok()) *registered = *instance;
    pluginregistration::RegistrationStatus notice;
    notice.set_plugin_registered(status.ok());
    if (!status.ok()) notice.set_error(std::string(status.message()));
    pluginregistration::RegistrationStatusResponse response;
    const absl::Status notified =
        Tracked(kNotifyTimeout, nullptr, [&](grpc::ClientContext* context) {
          return FromGrpc(stub->NotifyRegistrationStatus(context, notice, &response));
        });
    ASCEND_RETURN_IF_ERROR(status);
    ASCEND_RETURN_IF_ERROR(notified).With("NotifyRegistrationStatus at socket ", path);
    return absl::OkStatus();
  }

  bool Connect(grpc::Channel& channel) {
    const absl::Time deadline = absl::Now() + kDialTimeout;
    while (absl::Now() < deadline) {
      if (channel.WaitForConnected(After(kConnectionPoll))) return true;
      MutexLock lock(&mutex_);
      if (stopping_) return false;
    }
    return false;
  }

  absl::StatusOr<std::shared_ptr<Instance>> Validate(const std::string& path,
                                                     const pluginregistration::PluginInfo& info) {
    if (info.type() != "DRAPlugin") {
      return absl::InvalidArgumentError(absl::StrCat(
          "no handler registered for plugin type: ", info.type(), " at socket ", path));
    }
    if (info.name().empty()) return absl::InvalidArgumentError("the plugin has no name");
    auto instance = std::make_shared<Instance>();
    instance->info.driver = info.name();
    instance->info.registration_socket = path;
    instance->info.endpoint = info.endpoint().empty() ? path : info.endpoint();
    instance->info.supported_versions.assign(info.supported_versions().begin(),
                                             info.supported_versions().end());
    if (!absl::StartsWith(instance->info.endpoint, "/")) {
      return absl::InvalidArgumentError(
          absl::StrCat("endpoint ", instance->info.endpoint, " is not an absolute path"));
    }
    const auto service = absl::c_find_if(info.supported_versions(), [&](const std::string& name) {
      return absl::c_linear_search(options_.services, name);
    });
    if (service == info.supported_versions().end()) {
      return absl::InvalidArgumentError("the plugin supports no service that kubelet knows");
    }
    instance->info.service = *service;
    return instance;
  }

  absl::Status Adopt(const std::shared_ptr<Instance>& instance, const FileIdentity& identity) {
    MutexLock lock(&mutex_);
    if (stopping_) return absl::CancelledError("kubelet stops");
    const auto socket = sockets_.find(instance->info.registration_socket);
    if (socket == sockets_.end() || !(socket->second.identity == identity)) {
      return absl::CancelledError("the registration socket is gone");
    }
    for (const std::shared_ptr<Instance>& other : instances_) {
      if (other->info.driver == instance->info.driver &&
          other->info.endpoint == instance->info.endpoint) {
        return absl::AlreadyExistsError(
            absl::StrCat("endpoint ", instance->info.endpoint, " already registered"));
      }
    }
    instance->channel = Dial(instance->info.endpoint, "localhost");
    instances_.push_back(instance);
    UpdateWipe(instance->info.driver);
    ++watched_connections_;
    auto* watch = new ConnectionWatch{instance, instance->channel->GetState(true)};
    instance->channel->NotifyOnStateChange(watch->state, After(kConnectionPoll), queue_.get(),
                                           watch);
    return absl::OkStatus();
  }

  // --- Connections ---

  void WatchConnections() {
    void* tag;
    bool ok;
    while (queue_->Next(&tag, &ok)) {
      // Before the tag is looked at: Adopt made it under the lock, and ThreadSanitizer does not see
      // that the queue orders the two.
      MutexLock lock(&mutex_);
      std::unique_ptr<ConnectionWatch> watch(static_cast<ConnectionWatch*>(tag));
      Instance& instance = *watch->instance;
      watch->state = instance.channel->GetState(true);
      const bool connected = watch->state == GRPC_CHANNEL_READY && !instance.removed;
      if (connected != instance.info.connected) {
        instance.info.connected = connected;
        UpdateWipe(instance.info.driver);
      }
      if (instance.removed) {
        --watched_connections_;
        changed_.SignalAll();
        continue;
      }
      instance.channel->NotifyOnStateChange(watch->state, After(kConnectionPoll), queue_.get(),
                                            watch.get());
      watch.release();  // the queue has it
    }
  }

  // A running timer is not extended by further losses.
  void UpdateWipe(const std::string& driver) {
    if (AnyConnected(driver)) {
      wipe_at_.erase(driver);
    } else {
      wipe_at_.emplace(driver, absl::Now() + options_.wipe_delay);
    }
    changed_.SignalAll();
  }

  void WipeIfDue() {
    std::vector<std::string> due;
    {
      MutexLock lock(&mutex_);
      for (auto it = wipe_at_.begin(); it != wipe_at_.end();) {
        if (it->second > absl::Now()) {
          ++it;
          continue;
        }
        due.push_back(it->first);
        it = wipe_at_.erase(it);
      }
    }
    for (const std::string& driver : due) {
      if (options_.api_server != nullptr) {
        options_.api_server->DeleteSlices(options_.node_name, driver);
      }
      MutexLock lock(&mutex_);
      ++wipes_;
      changed_.SignalAll();
    }
  }

  // --- Calls ---

  // Runs `use` with a context that Stop, or the end of `instance`, cancels.
  template <typename Use>
  auto Tracked(absl::Duration timeout, const Instance* instance, Use use)
      -> decltype(use(static_cast<grpc::ClientContext*>(nullptr))) {
    grpc::ClientContext context;
    context.set_deadline(After(timeout));
    {
      MutexLock lock(&mutex_);
      if (stopping_) return absl::CancelledError("kubelet stops");
      calls_[&context] = instance;
    }
    const absl::Cleanup done = [this, &context] {
      MutexLock lock(&mutex_);
      calls_.erase(&context);
    };
    return use(&context);
  }

  absl::StatusOr<Answers> Call(
      const std::function<absl::StatusOr<Answers>(Instance&, grpc::ClientContext*)>& use) {
    std::shared_ptr<Instance> chosen;
    {
      MutexLock lock(&mutex_);
      for (const std::shared_ptr<Instance>& instance : instances_) {
        if (instance->info.driver != options_.driver) continue;
        if (chosen == nullptr || instance->info.connected || !chosen->info.connected) {
          chosen = instance;
        }
      }
    }
    if (chosen == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("DRA driver ", options_.driver, " is not registered"));
    }
    return Tracked(options_.call_timeout, chosen.get(),
                   [&](grpc::ClientContext* context) { return use(*chosen, context); });
  }

  const KubeletOptions options_;
  const std::string registry_;
  // All below guarded by mutex_, but for the threads, the queue and the watch, which Start and Stop
  // own.
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ = false;
  bool dirty_ = false;                     // something happened in the registry
  std::map<std::string, Socket> sockets_;  // by path
  std::vector<std::shared_ptr<Instance>> instances_;
  std::map<grpc::ClientContext*, const Instance*> calls_;  // running; no instance: registration
  std::map<std::string, absl::Time> wipe_at_;              // by driver
  PreparedClaims prepared_;
  std::vector<std::string> errors_;
  int registrations_ = 0;
  int wipes_ = 0;
  int watched_connections_ = 0;
  std::unique_ptr<grpc::CompletionQueue> queue_;
  std::unique_ptr<DirectoryWatch> watch_;
  std::thread manager_;
  std::thread connections_;
  std::vector<std::thread> attempts_;  // grown by the manager only
};

Kubelet::Kubelet(KubeletOptions options)
    : options_(std::move(options)), impl_(std::make_unique<Impl>(options_)) {
  Start();
}
Kubelet::~Kubelet() = default;

void Kubelet::Stop() { impl_->Stop(); }
void Kubelet::Start() { impl_->Start(); }

absl::Status Kubelet::WaitForRegistrations(int count, absl::Duration timeout) const {
  return impl_->WaitUntil(
      [count](const Impl& impl) {
        const Instance* newest = impl.Newest();
        return impl.registrations_locked() >= count && newest != nullptr && newest->info.connected;
      },
      timeout, absl::StrCat("registration ", count, " of ", options_.driver));
}

absl::Status Kubelet::WaitForDeregistration(absl::Duration timeout) const {
  return impl_->WaitUntil([](const Impl& impl) { return impl.Newest() == nullptr; }, timeout,
                          "the deregistration of " + options_.driver);
}

absl::Status Kubelet::WaitForDisconnect(absl::Duration timeout) const {
  return impl_->WaitUntil([this](const Impl& impl) { return !impl.AnyConnected(options_.driver); },
                          timeout, "the end of all connections to " + options_.driver);
}

absl::Status Kubelet::WaitForRegistrationErrors(int count, absl::Duration timeout) const {
  return impl_->WaitUntil([count](const Impl& impl) { return impl.errors_locked() >= count; },
                          timeout, "the registration error");
}

absl::Status Kubelet::WaitForWipes(int count, absl::Duration timeout) const {
  return impl_->WaitUntil([count](const Impl& impl) { return impl.wipes_locked() >= count; },
                          timeout, "the wipe of slices");
}

int Kubelet::registrations() const {
  return impl_->WithLock([](const Impl& impl) { return impl.registrations_locked(); });
}
std::vector<std::string> Kubelet::registration_errors() const {
  return impl_->WithLock([](const Impl& impl) { return impl.errors(); });
}
std::vector<PluginInstance> Kubelet::instances() const {
  return impl_->WithLock([](const Impl& impl) { return impl.instances(); });
}
int Kubelet::wipes() const {
  return impl_->WithLock([](const Impl& impl) { return impl.wipes_locked(); });
}

absl::StatusOr<Answers> Kubelet::CallPrepare(const std::vector<ClaimRef>& claims) const {
  return impl_->CallPrepare(claims);
}

absl::StatusOr<Answers> Kubelet::CallUnprepare(const std::vector<ClaimRef>& claims) const {
  return impl_->CallUnprepare(claims);
}

absl::StatusOr<PreparedClaims> Kubelet::Prepare(const std::vector<ClaimRef>& claims) {
  ASCEND_ASSIGN_OR_RETURN(Answers answers, impl_->CallPrepare(claims), "NodePrepareResources");
  ASCEND_RETURN_IF_ERROR(Judge("NodePrepareResources", claims, answers));
  PreparedClaims prepared;
  for (auto& [uid, answer] : answers) prepared[uid] = std::move(answer.devices);
  impl_->Remember(prepared);
  return prepared;
}

absl::Status Kubelet::Unprepare(const std::vector<ClaimRef>& claims) {
  ASCEND_ASSIGN_OR_RETURN(const Answers answers, impl_->CallUnprepare(claims),
                          "NodeUnprepareResources");
  ASCEND_RETURN_IF_ERROR(Judge("NodeUnprepareResources", claims, answers));
  impl_->Forget(claims);
  return absl::OkStatus();
}

absl::StatusOr<PreparedClaims> Kubelet::SyncPod(const std::vector<ClaimRef>& claims) {
  PreparedClaims all;
  std::vector<ClaimRef> missing;
  for (const ClaimRef& claim : claims) {
    if (auto devices = impl_->Remembered(claim.uid)) {
      all[claim.uid] = *std::move(devices);
    } else {
      missing.push_back(claim);
    }
  }
  if (missing.empty()) return all;
  ASCEND_ASSIGN_OR_RETURN(PreparedClaims fresh, Prepare(missing));
  all.merge(fresh);
  return all;
}

}  // namespace ascend::sim
