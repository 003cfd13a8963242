// Applies the edits of CDI devices to an OCI runtime configuration (config.json).
#ifndef ASCEND_DRA_CDI_INJECTOR_H_
#define ASCEND_DRA_CDI_INJECTOR_H_

#include <sys/stat.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cdi/registry.h"
#include "cdi/spec.h"
#include "nlohmann/json_fwd.hpp"

namespace ascend::cdi {

// Where older releases of the reference library differ from v1.1.2. All false is v1.1.2.
struct InjectionCompatibility {
  bool append_env = false;              // <= v1.1.0: a variable of the container is not replaced
  bool sort_mounts_by_name = false;     // <= v0.8.1: mounts of equal depth in alphabetical order
  bool no_file_mode_from_host = false;  // < v1.1.0
  bool idmap_without_mappings = false;  // v1.1.1: idmap in every user namespace
  bool no_idmap = false;                // <= v1.1.0
};

struct InjectionOptions {
  InjectionCompatibility compatibility;
  // lstat() of a host path; a test gives its own. Returns 0 or an errno.
  std::function<int(const std::string& path, struct stat* info)> lstat;  // empty = the host's
};

// The devices of `qualified_names` in their order, applied to `config`. All or nothing: on an error
// `config` is unchanged. kNotFound, naming all of them in the order asked for, if names do not
// resolve; kInvalidArgument if an edit or `config` has the wrong form; kFailedPrecondition with the
// path if a device node of the host is missing or of another type.
absl::Status Inject(const Snapshot& snapshot, const std::vector<std::string>& qualified_names,
                    nlohmann::json& config, const InjectionOptions& options = {});

// The names that do not resolve, in the order asked for.
std::vector<std::string> Unresolved(const Snapshot& snapshot,
                                    const std::vector<std::string>& qualified_names);

// One set of edits, as Inject() applies it.
absl::Status ApplyEdits(const ContainerEdits& edits, nlohmann::json& config,
                        const InjectionOptions& options = {});

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_INJECTOR_H_
