// Who of several plugin instances on the node writes the ResourceSlices: the newest. Two versions
// that both wrote during an upgrade would undo each other's work for ever.
//
// Every instance keeps a lock on a file of its own, named by its start time, for as long as it
// lives; so the others see which ones are alive, also after a crash. The newest one alive waits for
// the lock on "current", and whoever holds that steps back as soon as a newer file appears (it
// watches the directory). When the newest dies, the next in line follows.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SLICES_PUBLISHER_ROLE_H_
#define ASCEND_DRA_KUBELETPLUGIN_SLICES_PUBLISHER_ROLE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/core/file_lock.h"

namespace ascend::kubeletplugin {

// Not thread-safe: one thread asks. Nothing here waits.
class PublisherRole {
 public:
  // `directory` exists. `start` orders the instances: the greater, the newer. Takes part in nothing
  // before the first Update().
  PublisherRole(std::string directory, int64_t start);
  PublisherRole(PublisherRole&&) = default;
  ~PublisherRole();

  // Steps towards holding the role, or checks that it should be kept. True while it is held.
  absl::StatusOr<bool> Update();
  bool held() const { return current_.held(); }
  // Whether the last Update() found no newer instance: the role is this one's as soon as its
  // present holder lets go.
  bool newest() const { return newest_; }

 private:
  absl::Status Enlist();
  absl::StatusOr<bool> NewerIsAlive() const;

  std::string directory_;
  int64_t start_;
  bool newest_ = false;
  FileLock own_;  // this instance's file, from the first Update() on
  FileLock current_;
};

// Nanoseconds since boot: the same clock for all instances on a node, and it never jumps.
int64_t BootTimeNanos();

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SLICES_PUBLISHER_ROLE_H_
