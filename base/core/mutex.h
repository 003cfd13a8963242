// std::mutex with the annotations that clang's -Wthread-safety checks.
//
// Not absl::Mutex: Debian's library is not instrumented, so ThreadSanitizer reports false races.
#ifndef ASCEND_DRA_BASE_CORE_MUTEX_H_
#define ASCEND_DRA_BASE_CORE_MUTEX_H_

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace ascend {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// Waits may wake without a signal: always wait in a loop on the condition.
//
// Made of pthread calls: std::condition_variable's timed waits either follow the wall clock, which
// may jump back and then waits for hours, or use pthread_cond_clockwait, which gcc 12's
// ThreadSanitizer does not know.
class CondVar {
 public:
  CondVar() {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&condition_, &attributes);
    pthread_condattr_destroy(&attributes);
  }
  ~CondVar() { pthread_cond_destroy(&condition_); }
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    pthread_cond_wait(&condition_, mutex->mutex_.native_handle());
  }
  // Returns false if `timeout` (of the monotonic clock) passed without a signal.
  bool WaitFor(Mutex* mutex, absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    // A year stands for "for ever": the end of the wait has to fit into a timespec.
    timeout = std::clamp(timeout, absl::ZeroDuration(), absl::Hours(24 * 365));
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const timespec end = absl::ToTimespec(absl::DurationFromTimespec(now) + timeout);
    return pthread_cond_timedwait(&condition_, mutex->mutex_.native_handle(), &end) == 0;
  }
  void Signal() { pthread_cond_signal(&condition_); }
  void SignalAll() { pthread_cond_broadcast(&condition_); }

 private:
  pthread_cond_t condition_;
};

}  // namespace ascend

#endif  // ASCEND_DRA_BASE_CORE_MUTEX_H_
