// What the benchmark works on, made in code so that every run, and the reference's benchmark, has
// the same.
#ifndef ASCEND_DRA_CDI_BENCH_INPUTS_H_
#define ASCEND_DRA_CDI_BENCH_INPUTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cdi/spec.h"

namespace ascend::cdi {

inline constexpr int kScannedFiles = 1000;

// A claim of all chips of a server: 8 devices, what they share, about as the driver writes it. The
// nodes are those of /dev/null on the host, so that they can be injected anywhere.
Spec ClaimSpec();
// The qualified names of its devices.
std::vector<std::string> ClaimDevices();

// One of many files of about 3 KB that lie in one directory: a claim of one chip.
Spec ScannedSpec(int index);

// Files 000.json, 001.json, ... with ScannedSpec().
absl::Status WriteScannedFiles(const std::string& directory);

// A container's configuration as containerd writes it, as JSON text.
absl::StatusOr<std::string> ReadConfig();

// claim.json, scan/, config.json and devices.txt (one name a line).
absl::Status WriteInputs(const std::string& directory);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_BENCH_INPUTS_H_
