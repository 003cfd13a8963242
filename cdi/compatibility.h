// Which container runtimes accept a spec file.
#ifndef ASCEND_DRA_CDI_COMPATIBILITY_H_
#define ASCEND_DRA_CDI_COMPATIBILITY_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cdi/spec.h"

namespace ascend::cdi {

// A line of releases of the reference library, and the runtimes that ship it.
struct RuntimeRelease {
  absl::string_view library;                // "0.5.0-0.5.3"
  std::vector<absl::string_view> runtimes;  // "podman 4.3", "containerd 2.0.5-2.0.14"
};

// Oldest first. Sources: the runtimes' go.mod files of those releases.
const std::vector<RuntimeRelease>& RuntimeReleases();

struct Compatibility {
  const RuntimeRelease* release;
  bool accepted;
  std::string reason;  // why not; also what an accepting release does differently, if anything
};

// What every known release makes of a file with this content, its `version` included. `spec` may be
// any spec that ReadJson or ReadYaml returned. A member that the file holds but leaves empty is not
// part of the spec: old releases refuse it all the same if they do not know it.
std::vector<Compatibility> Compatible(const Spec& spec);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_COMPATIBILITY_H_
