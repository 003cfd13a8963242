#include "cdi/injector.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/status_macros.h"
#include "cdi/apply_edits.h"
#include "cdi/document_path.h"
#include "cdi/host_device.h"
#include "cdi/oci_config.h"
#include "cdi/validate.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi {
namespace {

// Each set is valid; is all of them together? Only network interfaces must be unique.
absl::Status ValidateTogether(const EditList& edits) {
  ContainerEdits merged;
  for (const ContainerEdits* set : edits) {
    merged.net_devices.insert(merged.net_devices.end(), set->net_devices.begin(),
                              set->net_devices.end());
  }
  if (merged.net_devices.empty()) return absl::OkStatus();
  return Annotate(ValidateEdits(merged, DocumentPath()), "edits of all devices together");
}

// Everything that can fail comes before the first change, so nothing has to be undone.
absl::Status ApplyValid(const EditList& edits, OciConfig& config, const InjectionOptions& options) {
  const InjectionCompatibility& compatibility = options.compatibility;
  ASCEND_RETURN_IF_ERROR(CheckOciConfig(config));
  std::vector<CompleteNode> nodes;
  size_t count = 0;
  for (const ContainerEdits* set : edits) count += set->device_nodes.size();
  nodes.reserve(count);
  for (const ContainerEdits* set : edits) {
    for (const DeviceNode& node : set->device_nodes) {
      ASCEND_ASSIGN_OR_RETURN(CompleteNode complete, CompleteFromHost(node, options));
      nodes.push_back(complete);
    }
  }

  ApplyEnv(edits, compatibility, config);
  ApplyDeviceNodes(nodes, config);
  ApplyNetDevices(edits, config);
  ApplyMounts(edits, compatibility, config);
  ApplyHooks(edits, config);
  ApplyIntelRdt(edits, config);
  ApplyAdditionalGids(edits, config);
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> Unresolved(const Snapshot& snapshot,
                                    const std::vector<std::string>& qualified_names) {
  std::vector<std::string> unresolved;
  for (const std::string& name : qualified_names) {
    if (snapshot.Find(name) == nullptr) unresolved.push_back(name);
  }
  return unresolved;
}

absl::Status Inject(const Snapshot& snapshot, const std::vector<std::string>& qualified_names,
                    OciConfig& config, const InjectionOptions& options) {
  if (qualified_names.empty()) return absl::OkStatus();
  EditList edits;
  absl::flat_hash_set<const SpecFile*> files;
  for (const std::string& name : qualified_names) {
    const Snapshot::Entry* entry = snapshot.Find(name);
    if (entry == nullptr) {
      return absl::NotFoundError(absl::StrCat(
          "unresolvable CDI devices ", absl::StrJoin(Unresolved(snapshot, qualified_names), ", ")));
    }
    if (files.insert(entry->file.get()).second) {
      edits.push_back(&entry->file->spec.container_edits);
    }
    edits.push_back(&entry->device->container_edits);
  }
  if (!options.compatibility.repeated_net_devices) {
    ASCEND_RETURN_IF_ERROR(ValidateTogether(edits));
  }
  return ApplyValid(edits, config, options);
}

absl::Status ApplyEdits(const ContainerEdits& edits, OciConfig& config,
                        const InjectionOptions& options) {
  ASCEND_RETURN_IF_ERROR(ValidateEdits(edits, DocumentPath()));
  return ApplyValid({&edits}, config, options);
}

}  // namespace ascend::cdi
