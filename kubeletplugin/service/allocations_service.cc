#include "kubeletplugin/service/allocations_service.h"

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocations.grpc.pb.h"
#include "base/core/file_lock.h"
#include "base/core/mutex.h"
#include "base/core/status_macros.h"
#include "base/runtime/logging.h"
#include "kubeletplugin/paths.h"

namespace ascend::kubeletplugin {
namespace {

namespace api = ::ascend::allocations::v1alpha1;

constexpr mode_t kSocketMode = 0660;
constexpr int kMaxRequestBytes = 4096;  // every request is empty
constexpr auto kStopGrace = std::chrono::seconds(1);

api::MetricType TypeOf(prometheus::MetricType type) {
  switch (type) {
    case prometheus::MetricType::Counter:
      return api::COUNTER;
    case prometheus::MetricType::Histogram:
      return api::HISTOGRAM;
    default:
      return api::GAUGE;
  }
}

void FillMetric(const prometheus::ClientMetric& from, prometheus::MetricType type,
                api::Metric* to) {
  for (const prometheus::ClientMetric::Label& label : from.label) {
    api::Label* copy = to->add_labels();
    copy->set_name(label.name);
    copy->set_value(label.value);
  }
  if (type == prometheus::MetricType::Counter) {
    to->set_counter(from.counter.value);
  } else if (type == prometheus::MetricType::Histogram) {
    api::Histogram* histogram = to->mutable_histogram();
    histogram->set_sample_count(from.histogram.sample_count);
    histogram->set_sample_sum(from.histogram.sample_sum);
    for (const prometheus::ClientMetric::Bucket& bucket : from.histogram.bucket) {
      api::Bucket* copy = histogram->add_buckets();
      copy->set_cumulative_count(bucket.cumulative_count);
      copy->set_upper_bound(bucket.upper_bound);
    }
  } else {
    to->set_gauge(from.gauge.value);
  }
}

class Service final : public api::Allocations::CallbackService {
 public:
  Service(const Metrics& metrics, AllocationsFeed& feed)
      : metrics_(metrics), feed_(feed), subscription_(feed.Subscribe([this] { WakeStreams(); })) {}

  ~Service() override {
    feed_.Unsubscribe(subscription_);
    MutexLock lock(&mutex_);  // the last stream may be about to leave OnDone
  }

  // And at once those that still come.
  void EndStreams() {
    MutexLock lock(&mutex_);
    ending_ = true;
    for (Stream* stream : streams_) stream->End(Ending());
  }

  grpc::ServerUnaryReactor* GetMetrics(grpc::CallbackServerContext* context,
                                       const api::GetMetricsRequest*,
                                       api::GetMetricsResponse* response) override {
    for (const prometheus::MetricFamily& family : metrics_.Collect()) {
      api::MetricFamily* copy = response->add_families();
      copy->set_name(family.name);
      copy->set_help(family.help);
      copy->set_type(TypeOf(family.type));
      for (const auto& metric : family.metric) FillMetric(metric, family.type, copy->add_metrics());
    }
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerWriteReactor<AllocationsSnapshot>* WatchAllocations(
      grpc::CallbackServerContext*, const api::WatchAllocationsRequest*) override {
    auto* stream = new Stream(*this);
    MutexLock lock(&mutex_);
    streams_.insert(stream);
    if (ending_) {
      stream->End(Ending());
    } else {
      stream->Wake();
    }
    return stream;
  }

 private:
  // One reader. gRPC's from the moment it is returned; at most one operation is under way, a write
  // or the final Finish.
  class Stream final : public grpc::ServerWriteReactor<AllocationsSnapshot> {
   public:
    explicit Stream(Service& service) : service_(service) {}

    void Wake() {
      MutexLock lock(&mutex_);
      if (!writing_ && !finishing_) WriteIfNewer();
    }

    // After a write in progress. Only the first call counts.
    void End(const grpc::Status& status) {
      MutexLock lock(&mutex_);
      if (finishing_) return;
      finishing_ = true;
      status_ = status;
      if (!writing_) Finish(status_);
    }

    void OnWriteDone(bool ok) override {
      MutexLock lock(&mutex_);
      writing_ = false;
      if (!ok && !finishing_) {
        finishing_ = true;
        status_ = grpc::Status(grpc::StatusCode::CANCELLED, "the client went away");
      }
      if (finishing_) {
        Finish(status_);
      } else {
        WriteIfNewer();
      }
    }

    void OnCancel() override { End(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled")); }

    void OnDone() override {
      {
        MutexLock lock(&mutex_);  // whoever called Finish may still hold it
      }
      {
        MutexLock lock(&service_.mutex_);
        service_.streams_.erase(this);
      }
      delete this;
    }

   private:
    void WriteIfNewer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      std::shared_ptr<const AllocationsSnapshot> next = service_.feed_.Current();
      if (next == nullptr || next == sent_) return;
      writing_ = true;
      sent_ = std::move(next);
      StartWrite(sent_.get());
    }

    Service& service_;
    Mutex mutex_;  // taken after the service's
    bool writing_ ABSL_GUARDED_BY(mutex_) = false;
    bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
    std::shared_ptr<const AllocationsSnapshot> sent_ ABSL_GUARDED_BY(mutex_);
    grpc::Status status_ ABSL_GUARDED_BY(mutex_);
  };

  static grpc::Status Ending() {
    return {grpc::StatusCode::UNAVAILABLE, "the plugin is shutting down"};
  }

  void WakeStreams() {
    MutexLock lock(&mutex_);
    for (Stream* stream : streams_) stream->Wake();
  }

  const Metrics& metrics_;
  AllocationsFeed& feed_;
  // Held while streams are woken: one that is done waits for it before it deletes itself.
  Mutex mutex_;
  std::set<Stream*> streams_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  const int64_t subscription_;  // last: it may be told at once
};

absl::Status CheckPath(const std::string& socket) {
  if (!absl::StartsWith(socket, "/") || socket.size() > kMaxSocketPath) {
    return absl::InvalidArgumentError(absl::StrCat("allocations socket \"", socket,
                                                   "\" must be an absolute path of at most ",
                                                   kMaxSocketPath, " bytes"));
  }
  return absl::OkStatus();
}

// gRPC unlinks whatever it finds at the path.
absl::Status CheckReplaceable(const std::string& socket) {
  struct stat info;
  if (::lstat(socket.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : ErrnoToStatus(errno, socket);
  }
  if (S_ISSOCK(info.st_mode)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(socket, " exists and is not a socket: remove it"));
}

absl::Status OpenToGroup(const std::string& socket, gid_t group) {
  struct stat info;
  if (::lstat(socket.c_str(), &info) != 0) return ErrnoToStatus(errno, socket);
  // Not needed where the directory hands its group down (setgid, as with a pod's fsGroup).
  if (info.st_gid != group && ::lchown(socket.c_str(), -1, group) != 0) {
    if (errno != EPERM) return ErrnoToStatus(errno, absl::StrCat("chown ", socket));
    LogWarning(
        "the allocations socket cannot be given to its group: readers that are not root or "
        "in its present group get no answer; set the pod's fsGroup",
        {{"path", socket}, {"group", group}, {"presentGroup", info.st_gid}});
  }
  if (::chmod(socket.c_str(), kSocketMode) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("chmod ", socket));
  }
  return absl::OkStatus();
}

}  // namespace

class AllocationsServer::Impl {
 public:
  Impl(const Metrics& metrics, AllocationsFeed& feed) : service_(metrics, feed) {}

  absl::Status Start(const Options& options) {
    ASCEND_RETURN_IF_ERROR(CheckPath(options.socket));
    absl::StatusOr<FileLock> lock =
        FileLock::Acquire(absl::StrCat(options.socket, ".lock"), absl::ZeroDuration());
    if (absl::IsDeadlineExceeded(lock.status())) {
      return absl::FailedPreconditionError(
          absl::StrCat("another instance of the plugin serves ", options.socket));
    }
    ASCEND_RETURN_IF_ERROR(lock.status());
    lock_ = *std::move(lock);
    ASCEND_RETURN_IF_ERROR(CheckReplaceable(options.socket));
    grpc::ServerBuilder builder;
    int bound = 0;
    builder.AddListeningPort(absl::StrCat("unix:", options.socket),
                             grpc::InsecureServerCredentials(), &bound);
    builder.SetOption(grpc::MakeChannelArgumentOption(GRPC_ARG_ALLOW_REUSEPORT, 0));
    // Readers notice by pings that the plugin is gone.
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
    builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
    builder.RegisterService(&service_);
    const mode_t old_mask = ::umask(0077);  // closed until it has its group
    server_ = builder.BuildAndStart();
    ::umask(old_mask);
    if (server_ == nullptr || bound == 0) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", options.socket,
                                                 ": check that its directory is writable"));
    }
    socket_ = options.socket;
    return OpenToGroup(options.socket, options.group);
  }

  ~Impl() {
    if (server_ == nullptr) return;
    service_.EndStreams();
    server_->Shutdown(std::chrono::system_clock::now() + kStopGrace);
    server_->Wait();
    server_.reset();
    ::unlink(socket_.c_str());  // ours: the lock is held
  }

 private:
  FileLock lock_;
  std::string socket_;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
};

AllocationsServer::AllocationsServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AllocationsServer::~AllocationsServer() = default;

absl::StatusOr<std::unique_ptr<AllocationsServer>> AllocationsServer::Start(const Options& options,
                                                                            const Metrics& metrics,
                                                                            AllocationsFeed& feed) {
  auto impl = std::make_unique<Impl>(metrics, feed);
  ASCEND_RETURN_IF_ERROR(impl->Start(options));
  return std::unique_ptr<AllocationsServer>(new AllocationsServer(std::move(impl)));
}

}  // namespace ascend::kubeletplugin
