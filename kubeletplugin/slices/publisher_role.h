// Who of several plugin instances on the node writes the ResourceSlices: the newest. Two versions
// that both wrote during an upgrade would undo each other's work for ever.
//
// The holder keeps a lock on "current". A newcomer takes "next", leaves its start time and waits;
// the holder sees that (it watches the directory) and steps back if the newcomer is younger. When
// the newest one dies, the next in line follows.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SLICES_PUBLISHER_ROLE_H_
#define ASCEND_DRA_KUBELETPLUGIN_SLICES_PUBLISHER_ROLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/core/file_lock.h"

namespace ascend::kubeletplugin {

// Not thread-safe: one thread asks. Nothing here waits.
class PublisherRole {
 public:
  // `directory` exists. `start` orders the instances: the greater, the newer.
  PublisherRole(std::string directory, int64_t start);

  // Steps towards holding the role, or checks that it should be kept. True while it is held.
  absl::StatusOr<bool> Update();
  bool held() const { return current_.held(); }

 private:
  absl::StatusOr<bool> YoungerIsWaiting() const;

  const std::string directory_;
  const int64_t start_;
  FileLock current_;
  FileLock next_;
};

// Nanoseconds since boot: the same clock for all instances on a node, and it never jumps.
int64_t BootTimeNanos();

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SLICES_PUBLISHER_ROLE_H_
