// Threads for work that blocks (API calls, locks, disk), so that event loops never do.
#ifndef ASCEND_DRA_BASE_RUNTIME_TASK_POOL_H_
#define ASCEND_DRA_BASE_RUNTIME_TASK_POOL_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/core/mutex.h"

namespace ascend {

// Thread-safe. Grows with the number of tasks that run at once and keeps its threads.
class TaskPool {
 public:
  explicit TaskPool(size_t max_threads) : max_threads_(max_threads) {}
  // Waits for all tasks, queued ones included. No Submit() may be under way any more.
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  // Runs `task` on some thread; beyond `max_threads` tasks at once it queues.
  void Submit(std::function<void()> task);

 private:
  void Work();

  const size_t max_threads_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ascend

#endif  // ASCEND_DRA_BASE_RUNTIME_TASK_POOL_H_
