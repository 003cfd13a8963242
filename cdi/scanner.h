// Scans directories again and again without parsing again what did not change. Not for users of the
// library: see registry.h.
#ifndef ASCEND_DRA_CDI_SCANNER_H_
#define ASCEND_DRA_CDI_SCANNER_H_

#include <sys/stat.h>
#include <time.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cdi/registry.h"
#include "cdi/spec_file.h"

namespace ascend::cdi {

// Not thread-safe.
class Scanner {
 public:
  // Now, by the clock that stamps files.
  using Clock = std::function<timespec()>;
  explicit Scanner(std::vector<std::string> directories);
  Scanner(std::vector<std::string> directories, Clock clock);

  // The last result once more if nothing changed; never null.
  std::shared_ptr<const Snapshot> Scan();

 private:
  // A file without its content. `link` is the directory's entry, `file` what it leads to.
  struct Identity {
    struct stat link;
    struct stat file;
    bool Same(const Identity& other) const;
    // Whether a later write must show in the times. Two writes within one tick of the clock
    // do not.
    bool SettledAt(const timespec& now) const;
  };
  using Loaded = absl::StatusOr<std::shared_ptr<const SpecFile>>;
  struct Known {
    Identity identity;
    bool settled;
    Loaded loaded;
  };
  using KnownFiles = absl::flat_hash_map<std::string, Known>;  // by name

  void ScanDirectory(const std::string& directory, KnownFiles& known, Snapshot& snapshot);
  static Loaded Load(const std::string& path, const Known* before);

  const std::vector<std::string> directories_;
  const Clock clock_;
  std::vector<KnownFiles> known_;  // by directory
  std::shared_ptr<const Snapshot> last_;
};

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_SCANNER_H_
