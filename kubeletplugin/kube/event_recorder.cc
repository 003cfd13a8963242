#include "kubeletplugin/kube/event_recorder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/core/status_macros.h"
#include "base/runtime/clock.h"
#include "base/runtime/logging.h"

namespace ascend::kube {
namespace {

constexpr size_t kMaxQueue = 256;

bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsUnauthenticated(status);
}

void LogUnsent(const Event& event, const absl::Status& status) {
  LogWarning("an Event could not be written", {{"reason", event.reason},
                                               {"kind", event.regarding.kind},
                                               {"namespace", event.regarding.namespace_name},
                                               {"name", event.regarding.name},
                                               {"error", status}});
}

}  // namespace

ObjectReference NodeObject(const std::string& name, const std::string& uid) {
  return {.api_version = "v1", .kind = "Node", .namespace_name = "", .name = name, .uid = uid};
}

ObjectReference PodObject(const std::string& namespace_name, const std::string& name,
                          const std::string& uid) {
  return {.api_version = "v1",
          .kind = "Pod",
          .namespace_name = namespace_name,
          .name = name,
          .uid = uid};
}

ObjectReference ClaimObject(const std::string& namespace_name, const std::string& name,
                            const std::string& uid) {
  return {.api_version = "resource.k8s.io/v1",
          .kind = "ResourceClaim",
          .namespace_name = namespace_name,
          .name = name,
          .uid = uid};
}

EventRecorder::EventRecorder(Options options, Client& client)
    : options_(std::move(options)), client_(client) {
  thread_ = std::thread([this] { Run(); });
}

EventRecorder::~EventRecorder() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

absl::StatusOr<std::string> EventRecorder::NodeUid() {
  {
    MutexLock lock(&mutex_);
    if (!node_uid_.empty()) return node_uid_;
  }
  ASCEND_ASSIGN_OR_RETURN(const Node node,
                          client_.GetNode(options_.node_name, options_.request_timeout));
  MutexLock lock(&mutex_);
  node_uid_ = node.uid;
  return node_uid_;
}

absl::Status EventRecorder::Send(Event event) {
  if (event.reporting_component.empty()) event.reporting_component = options_.controller;
  if (event.reporting_instance.empty()) event.reporting_instance = options_.node_name;
  if (event.regarding.kind == "Node" && event.regarding.uid.empty()) {
    ASCEND_ASSIGN_OR_RETURN(event.regarding.uid, NodeUid());
  }
  return client_.CreateEvent(event, options_.request_timeout);
}

void EventRecorder::Post(Event event, IfGone if_gone) {
  const absl::Duration now = Clock::Real().Monotonic();
  const ObjectReference& about = event.regarding;
  const std::string object = about.uid.empty() ? about.kind + "/" + about.name : about.uid;
  MutexLock lock(&mutex_);
  for (auto it = recent_.begin(); it != recent_.end();) {
    it = now - it->second > options_.max_age ? recent_.erase(it) : std::next(it);
  }
  if (!recent_.try_emplace({object, event.reason, event.message}, now).second) return;
  if (queue_.size() >= kMaxQueue) {
    LogUnsent(event, absl::ResourceExhaustedError("too many wait to be sent"));
    return;
  }
  queue_.push_back({.event = std::move(event), .if_gone = if_gone, .since = now});
  changed_.SignalAll();
}

absl::Status EventRecorder::Deliver(const Posted& posted) {
  Event event = posted.event;
  if (posted.if_gone == IfGone::kDrop) return Send(std::move(event));
  const ObjectReference about = event.regarding;
  const absl::StatusOr<ResourceClaim> claim =
      client_.GetResourceClaim(about.namespace_name, about.name, options_.request_timeout);
  if (!claim.ok() && IsTransient(claim.status())) return claim.status();
  const bool gone = claim.ok() ? claim->uid != about.uid : absl::IsNotFound(claim.status());
  if (!gone) {
    const absl::Status sent = Send(event);
    // A namespace that is being deleted takes nothing new.
    if (!absl::IsNotFound(sent) && !absl::IsPermissionDenied(sent)) return sent;
  }
  event.regarding = node();
  return Send(std::move(event));
}

void EventRecorder::Run() {
  while (true) {
    std::optional<Posted> next;
    {
      MutexLock lock(&mutex_);
      while (!stop_ && queue_.empty()) changed_.Wait(&mutex_);
      if (stop_) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    const absl::Status sent = Deliver(*next);
    if (sent.ok()) continue;
    const absl::Duration now = Clock::Real().Monotonic();
    const bool again = IsTransient(sent) && now - next->since < options_.max_age;
    MutexLock lock(&mutex_);
    if (stop_) return;
    if (!std::exchange(next->logged, true) || !again) LogUnsent(next->event, sent);
    if (!again) continue;
    // The others would fare no better. What arrives meanwhile changes nothing about that.
    queue_.push_front(*std::move(next));
    const absl::Duration until =
        now + std::max(options_.retry, RetryAfter(sent).value_or(absl::ZeroDuration()));
    while (!stop_) {
      const absl::Duration left = until - Clock::Real().Monotonic();
      if (left <= absl::ZeroDuration()) break;
      changed_.WaitFor(&mutex_, left);
    }
  }
}

}  // namespace ascend::kube
