// Lets one operation per claim through at a time, and makes sure that a late Prepare never wins
// over an Unprepare, between threads and between two instances of the plugin.
//
// The gate is a lock file per claim. A Prepare opens it before it asks the API server and locks it
// only afterwards; an Unprepare unlinks the file when it has finished. A Prepare that began before
// then holds a file without a name, notices that and changes nothing. A Prepare that begins later
// makes a new file: the same claim can be prepared again at once.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CLAIM_GATE_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CLAIM_GATE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/core/file_lock.h"
#include "base/core/unique_fd.h"

namespace ascend::kubeletplugin {

class ClaimGate {
 public:
  // Remembers the claim's present generation; holds nothing.
  static absl::StatusOr<ClaimGate> Open(std::string path);
  // The same, but makes no generation: kNotFound if the claim has none.
  static absl::StatusOr<ClaimGate> OpenExisting(std::string path);

  // Waits for the operation that is inside. kAborted if an Unprepare ended since Open().
  absl::Status Enter(absl::Duration timeout);

  // After Enter(): ends the generation, so that whoever opened the gate before is turned away.
  absl::Status EndGeneration();

 private:
  ClaimGate(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  UniqueFd file_;  // until Enter()
  FileLock lock_;  // from Enter()
};

// Enter for an Unprepare: the newest generation, whatever ended in between.
absl::StatusOr<ClaimGate> EnterNewest(const std::string& path, absl::Duration timeout);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CLAIM_GATE_H_
