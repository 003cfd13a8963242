// The thread that resets chips: see chip_resetter.h.
#ifndef ASCEND_DRA_KUBELETPLUGIN_HEALTH_RESET_CONTROLLER_H_
#define ASCEND_DRA_KUBELETPLUGIN_HEALTH_RESET_CONTROLLER_H_

#include <functional>
#include <set>
#include <thread>

#include "base/core/mutex.h"
#include "kubeletplugin/health/chip_resetter.h"

namespace ascend::kubeletplugin {

// Thread-safe.
class ResetController {
 public:
  // What is under way is taken over before this returns. `resetter` must outlive it, and nobody
  // else may call its Look(). `cancel` ends a reset's call that is under way; it may be called when
  // there is none.
  ResetController(ChipResetter& resetter, std::function<void()> cancel);
  ~ResetController();  // Stop()
  ResetController(const ResetController&) = delete;
  ResetController& operator=(const ResetController&) = delete;

  // Verdicts, records, orders or the inventory changed.
  void Wake();
  void Stop();

 private:
  void Run();

  ChipResetter& resetter_;
  const std::function<void()> cancel_;
  Mutex mutex_;
  CondVar changed_;
  bool wake_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_HEALTH_RESET_CONTROLLER_H_
