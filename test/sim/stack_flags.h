// The command line of programs that run a DriverStack.
#ifndef ASCEND_DRA_TEST_SIM_STACK_FLAGS_H_
#define ASCEND_DRA_TEST_SIM_STACK_FLAGS_H_

#include "CLI/App.hpp"
#include "test/sim/driver_stack.h"

namespace ascend::sim {

// Flags that set `options`, which must outlive the parsing; defaults are what it holds.
void AddStackFlags(CLI::App& app, StackOptions* options);

}  // namespace ascend::sim

#endif  // ASCEND_DRA_TEST_SIM_STACK_FLAGS_H_
