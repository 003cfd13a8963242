// Hands values from one thread to another: a callback puts them in, the test takes them out.
#ifndef ASCEND_DRA_KUBELETPLUGIN_KUBE_TESTING_INBOX_H_
#define ASCEND_DRA_KUBELETPLUGIN_KUBE_TESTING_INBOX_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "base/core/mutex.h"

namespace ascend::kube {

template <typename T>
class Inbox {
 public:
  void Put(T value) {
    MutexLock lock(&mutex_);
    values_.push_back(std::move(value));
    changed_.SignalAll();
  }
  // The oldest value; nothing if none comes for a long time.
  std::optional<T> Take() {
    MutexLock lock(&mutex_);
    while (values_.empty()) {
      if (!changed_.WaitFor(&mutex_, absl::Seconds(20)) && values_.empty()) return std::nullopt;
    }
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }
  size_t size() {
    MutexLock lock(&mutex_);
    return values_.size();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<T> values_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ascend::kube

#endif  // ASCEND_DRA_KUBELETPLUGIN_KUBE_TESTING_INBOX_H_
