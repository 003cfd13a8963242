// The product at work, for people to watch.
#ifndef ASCEND_DRA_TEST_SIM_DEMO_H_
#define ASCEND_DRA_TEST_SIM_DEMO_H_

#include "test/sim/driver_stack.h"

namespace ascend::sim {

// Starts the driver, shows its devices, prepares and unprepares a claim for two chips, or for one
// if the node has no more. Returns the exit code; after a failure the logs of the driver have been
// printed.
int RunDemo(const StackOptions& options);

}  // namespace ascend::sim

#endif  // ASCEND_DRA_TEST_SIM_DEMO_H_
