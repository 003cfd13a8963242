// Tells when something in a directory changes, by inotify. The directory itself may be missing,
// removed and re-created (also by a rename or a changed symlink target of a parent): the watch
// re-arms on the nearest existing parent and reports a change when it is back.
#ifndef ASCEND_DRA_BASE_CORE_DIRECTORY_WATCH_H_
#define ASCEND_DRA_BASE_CORE_DIRECTORY_WATCH_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ascend {

class DirectoryWatch {
 public:
  // Runs `on_change` on a thread of its own after any create, write, rename or removal of an entry,
  // and after the directory appeared or vanished. Bursts are merged into one call. `on_change` is
  // not told what changed: look at the directory. It must not destroy the watch.
  //
  // kResourceExhausted, with the limit to raise, if the kernel has no room for the watch.
  static absl::StatusOr<std::unique_ptr<DirectoryWatch>> Start(std::string path,
                                                               std::function<void()> on_change);
  // The same for several directories at once, on one thread.
  static absl::StatusOr<std::unique_ptr<DirectoryWatch>> Start(std::vector<std::string> paths,
                                                               std::function<void()> on_change);
  // Waits for a running `on_change` to return; none runs afterwards.
  ~DirectoryWatch();
  DirectoryWatch(const DirectoryWatch&) = delete;
  DirectoryWatch& operator=(const DirectoryWatch&) = delete;

 private:
  class Impl;
  explicit DirectoryWatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ascend

#endif  // ASCEND_DRA_BASE_CORE_DIRECTORY_WATCH_H_
