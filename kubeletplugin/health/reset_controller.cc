#include "kubeletplugin/health/reset_controller.h"

#include <utility>

#include "base/runtime/clock.h"

namespace ascend::kubeletplugin {

ResetController::ResetController(ChipResetter& resetter, std::function<void()> cancel)
    : resetter_(resetter), cancel_(std::move(cancel)) {
  resetter_.TakeOver();
  thread_ = std::thread([this] { Run(); });
}

ResetController::~ResetController() { Stop(); }

void ResetController::Wake() {
  MutexLock lock(&mutex_);
  wake_ = true;
  changed_.SignalAll();
}

void ResetController::Stop() {
  if (!thread_.joinable()) return;
  resetter_.Stop();
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  cancel_();
  thread_.join();
}

void ResetController::Run() {
  absl::Duration sleep = absl::ZeroDuration();
  while (true) {
    {
      MutexLock lock(&mutex_);
      const absl::Duration end = Clock::Real().Monotonic() + sleep;
      while (!stop_ && !wake_) {
        const absl::Duration left = end - Clock::Real().Monotonic();
        if (left <= absl::ZeroDuration()) break;
        changed_.WaitFor(&mutex_, left);
      }
      if (stop_) return;
      wake_ = false;
    }
    sleep = resetter_.Look();
  }
}

}  // namespace ascend::kubeletplugin
