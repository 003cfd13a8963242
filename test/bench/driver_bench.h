// Times the driver on a mock node, beside what no driver can be faster than (floor.h), and holds
// the figures against the project's goals.
#ifndef ASCEND_DRA_TEST_BENCH_DRIVER_BENCH_H_
#define ASCEND_DRA_TEST_BENCH_DRIVER_BENCH_H_

#include <string>

#include "absl/time/time.h"
#include "test/sim/driver_stack.h"

namespace ascend::bench {

struct BenchOptions {
  sim::StackOptions stack;  // a node of at least 16 chips
  int starts = 11;
  int cycles = 500;    // of Prepare and Unprepare, of one chip by one caller
  int claims = 10000;  // prepared and unprepared between two looks at the memory
  absl::Duration idle = absl::Seconds(10);
  std::string results;  // a JSON file; empty = none
  bool check = false;   // a missed goal is a failure
};

// Prints tables and writes the results. Returns the exit code: 0, or 1 if something could not be
// measured, or a goal was missed and `check` is set.
int RunBench(const BenchOptions& options);

}  // namespace ascend::bench

#endif  // ASCEND_DRA_TEST_BENCH_DRIVER_BENCH_H_
