// A read-only look at the host's files through the prefix under which the plugin's container sees
// them ("/host"). Links are followed as the host would follow them: an absolute link target counts
// from the prefix. Nothing is ever opened except small regular text files.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_HOST_FILES_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_HOST_FILES_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace ascend::kubeletplugin {

class HostFiles {
 public:
  explicit HostFiles(std::string root) : root_(std::move(root)) {}

  // The same files for one pass over many paths: every entry, also of a directory that they share,
  // is looked at once. What changes meanwhile may stay unseen, so it must not be kept; nor may it
  // be used from several threads.
  HostFiles OnePass() const;

  enum class Kind { kMissing, kFile, kDirectory, kCharacterDevice, kSymlink, kOther };
  struct Entry {
    Kind kind = Kind::kMissing;
    dev_t device_number = 0;  // of a character device
  };
  // The entry itself: a link in the last component is kSymlink, as a container runtime sees it.
  Entry Look(const std::string& host_path) const;
  // What the path leads to in the end; kMissing for a dangling link or a loop of links.
  Entry Follow(const std::string& host_path) const;
  bool Exists(const std::string& host_path) const {
    return Follow(host_path).kind != Kind::kMissing;
  }

  // Waits until the path's last component is there, whatever it is: for what the kernel makes some
  // time after it was asked to. False if it is not there in time.
  bool WaitFor(const std::string& host_path, absl::Duration timeout) const;

  // Sorted names; empty if the directory is missing.
  std::vector<std::string> List(const std::string& host_path) const;
  absl::StatusOr<std::string> Read(const std::string& host_path) const;

 private:
  struct Seen {
    Entry entry;
    std::string link_target;  // of a symlink
  };
  using Memory = std::unordered_map<std::string, Seen>;  // by path

  struct Found {
    std::string path;  // below root_, all links in its parents (and maybe in its end) resolved
    Entry entry;
  };
  std::optional<Found> Find(const std::string& host_path, bool follow) const;
  Seen See(const std::string& path) const;

  std::string root_;
  std::shared_ptr<Memory> memory_;  // of one pass
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_HOST_FILES_H_
