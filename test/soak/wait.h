// Waits for what nothing announces: files, mostly, that another thread or process writes.
#ifndef ASCEND_DRA_TEST_SOAK_WAIT_H_
#define ASCEND_DRA_TEST_SOAK_WAIT_H_

#include <unistd.h>

#include "absl/time/time.h"
#include "base/runtime/clock.h"

namespace ascend::soak {

// Whether `condition` held within `patience`. Looks often: a test does it thousands of times.
template <typename Condition>
bool WaitFor(const Condition& condition, absl::Duration patience) {
  const absl::Duration deadline = Clock::Real().Monotonic() + patience;
  while (!condition()) {
    if (Clock::Real().Monotonic() > deadline) return false;
    ::usleep(200);
  }
  return true;
}

}  // namespace ascend::soak

#endif  // ASCEND_DRA_TEST_SOAK_WAIT_H_
