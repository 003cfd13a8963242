#include "kubeletplugin/claims/change_signal.h"

#include <algorithm>
#include <chrono>

#include "base/core/status_macros.h"
#include "kubeletplugin/claims/prepare_error.h"

namespace ascend::kubeletplugin {
namespace {

constexpr absl::Duration kRetryPause = absl::Milliseconds(100);

}  // namespace

absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

void ChangeSignal::Stop() {
  MutexLock lock(&mutex_);
  stop_ = true;
  changed_.SignalAll();
}

void ChangeSignal::Notify() {
  MutexLock lock(&mutex_);
  ++changes_;
  changed_.SignalAll();
}

uint64_t ChangeSignal::count() {
  MutexLock lock(&mutex_);
  return changes_;
}

absl::Status ChangeSignal::Wait(uint64_t seen, absl::Time deadline) {
  MutexLock lock(&mutex_);
  while (!stop_ && changes_ == seen) {
    const absl::Duration left = deadline - SteadyNow();
    if (left <= absl::ZeroDuration()) return absl::OkStatus();
    changed_.WaitFor(&mutex_, left);
  }
  if (stop_) {
    return WithReason(
        absl::UnavailableError("the driver is being stopped; the kubelet will ask the next one"),
        PrepareError::kSuperseded);
  }
  return absl::OkStatus();
}

absl::Status ChangeSignal::WaitToRetry(uint64_t seen, absl::Time deadline) {
  const absl::Time not_before = std::min(deadline, SteadyNow() + kRetryPause);
  ASCEND_RETURN_IF_ERROR(Wait(seen, deadline));
  return Pause(not_before);
}

absl::Status ChangeSignal::Pause(absl::Time until) {
  while (SteadyNow() < until) ASCEND_RETURN_IF_ERROR(Wait(count(), until));
  return absl::OkStatus();
}

}  // namespace ascend::kubeletplugin
