// Numbers about the driver on a mock node.
#ifndef ASCEND_DRA_TEST_SIM_MEASURE_H_
#define ASCEND_DRA_TEST_SIM_MEASURE_H_

#include "test/sim/driver_stack.h"

namespace ascend::sim {

struct MeasureOptions {
  StackOptions stack;
  int starts = 5;
  int cycles = 500;  // of Prepare and Unprepare of one chip, one after the other
};

// Prints start-up time, time of Prepare and Unprepare, and memory. Returns the exit code.
int RunMeasure(const MeasureOptions& options);

}  // namespace ascend::sim

#endif  // ASCEND_DRA_TEST_SIM_MEASURE_H_
