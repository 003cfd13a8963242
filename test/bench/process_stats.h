// What the kernel counts of a process.
#ifndef ASCEND_DRA_TEST_BENCH_PROCESS_STATS_H_
#define ASCEND_DRA_TEST_BENCH_PROCESS_STATS_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace ascend::bench {

struct ThreadStats {
  std::string name;
  int64_t switches = 0;  // voluntary and involuntary: how often it was put on a core
  absl::Duration cpu;
};

struct ProcessStats {
  absl::Time when;
  int open_files = 0;
  std::map<pid_t, ThreadStats> threads;
};

// kUnavailable, naming the path, if the process has ended or is not ours to look at.
absl::StatusOr<ProcessStats> LookAt(pid_t pid);

struct Activity {
  double wakeups_per_second = 0;
  double cpu_percent = 0;  // of one core
  // Wake-ups per second of the threads that woke, by name.
  std::map<std::string, double> by_thread;
};
// What threads that still live did between two looks at one process.
Activity Between(const ProcessStats& before, const ProcessStats& after);

}  // namespace ascend::bench

#endif  // ASCEND_DRA_TEST_BENCH_PROCESS_STATS_H_
