// A time limit that wakes nobody as long as it is kept.
#ifndef ASCEND_DRA_VNPU_AGENT_ALARM_H_
#define ASCEND_DRA_VNPU_AGENT_ALARM_H_

#include <atomic>
#include <functional>
#include <thread>

#include "absl/time/time.h"
#include "base/core/unique_fd.h"

namespace ascend::agent {

// Set and Clear are a system call each and wake no thread: a condition variable with a time-out
// would wake one for each limit that is set. Thread-safe.
class Alarm {
 public:
  // `ring` runs on a thread of the alarm each time that a limit passes. It may come late: after
  // Clear(), or after the next Set(). Ends the program if the kernel has no timer left for it.
  explicit Alarm(std::function<void()> ring);
  // Waits for a running `ring`; none follows.
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // From now on; replaces the limit before.
  void Set(absl::Duration limit);
  void Clear();

 private:
  void Run();

  const std::function<void()> ring_;
  const UniqueFd timer_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_ALARM_H_
