// Applies the edits of CDI devices to an OCI runtime configuration (config.json).
#ifndef ASCEND_DRA_CDI_INJECTOR_H_
#define ASCEND_DRA_CDI_INJECTOR_H_

#include <sys/stat.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cdi/registry.h"
#include "cdi/spec.h"
#include "nlohmann/json_fwd.hpp"

namespace ascend::cdi {

// An OCI runtime configuration. Members keep their order, as people who compare files like, and
// what an injection adds comes in the order of the OCI specification. `==` looks at the order too.
using OciConfig = nlohmann::ordered_json;

// Where older releases of the reference library differ from v1.1.2. All false is v1.1.2.
struct InjectionCompatibility {
  bool append_env = false;              // <= v1.1.0: a variable of the container is not replaced
  bool sort_mounts_by_name = false;     // <= v0.8.1: mounts of equal depth in alphabetical order
  bool no_file_mode_from_host = false;  // < v1.1.0
  bool idmap_without_mappings = false;  // v1.1.1: idmap in every user namespace
  bool no_idmap = false;                // <= v1.1.0
  // <= v1.1.1: edits are not validated again together, so two devices may give one network
  // interface; the last one counts.
  bool repeated_net_devices = false;
};

// What the reference library of a version does: "v0.8.1", with or without the "v", or "05ae4b5",
// the commit between v1.1.0 and v1.1.1 that was tagged nowhere but is in the recorded vectors.
// kInvalidArgument if `library_version` is neither.
absl::StatusOr<InjectionCompatibility> CompatibilityOf(absl::string_view library_version);

struct InjectionOptions {
  InjectionCompatibility compatibility;
  // lstat() of a host path; a test gives its own. Returns 0 or an errno.
  std::function<int(const std::string& path, struct stat* info)> lstat;  // empty = the host's
};

// The devices of `qualified_names` in their order, applied to `config`: first what their files have
// for all devices, once per file, then what each device has. All or nothing: on an error `config`
// is unchanged. No name at all is a success and changes nothing.
//
// kNotFound, naming all of them in the order asked for, if names do not resolve; kInvalidArgument
// if an edit or `config` has the wrong form; kFailedPrecondition with the path if a device node of
// the host is missing or of another type. Of `config` only the members that edits may touch are
// looked at. Thread-safe for different `config`s.
absl::Status Inject(const Snapshot& snapshot, const std::vector<std::string>& qualified_names,
                    OciConfig& config, const InjectionOptions& options = {});

// The names that do not resolve, in the order asked for.
std::vector<std::string> Unresolved(const Snapshot& snapshot,
                                    const std::vector<std::string>& qualified_names);

// One set of edits, as Inject() applies it; the edits may come from anywhere and are validated.
absl::Status ApplyEdits(const ContainerEdits& edits, OciConfig& config,
                        const InjectionOptions& options = {});

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_INJECTOR_H_
