// The devices that all spec files of the configured directories define, as a runtime sees them.
#ifndef ASCEND_DRA_CDI_REGISTRY_H_
#define ASCEND_DRA_CDI_REGISTRY_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cdi/spec.h"
#include "cdi/spec_file.h"

namespace ascend::cdi {

// The result of one scan. Immutable, so any number of threads may read it.
class Snapshot {
 public:
  struct Entry {
    std::shared_ptr<const SpecFile> file;
    const Device* device;  // of file->spec
  };

  // By qualified name. A name that two files of one directory define is missing, whatever other
  // directories say: so does the reference.
  using DeviceMap = std::map<std::string, Entry, std::less<>>;
  const DeviceMap& devices() const { return devices_; }
  const Entry* Find(absl::string_view qualified_name) const;  // null if it does not resolve

  std::vector<std::string> Vendors() const;  // sorted, of all loaded files
  std::vector<std::string> Classes() const;  // sorted, over all vendors
  // Loaded files in the order of the scan: by directory, then by name.
  const std::vector<std::shared_ptr<const SpecFile>>& files() const { return files_; }

  // What is wrong, by path of the file or directory: unreadable, invalid, or in conflict with
  // another file (kAlreadyExists, at both). The other files are not disturbed.
  const std::map<std::string, std::vector<absl::Status>>& errors() const { return errors_; }

 private:
  friend class Scanner;
  std::vector<std::shared_ptr<const SpecFile>> files_;
  DeviceMap devices_;
  std::map<std::string, std::vector<absl::Status>> errors_;
};

// Reads the directories, the later ones taking precedence; no directory means the default ones. One
// that is missing is empty; one that cannot be read is an error in the result, and the scan goes on
// (the reference stops there). Files in subdirectories are not read, nor what is no regular file:
// that never blocks.
std::shared_ptr<const Snapshot> Scan(const std::vector<std::string>& directories);

// {"/etc/cdi", "/var/run/cdi"}.
const std::vector<std::string>& DefaultDirectories();

// Keeps a snapshot up to date. Thread-safe.
class Registry {
 public:
  struct Options {
    // As for Scan(). With a watch they must be absolute paths.
    std::vector<std::string> directories = DefaultDirectories();
    // Follow changes by inotify on a thread of its own, whatever the way a file comes and goes: a
    // write, a rename, a link, the directory or a symbolic link to it replaced. Not noticed, also
    // by no runtime: a change of what a symbolic link in the directory points at, and chmod.
    // Without a watch, Refresh() is the only way.
    bool watch = true;
    // Called on that thread after a change was taken in, with ever newer snapshots; possibly before
    // Open() has returned, never after the registry was destroyed. A change that makes no
    // difference, such as to a file that is no spec, causes no call. It may not destroy the
    // registry.
    std::function<void(const std::shared_ptr<const Snapshot>&)> on_change;
  };
  // Scans before it returns. Files that cannot be loaded are no failure; a watch that cannot be
  // established is (kResourceExhausted with what to raise).
  static absl::StatusOr<std::unique_ptr<Registry>> Open(Options options);
  ~Registry();  // waits for a running on_change
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Never blocks on a scan, never null.
  std::shared_ptr<const Snapshot> snapshot() const;
  // Scans now: what was in the directories before the call is in the result. Unchanged files (same
  // inode, size, times) are not parsed again. Returns the last snapshot if nothing changed.
  std::shared_ptr<const Snapshot> Refresh();

 private:
  class Impl;
  explicit Registry(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_REGISTRY_H_
