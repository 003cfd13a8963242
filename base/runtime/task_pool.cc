#include "base/runtime/task_pool.h"

#include <utility>

namespace ascend {

TaskPool::~TaskPool() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void TaskPool::Submit(std::function<void()> task) {
  {
    MutexLock lock(&mutex_);
    queue_.push_back(std::move(task));
    if (queue_.size() > idle_ && threads_.size() < max_threads_) {
      threads_.emplace_back([this] { Work(); });
    }
  }
  changed_.Signal();  // outside the lock, or the thread would wake only to wait for it
}

void TaskPool::Work() {
  while (true) {
    std::function<void()> task;
    {
      MutexLock lock(&mutex_);
      ++idle_;
      while (queue_.empty() && !stopping_) changed_.Wait(&mutex_);
      --idle_;
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task();
  }
}

}  // namespace ascend
