#include "kubeletplugin/service/health_streams.h"

#include <grpcpp/grpcpp.h>

#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/core/mutex.h"
#include "base/core/strings.h"
#include "base/runtime/logging.h"
#include "cdi/text.h"
#include "dra_health_v1.grpc.pb.h"
#include "dra_health_v1alpha1.grpc.pb.h"

namespace ascend::kubeletplugin {
namespace {

constexpr size_t kMaxMessage = 1024;
constexpr absl::string_view kEllipsis = "...";

struct V1 {
  static constexpr const char* kName = kHealthServiceV1;
  using Service = ::v1::DRAResourceHealth;
  using Request = ::v1::NodeWatchResourcesRequest;
  using Response = ::v1::NodeWatchResourcesResponse;
  using Status = ::v1::HealthStatus;
};

struct V1alpha1 {
  static constexpr const char* kName = kHealthServiceV1alpha1;
  using Service = ::v1alpha1::DRAResourceHealth;
  using Request = ::v1alpha1::NodeWatchResourcesRequest;
  using Response = ::v1alpha1::NodeWatchResourcesResponse;
  using Status = ::v1alpha1::HealthStatus;
};

// The number is the same in both versions.
int StatusNumber(HealthState state) {
  switch (state) {
    case HealthState::kHealthy:
      return ::v1::HEALTHY;
    case HealthState::kUnhealthy:
      return ::v1::UNHEALTHY;
    case HealthState::kUnknown:
      break;
  }
  return ::v1::UNKNOWN;
}

// Valid UTF-8, or the kubelet could not decode the message and ended the stream; and short enough
// that it does not cut it, which it does in the middle of a character.
std::string ValidUtf8(const std::string& text) {
  return cdi::IsValidUtf8(text) ? text : absl::CHexEscape(text);
}

std::string MessageText(const std::string& message) {
  std::string text = ValidUtf8(message);
  if (text.size() <= kMaxMessage) return text;
  return absl::StrCat(CutUtf8(text, kMaxMessage - kEllipsis.size()), kEllipsis);
}

template <typename Api>
void FillResponse(const std::vector<DeviceHealth>& devices, absl::Duration timeout,
                  typename Api::Response* response) {
  response->Clear();
  for (const DeviceHealth& device : devices) {
    auto* entry = response->add_devices();
    entry->mutable_device()->set_pool_name(ValidUtf8(device.pool));
    entry->mutable_device()->set_device_name(ValidUtf8(device.device));
    entry->set_health(static_cast<typename Api::Status>(StatusNumber(device.state)));
    entry->set_last_updated_time(
        device.checked_at == absl::InfinitePast() ? 0 : absl::ToUnixSeconds(device.checked_at));
    entry->set_health_check_timeout_seconds(absl::ToInt64Seconds(timeout));
    entry->set_message(MessageText(device.message));
  }
}

// One that watches.
class Watcher {
 public:
  virtual ~Watcher() = default;
  // There is something to be told, be it that nothing has changed.
  virtual void Wake() = 0;
  // After a message in progress. Only the first call counts.
  virtual void End(const grpc::Status& status) = 0;
};

grpc::Status Ending() { return {grpc::StatusCode::UNAVAILABLE, "the plugin is shutting down"}; }

}  // namespace

class HealthStreams::Impl {
 public:
  Impl(HealthFeed& feed, Options options)
      : feed_(feed),
        options_(std::move(options)),
        thread_([this] { Run(); }),
        subscription_(feed.Subscribe([this] { WakeAll(); })) {}

  ~Impl() {
    feed_.Unsubscribe(subscription_);
    {
      MutexLock lock(&mutex_);  // the last stream may be about to leave OnDone, too
      stop_ = true;
      changed_.SignalAll();
    }
    thread_.join();
  }

  // `watcher` deletes itself after Remove().
  void Add(Watcher* watcher) {
    MutexLock lock(&mutex_);
    watchers_.insert(watcher);
    changed_.SignalAll();
    if (ending_) {
      watcher->End(Ending());
    } else {
      watcher->Wake();
    }
  }

  void Remove(Watcher* watcher) {
    MutexLock lock(&mutex_);
    watchers_.erase(watcher);
  }

  void End() {
    MutexLock lock(&mutex_);
    ending_ = true;
    for (Watcher* watcher : watchers_) watcher->End(Ending());
    while (confirming_) changed_.Wait(&mutex_);
  }

  int open() const {
    MutexLock lock(&mutex_);
    return static_cast<int>(watchers_.size());
  }

  const HealthFeed& feed() const { return feed_; }
  absl::Duration timeout() const { return options_.timeout; }

 private:
  void WakeAll() {
    MutexLock lock(&mutex_);
    for (Watcher* watcher : watchers_) watcher->Wake();
  }

  // The heartbeat.
  void Run() {
    const Clock& clock = Clock::Real();
    MutexLock lock(&mutex_);
    absl::Duration next = clock.Monotonic() + options_.heartbeat;
    while (!stop_) {
      if (watchers_.empty()) {
        changed_.Wait(&mutex_);
        next = clock.Monotonic() + options_.heartbeat;
        continue;
      }
      const absl::Duration left = next - clock.Monotonic();
      if (left > absl::ZeroDuration()) {
        changed_.WaitFor(&mutex_, left);
        continue;
      }
      if (options_.confirm && !ending_) {
        confirming_ = true;
        mutex_.Unlock();  // the feed's listener is ours
        options_.confirm();
        mutex_.Lock();
        confirming_ = false;
        changed_.SignalAll();
      }
      for (Watcher* watcher : watchers_) watcher->Wake();
      next = clock.Monotonic() + options_.heartbeat;
    }
  }

  HealthFeed& feed_;
  const Options options_;
  // Held while watchers are woken: one that is done waits for it before it deletes itself.
  mutable Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool confirming_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<Watcher*> watchers_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
  const int64_t subscription_;  // last: it may be told at once
};

namespace {

// gRPC's from the moment it is returned; at most one operation is under way, a write or the final
// Finish. What is told while a write is under way becomes one more write, of what is known then.
template <typename Api, typename Streams>
class Stream final : public grpc::ServerWriteReactor<typename Api::Response>, public Watcher {
 public:
  explicit Stream(Streams& streams) : streams_(streams) {}

  void Wake() override {
    MutexLock lock(&mutex_);
    due_ = true;
    if (!writing_ && !finishing_) WriteIfKnown();
  }

  void End(const grpc::Status& status) override {
    MutexLock lock(&mutex_);
    if (finishing_) return;
    finishing_ = true;
    status_ = status;
    if (!writing_) this->Finish(status_);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok && !finishing_) {
      finishing_ = true;
      status_ = grpc::Status(grpc::StatusCode::CANCELLED, "the client went away");
    }
    if (finishing_) {
      this->Finish(status_);
    } else if (due_) {
      WriteIfKnown();
    }
  }

  void OnCancel() override { End(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled")); }

  void OnDone() override {
    {
      MutexLock lock(&mutex_);  // whoever called Finish may still hold it
      LogInfo("a watch on the devices' health has ended",
              {{"service", Api::kName}, {"reason", status_.error_message()}});
    }
    streams_.Remove(this);
    delete this;
  }

 private:
  void WriteIfKnown() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    due_ = false;
    const std::optional<std::vector<DeviceHealth>> devices = streams_.feed().Current();
    if (!devices) return;
    FillResponse<Api>(*devices, streams_.timeout(), &response_);
    writing_ = true;
    this->StartWrite(&response_);
  }

  Streams& streams_;
  Mutex mutex_;  // taken after that of the streams
  bool due_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  typename Api::Response response_ ABSL_GUARDED_BY(mutex_);
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
};

template <typename Api, typename Streams>
class Service final : public Api::Service::CallbackService {
 public:
  explicit Service(Streams& streams) : streams_(streams) {}

  grpc::ServerWriteReactor<typename Api::Response>* NodeWatchResources(
      grpc::CallbackServerContext*, const typename Api::Request*) override {
    LogInfo("a watch on the devices' health has begun", {{"service", Api::kName}});
    auto* stream = new Stream<Api, Streams>(streams_);
    streams_.Add(stream);
    return stream;
  }

 private:
  Streams& streams_;
};

}  // namespace

HealthStreams::HealthStreams(HealthFeed& feed, Options options)
    : impl_(std::make_unique<Impl>(feed, options)) {}
HealthStreams::~HealthStreams() = default;

std::unique_ptr<grpc::Service> HealthStreams::MakeServiceV1() {
  return std::make_unique<Service<V1, Impl>>(*impl_);
}

std::unique_ptr<grpc::Service> HealthStreams::MakeServiceV1alpha1() {
  return std::make_unique<Service<V1alpha1, Impl>>(*impl_);
}

void HealthStreams::End() { impl_->End(); }
int HealthStreams::open() const { return impl_->open(); }

}  // namespace ascend::kubeletplugin
