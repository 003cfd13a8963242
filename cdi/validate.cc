#include "cdi/validate.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "cdi/name.h"
#include "cdi/version.h"

namespace ascend::cdi {
namespace {

constexpr absl::string_view kHookNames[] = {"prestart",       "createRuntime", "createContainer",
                                            "startContainer", "poststart",     "poststop"};
constexpr size_t kMaxClosId = 4096;

absl::Status CheckVersion(const Spec& spec) {
  const DocumentPath document;
  const DocumentPath path = document.Member("cdiVersion");
  const std::optional<Version> version = ParseVersion(spec.version);
  if (!version.has_value()) return path.Error("unknown version ", Quote(spec.version));
  const Version minimum = EnforcedVersion(spec);
  if (*version < minimum) {
    return path.Error("must be at least ", VersionName(minimum), " for what the file uses, not ",
                      Quote(spec.version));
  }
  return absl::OkStatus();
}

absl::Status CheckEnv(const std::vector<std::string>& env, const DocumentPath& path) {
  for (size_t i = 0; i < env.size(); ++i) {
    const size_t equals = env[i].find('=');
    if (equals == std::string::npos || equals == 0) {
      return path.Element(i).Error(Quote(env[i]), " is not of the form NAME=value");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDeviceNode(const DeviceNode& node, const DocumentPath& path) {
  if (node.path.empty()) return path.Member("path").Error("must not be empty");
  if (!node.type.empty() && node.type != "b" && node.type != "c" && node.type != "u" &&
      node.type != "p") {
    return path.Member("type").Error("must be b, c, u or p, not ", Quote(node.type));
  }
  if (node.permissions != "none" &&
      node.permissions.find_first_not_of("rwm") != std::string::npos) {
    return path.Member("permissions")
        .Error("may hold only the letters r, w and m, or be \"none\", not ",
               Quote(node.permissions));
  }
  if (node.major < 0) return path.Member("major").Error("must not be negative: ", node.major);
  if (node.minor < 0) return path.Member("minor").Error("must not be negative: ", node.minor);
  return absl::OkStatus();
}

absl::Status CheckHook(const Hook& hook, const DocumentPath& path) {
  bool known = false;
  for (const absl::string_view name : kHookNames) known |= name == hook.hook_name;
  if (!known) return path.Member("hookName").Error("unknown hook ", Quote(hook.hook_name));
  if (hook.path.empty()) return path.Member("path").Error("must not be empty");
  return CheckEnv(hook.env, path.Member("env"));
}

absl::Status CheckMount(const Mount& mount, const DocumentPath& path) {
  if (mount.host_path.empty()) return path.Member("hostPath").Error("must not be empty");
  if (mount.container_path.empty()) return path.Member("containerPath").Error("must not be empty");
  return absl::OkStatus();
}

absl::Status CheckIntelRdt(const IntelRdt& rdt, const DocumentPath& path) {
  const std::string& id = rdt.clos_id;
  if (id.size() >= kMaxClosId || id == "." || id == ".." ||
      (id != "/" && id.find_first_of("/\n") != std::string::npos)) {
    return path.Member("closID").Error("is not the name of a directory: ", Quote(id));
  }
  return absl::OkStatus();
}

absl::Status CheckNetDevices(const std::vector<NetDevice>& devices, const DocumentPath& path) {
  absl::flat_hash_set<absl::string_view> host_names;
  absl::flat_hash_set<absl::string_view> names;
  for (size_t i = 0; i < devices.size(); ++i) {
    const DocumentPath at = path.Element(i);
    const DocumentPath host_name = at.Member("hostInterfaceName");
    const DocumentPath name = at.Member("name");
    if (devices[i].host_interface_name.empty()) return host_name.Error("must not be empty");
    if (devices[i].name.empty()) return name.Error("must not be empty");
    if (!host_names.insert(devices[i].host_interface_name).second) {
      return host_name.Error("is there twice: ", Quote(devices[i].host_interface_name));
    }
    if (!names.insert(devices[i].name).second) {
      return name.Error("is there twice: ", Quote(devices[i].name));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateEdits(const ContainerEdits& edits, const DocumentPath& path) {
  ASCEND_RETURN_IF_ERROR(CheckEnv(edits.env, path.Member("env")));
  const DocumentPath nodes = path.Member("deviceNodes");
  for (size_t i = 0; i < edits.device_nodes.size(); ++i) {
    ASCEND_RETURN_IF_ERROR(CheckDeviceNode(edits.device_nodes[i], nodes.Element(i)));
  }
  const DocumentPath hooks = path.Member("hooks");
  for (size_t i = 0; i < edits.hooks.size(); ++i) {
    ASCEND_RETURN_IF_ERROR(CheckHook(edits.hooks[i], hooks.Element(i)));
  }
  const DocumentPath mounts = path.Member("mounts");
  for (size_t i = 0; i < edits.mounts.size(); ++i) {
    ASCEND_RETURN_IF_ERROR(CheckMount(edits.mounts[i], mounts.Element(i)));
  }
  if (edits.intel_rdt.has_value()) {
    ASCEND_RETURN_IF_ERROR(CheckIntelRdt(*edits.intel_rdt, path.Member("intelRdt")));
  }
  return CheckNetDevices(edits.net_devices, path.Member("netDevices"));
}

absl::Status ValidateForReading(const Spec& spec) {
  const DocumentPath document;
  ASCEND_RETURN_IF_ERROR(CheckVersion(spec));
  const Kind kind = SplitKind(spec.kind);
  if (kind.vendor.empty()) {
    return document.Member("kind").Error("must be of the form vendor/class, not ",
                                         Quote(spec.kind));
  }
  ASCEND_RETURN_IF_ERROR(ValidateVendor(kind.vendor)).With("kind");
  ASCEND_RETURN_IF_ERROR(ValidateClass(kind.device_class)).With("kind");
  ASCEND_RETURN_IF_ERROR(ValidateEdits(spec.container_edits, document.Member("containerEdits")));

  const DocumentPath devices = document.Member("devices");
  absl::flat_hash_set<absl::string_view> names;
  for (size_t i = 0; i < spec.devices.size(); ++i) {
    const Device& device = spec.devices[i];
    const DocumentPath at = devices.Element(i);
    const DocumentPath name = at.Member("name");
    const DocumentPath edits = at.Member("containerEdits");
    ASCEND_RETURN_IF_ERROR(ValidateDeviceName(device.name)).With(name.ToString());
    if (device.container_edits.empty()) return edits.Error("must not be empty");
    ASCEND_RETURN_IF_ERROR(ValidateEdits(device.container_edits, edits));
    if (!names.insert(device.name).second) {
      return name.Error("is there twice: ", Quote(device.name));
    }
  }
  if (spec.devices.empty()) return devices.Error("must not be empty");
  return absl::OkStatus();
}

}  // namespace ascend::cdi
