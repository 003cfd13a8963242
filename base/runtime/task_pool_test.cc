#include "base/runtime/task_pool.h"

#include <atomic>

#include "gtest/gtest.h"

namespace ascend {
namespace {

TEST(TaskPoolTest, RunsEverythingBeforeItGoes) {
  std::atomic<int> done{0};
  {
    TaskPool pool(4);
    for (int i = 0; i < 200; ++i) pool.Submit([&] { ++done; });
  }
  EXPECT_EQ(done, 200);
}

// Every task waits for all others: works only if they really run side by side.
TEST(TaskPoolTest, TasksRunSideBySide) {
  constexpr int kTasks = 16;
  Mutex mutex;
  CondVar all_here;
  int here = 0;
  {
    TaskPool pool(kTasks);
    for (int i = 0; i < kTasks; ++i) {
      pool.Submit([&] {
        MutexLock lock(&mutex);
        ++here;
        all_here.SignalAll();
        while (here < kTasks) all_here.Wait(&mutex);
      });
    }
  }
  EXPECT_EQ(here, kTasks);
}

TEST(TaskPoolTest, QueuesBeyondItsLimit) {
  std::atomic<int> running{0}, most{0};
  {
    TaskPool pool(2);
    for (int i = 0; i < 50; ++i) {
      pool.Submit([&] {
        const int now = ++running;
        int seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        --running;
      });
    }
  }
  EXPECT_LE(most, 2);
}

}  // namespace
}  // namespace ascend
