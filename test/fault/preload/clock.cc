// A wall clock that jumps. The monotonic clocks go on.
#include <sys/time.h>
#include <time.h>

#include <atomic>

#include "test/fault/preload/harness.h"
#include "test/fault/preload/raw.h"

namespace ascend::fault {
namespace {
std::atomic<int64_t> ahead{0};  // seconds
}  // namespace

void JumpWallClock(int64_t seconds) { ahead = seconds; }

}  // namespace ascend::fault

#define ASCEND_FAULT_EXPORT extern "C" __attribute__((visibility("default")))

ASCEND_FAULT_EXPORT int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const long result = ::syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    now->tv_sec += ascend::fault::ahead;
  }
  return static_cast<int>(result);
}

ASCEND_FAULT_EXPORT int gettimeofday(timeval* __restrict now, void* __restrict) noexcept {
  timespec precise;
  if (clock_gettime(CLOCK_REALTIME, &precise) != 0) return -1;
  *now = {.tv_sec = precise.tv_sec, .tv_usec = precise.tv_nsec / 1000};
  return 0;
}

ASCEND_FAULT_EXPORT time_t time(time_t* now) noexcept {
  timespec precise = {};
  clock_gettime(CLOCK_REALTIME, &precise);
  if (now != nullptr) *now = precise.tv_sec;
  return precise.tv_sec;
}
