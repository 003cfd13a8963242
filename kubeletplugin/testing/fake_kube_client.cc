#include "kubeletplugin/testing/fake_kube_client.h"

#include "absl/strings/str_cat.h"
#include "base/runtime/clock.h"

namespace ascend::kube {
namespace {

constexpr absl::Duration kGenerous = absl::Seconds(30);

absl::Status NoSlices() { return absl::UnimplementedError("the fake client knows no slices"); }

}  // namespace

void FakeClient::SetClaim(const ResourceClaim& claim) {
  MutexLock lock(&mutex_);
  claims_[{claim.namespace_name, claim.name}] = claim;
}

void FakeClient::RemoveClaim(const std::string& namespace_name, const std::string& name) {
  MutexLock lock(&mutex_);
  claims_.erase({namespace_name, name});
}

void FakeClient::FailGets(absl::Status status, int times) {
  MutexLock lock(&mutex_);
  get_failures_.insert(get_failures_.end(), times, status);
}

void FakeClient::FailEvents(absl::Status status, int times) {
  MutexLock lock(&mutex_);
  event_failures_.insert(event_failures_.end(), times, status);
}

void FakeClient::BlockGets() {
  MutexLock lock(&mutex_);
  block_ = true;
}

void FakeClient::ReleaseGets() {
  MutexLock lock(&mutex_);
  block_ = false;
  changed_.SignalAll();
}

bool FakeClient::WaitForBlockedGets(int count) {
  const absl::Duration deadline = Clock::Real().Monotonic() + kGenerous;
  MutexLock lock(&mutex_);
  while (blocked_ < count) {
    const absl::Duration left = deadline - Clock::Real().Monotonic();
    if (left <= absl::ZeroDuration()) return false;
    changed_.WaitFor(&mutex_, left);
  }
  return true;
}

int FakeClient::gets() const {
  MutexLock lock(&mutex_);
  return gets_;
}

int FakeClient::event_attempts() const {
  MutexLock lock(&mutex_);
  return event_attempts_;
}

std::vector<Event> FakeClient::events() const {
  MutexLock lock(&mutex_);
  return events_;
}

bool FakeClient::WaitUntil(const std::function<bool()>& condition) {
  const absl::Duration deadline = Clock::Real().Monotonic() + kGenerous;
  while (!condition()) {
    const absl::Duration left = deadline - Clock::Real().Monotonic();
    if (left <= absl::ZeroDuration()) return false;
    MutexLock lock(&mutex_);
    // The condition may also depend on what no call tells of.
    changed_.WaitFor(&mutex_, std::min(left, absl::Milliseconds(10)));
  }
  return true;
}

absl::StatusOr<ResourceClaim> FakeClient::GetResourceClaim(const std::string& namespace_name,
                                                           const std::string& name,
                                                           absl::Duration timeout) {
  MutexLock lock(&mutex_);
  ++gets_;
  changed_.SignalAll();
  absl::StatusOr<ResourceClaim> answer =
      absl::NotFoundError(absl::StrCat("GET resourceclaims/", name, ": NotFound"));
  if (!get_failures_.empty()) {
    answer = get_failures_.front();
    get_failures_.pop_front();
  } else if (const auto it = claims_.find({namespace_name, name}); it != claims_.end()) {
    answer = it->second;
  }
  const absl::Duration deadline = Clock::Real().Monotonic() + timeout;
  ++blocked_;
  while (block_) {
    const absl::Duration left = deadline - Clock::Real().Monotonic();
    if (left <= absl::ZeroDuration()) {
      answer = absl::DeadlineExceededError("GET resourceclaims: no answer in time");
      break;
    }
    changed_.WaitFor(&mutex_, left);
  }
  --blocked_;
  return answer;
}

void FakeClient::SetNode(const Node& node) {
  MutexLock lock(&mutex_);
  nodes_[node.name] = node;
}

absl::StatusOr<Node> FakeClient::GetNode(const std::string& name, absl::Duration) {
  MutexLock lock(&mutex_);
  if (const auto node = nodes_.find(name); node != nodes_.end()) return node->second;
  return Node{.name = name, .uid = absl::StrCat("uid-of-", name)};
}

absl::StatusOr<SliceList> FakeClient::ListResourceSlices(const std::string&, const std::string&,
                                                         absl::Duration) {
  return NoSlices();
}
std::unique_ptr<Watch> FakeClient::WatchResourceSlices(const std::string&, const std::string&,
                                                       const std::string&,
                                                       std::function<void(SliceEvent)>,
                                                       std::function<void(absl::Status)> on_end) {
  on_end(NoSlices());
  return std::make_unique<Watch>();
}
absl::StatusOr<ResourceSlice> FakeClient::CreateResourceSlice(const ResourceSlice&,
                                                              absl::Duration) {
  return NoSlices();
}
absl::StatusOr<ResourceSlice> FakeClient::UpdateResourceSlice(const ResourceSlice&,
                                                              absl::Duration) {
  return NoSlices();
}
absl::Status FakeClient::DeleteResourceSlice(const std::string&, const std::string&,
                                             absl::Duration) {
  return NoSlices();
}

absl::Status FakeClient::ApplyDeviceStatus(const std::string& namespace_name,
                                           const std::string& name, const std::string& uid,
                                           const std::string&,
                                           const std::vector<DeviceStatus>& devices,
                                           absl::Duration) {
  MutexLock lock(&mutex_);
  ++status_attempts_;
  changed_.SignalAll();
  if (!status_failures_.empty()) {
    absl::Status status = status_failures_.front();
    status_failures_.pop_front();
    return status;
  }
  const auto claim = claims_.find({namespace_name, name});
  if (claim == claims_.end()) return absl::NotFoundError("claim not found");
  if (claim->second.uid != uid) return absl::AbortedError("the claim has another UID");
  statuses_[uid] = devices;
  return absl::OkStatus();
}

int FakeClient::status_attempts() const {
  MutexLock lock(&mutex_);
  return status_attempts_;
}

std::vector<DeviceStatus> FakeClient::device_status(const std::string& uid) const {
  MutexLock lock(&mutex_);
  const auto found = statuses_.find(uid);
  return found == statuses_.end() ? std::vector<DeviceStatus>() : found->second;
}

void FakeClient::FailStatuses(absl::Status status, int times) {
  MutexLock lock(&mutex_);
  status_failures_.insert(status_failures_.end(), times, status);
}

absl::Status FakeClient::CreateEvent(const Event& event, absl::Duration) {
  MutexLock lock(&mutex_);
  ++event_attempts_;
  changed_.SignalAll();
  if (!event_failures_.empty()) {
    absl::Status status = event_failures_.front();
    event_failures_.pop_front();
    return status;
  }
  events_.push_back(event);
  return absl::OkStatus();
}

}  // namespace ascend::kube
