// Time, injectable so that tests decide what it is.
#ifndef ASCEND_DRA_BASE_RUNTIME_CLOCK_H_
#define ASCEND_DRA_BASE_RUNTIME_CLOCK_H_

#include "absl/time/time.h"

namespace ascend {

class Clock {
 public:
  virtual ~Clock() = default;
  // Wall-clock time: for stamps people read. May jump.
  virtual absl::Time Now() const = 0;
  // Time since an arbitrary start; never jumps: for deadlines and ages.
  virtual absl::Duration Monotonic() const = 0;

  // The machine's clock; lives for ever.
  static const Clock& Real();
};

}  // namespace ascend

#endif  // ASCEND_DRA_BASE_RUNTIME_CLOCK_H_
