// Writes and removes CDI files so that no runtime ever sees half of one.
#ifndef ASCEND_DRA_CDI_STORE_H_
#define ASCEND_DRA_CDI_STORE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cdi/spec.h"

namespace ascend::cdi {

// A directory of CDI files, such as /var/run/cdi. Stateless and thread-safe: every call opens the
// directory anew, so it may vanish and come back in between.
class Store {
 public:
  struct Options {
    std::string directory;
    // Refuse a directory that others may write to (a CDI file is root's code). Also checked: owned
    // by root or by this process's user.
    bool check_directory_mode = true;
  };
  explicit Store(Options options);

  const std::string& directory() const { return options_.directory; }

  // Creates the directory (0755) if it is missing and checks that files can be written to it.
  // kPermissionDenied with the path and what to do if not.
  absl::Status Prepare() const;

  // Makes `file_name` (which must end in ".json") hold exactly `spec`, with the least cdiVersion
  // that can carry it, mode 0644, atomically. The text is read back by the strict reader before a
  // byte of it is written: a spec that a runtime would refuse is kInvalidArgument and changes
  // nothing. Content that is already there is not written again unless `rewrite_identical`: that is
  // for when a device node behind it changed, since runtimes may keep what they looked up until the
  // file changes. A missing directory is created as by Prepare().
  //
  // `durable` syncs the file and its directory to disk. On a tmpfs, as /var/run/cdi is one, there
  // is nothing to sync.
  struct WriteOptions {
    bool rewrite_identical = false;
    bool durable = true;
  };
  absl::Status Write(const std::string& file_name, const Spec& spec,
                     const WriteOptions& options) const;

  // Removes the file; one that is not there is a success.
  absl::Status Remove(const std::string& file_name) const;

  // File names ending in ".json" that begin with `prefix`, sorted. A missing directory is empty.
  absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) const;

  // Whether the file is there and holds exactly what Write(spec) would put there.
  bool Holds(const std::string& file_name, const Spec& spec) const;

  // Removes temporaries that a crashed writer of files beginning with `prefix` left behind; younger
  // ones than `min_age` may belong to another process at work.
  absl::Status RemoveStaleTempFiles(const std::string& prefix, absl::Duration min_age) const;

 private:
  Options options_;
};

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_STORE_H_
