#include "vnpu/agent/alarm.h"

#include "base/core/mutex.h"
#include "base/runtime/clock.h"
#include "gmock/gmock.h"

namespace ascend::agent {
namespace {

class AlarmTest : public ::testing::Test {
 protected:
  void WaitForRings(int count) {
    MutexLock lock(&mutex_);
    while (rings_ < count) changed_.Wait(&mutex_);
  }
  int rings() {
    MutexLock lock(&mutex_);
    return rings_;
  }

  Mutex mutex_;
  CondVar changed_;
  int rings_ ABSL_GUARDED_BY(mutex_) = 0;
  Alarm alarm_{[this] {
    MutexLock lock(&mutex_);
    ++rings_;
    changed_.SignalAll();
  }};
};

TEST_F(AlarmTest, RingsOnceForEachLimitThatPasses) {
  for (int i = 1; i <= 3; ++i) {
    const absl::Duration start = Clock::Real().Monotonic();
    alarm_.Set(absl::Milliseconds(20));
    WaitForRings(i);
    EXPECT_GE(Clock::Real().Monotonic() - start, absl::Milliseconds(20));
    EXPECT_EQ(rings(), i);
  }
  alarm_.Set(absl::ZeroDuration());
  WaitForRings(4);
}

TEST_F(AlarmTest, DoesNotRingForALimitThatWasClearedOrReplaced) {
  alarm_.Set(absl::Hours(1));
  alarm_.Clear();
  alarm_.Set(absl::InfiniteDuration());
  alarm_.Set(absl::Milliseconds(1));
  WaitForRings(1);
  EXPECT_EQ(rings(), 1);
}

}  // namespace
}  // namespace ascend::agent
