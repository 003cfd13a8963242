// Changes to a node's node.json while clients of the mock library run: each is one atomic
// replacement, and concurrent editors wait for one another.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_EDIT_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_EDIT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace ascend::dcmi::mock {

// Sets keys of one chip. Each assignment reads key=value; a dotted key ("memory.usedMiB") reaches
// into an object; a value that is no JSON is taken as a string. A result that the library would not
// accept is refused (kInvalidArgument) and changes nothing.
absl::Status SetOnChip(const std::string& node_directory, int physical_id,
                       const std::vector<std::string>& assignments);

// Puts a process on a chip, or changes its memory if it is there.
absl::Status SetProcess(const std::string& node_directory, int physical_id, int pid,
                        int64_t memory_bytes);
// Takes it off again; kNotFound if it is not there.
absl::Status RemoveProcess(const std::string& node_directory, int physical_id, int pid);
absl::Status ClearProcesses(const std::string& node_directory, int physical_id);

struct CallEdit {
  std::string function;                          // "*" = every function
  std::optional<int> card, device, physical_id;  // only for this chip
  std::optional<int> return_code;
  int delay_ms = 0;
  bool hang = false;
  bool crash = false;
  bool after_work = false;  // the call does its work first
};

// Replaces what the function does for the same chip filter. An edit that asks for nothing restores
// its normal work.
absl::Status SetCall(const std::string& node_directory, const CallEdit& edit);
// Restores the normal work of every function.
absl::Status ClearCalls(const std::string& node_directory);

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_EDIT_H_
