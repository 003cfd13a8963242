// Facts about this machine without which times say little.
#ifndef ASCEND_DRA_TEST_BENCH_MACHINE_H_
#define ASCEND_DRA_TEST_BENCH_MACHINE_H_

#include <string>

#include "absl/status/statusor.h"

namespace ascend::bench {

int CoreCount();           // that this process may use
double LoadAverage();      // of the last minute
std::string KernelName();  // "Linux 6.1.0 x86_64"

// Type of the file system that holds `path`, as mount(8) names it; "0x<magic>" if it is none of the
// usual ones. The kernel's error, naming the path, if there is none.
absl::StatusOr<std::string> FileSystemType(const std::string& path);

}  // namespace ascend::bench

#endif  // ASCEND_DRA_TEST_BENCH_MACHINE_H_
