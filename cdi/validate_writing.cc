// The writer's policy: see ValidateForWriting in cdi/validate.h.
#include <net/if.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/core/status_macros.h"
#include "cdi/annotations.h"
#include "cdi/dns.h"
#include "cdi/name.h"
#include "cdi/text.h"
#include "cdi/validate.h"
#include "cdi/version.h"

namespace ascend::cdi {
namespace {

constexpr size_t kMinVendor = 2;  // the reference up to v1.1.0 crashes on one character
constexpr size_t kMinClass = 2;
constexpr size_t kMaxClass = 63;
constexpr size_t kMaxDeviceName = 128;
constexpr int64_t kMaxDeviceNumber = std::numeric_limits<int32_t>::max();

absl::Status CheckText(absl::string_view text, const DocumentPath& path) {
  if (!IsValidUtf8(text)) return path.Error("is not valid UTF-8");
  if (HasControlCharacter(text)) {
    return path.Error("must not hold control characters: ", Quote(text));
  }
  return absl::OkStatus();
}

absl::Status CheckItems(const std::vector<std::string>& items, const DocumentPath& path,
                        bool allow_empty_item) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].empty() && !allow_empty_item) return path.Element(i).Error("must not be empty");
    ASCEND_RETURN_IF_ERROR(CheckText(items[i], path.Element(i)));
  }
  return absl::OkStatus();
}

absl::Status CheckPath(absl::string_view text, const DocumentPath& path) {
  ASCEND_RETURN_IF_ERROR(CheckText(text, path));
  if (!absl::StartsWith(text, "/")) return path.Error("must be absolute, not ", Quote(text));
  if (text == "/") return absl::OkStatus();
  for (const absl::string_view part : absl::StrSplit(text.substr(1), '/')) {
    if (part.empty() || part == "." || part == "..") {
      return path.Error("must not hold \"//\", \".\", \"..\" or a slash at its end: ", Quote(text));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckEnv(const std::vector<std::string>& env, const DocumentPath& path) {
  for (size_t i = 0; i < env.size(); ++i) {
    const absl::string_view name = absl::string_view(env[i]).substr(0, env[i].find('='));
    if (absl::StrContains(name, ' ')) {
      return path.Element(i).Error("must not have a space in the name: ", Quote(env[i]));
    }
  }
  return CheckItems(env, path, /*allow_empty_item=*/false);
}

absl::Status CheckDeviceNumber(int64_t number, const DocumentPath& path) {
  if (number > kMaxDeviceNumber) return path.Error("is too large: ", number);
  return absl::OkStatus();
}

absl::Status CheckOwner(const std::optional<uint32_t>& id, const DocumentPath& path) {
  // -1 means "no change" to the kernel.
  if (id == std::numeric_limits<uint32_t>::max()) return path.Error("is nobody's id: ", *id);
  return absl::OkStatus();
}

absl::Status CheckDeviceNode(const DeviceNode& node, const DocumentPath& path) {
  ASCEND_RETURN_IF_ERROR(CheckPath(node.path, path.Member("path")));
  if (!node.host_path.empty()) {
    ASCEND_RETURN_IF_ERROR(CheckPath(node.host_path, path.Member("hostPath")));
  }
  if (node.type == "u" && node.major == 0) {
    // "u" is never what a runtime finds on the host.
    return path.Member("major").Error("must be given for type \"u\"");
  }
  ASCEND_RETURN_IF_ERROR(CheckDeviceNumber(node.major, path.Member("major")));
  ASCEND_RETURN_IF_ERROR(CheckDeviceNumber(node.minor, path.Member("minor")));
  ASCEND_RETURN_IF_ERROR(CheckOwner(node.uid, path.Member("uid")));
  ASCEND_RETURN_IF_ERROR(CheckOwner(node.gid, path.Member("gid")));
  if (!node.file_mode.has_value()) {
    return path.Member("fileMode").Error("must be given: some runtimes take 0666 without it");
  }
  if ((*node.file_mode & ~uint32_t{0777}) != 0) {
    return path.Member("fileMode").Error("must hold permission bits only: ", *node.file_mode);
  }
  const DocumentPath permissions = path.Member("permissions");
  if (node.permissions == "none") {
    return permissions.Error("\"none\" is not known to runtimes before CDI 1.1.1");
  }
  for (size_t i = 0; i < node.permissions.size(); ++i) {
    if (node.permissions.find(node.permissions[i], i + 1) != std::string::npos) {
      return permissions.Error("names a letter twice: ", Quote(node.permissions));
    }
  }
  return absl::OkStatus();
}

// Places in the container. The second of two would hide the first.
absl::Status CheckPlace(const std::string& place, const DocumentPath& path,
                        std::set<absl::string_view>* taken) {
  if (place == "/") return path.Error("must not be the root directory");
  if (!taken->insert(place).second) return path.Error("is there twice: ", Quote(place));
  return absl::OkStatus();
}

absl::Status CheckMount(const Mount& mount, const DocumentPath& path) {
  ASCEND_RETURN_IF_ERROR(CheckPath(mount.host_path, path.Member("hostPath")));
  ASCEND_RETURN_IF_ERROR(CheckPath(mount.container_path, path.Member("containerPath")));
  ASCEND_RETURN_IF_ERROR(CheckText(mount.type, path.Member("type")));
  return CheckItems(mount.options, path.Member("options"), /*allow_empty_item=*/false);
}

absl::Status CheckHook(const Hook& hook, const DocumentPath& path) {
  ASCEND_RETURN_IF_ERROR(CheckPath(hook.path, path.Member("path")));
  ASCEND_RETURN_IF_ERROR(CheckItems(hook.args, path.Member("args"), /*allow_empty_item=*/true));
  ASCEND_RETURN_IF_ERROR(CheckEnv(hook.env, path.Member("env")));
  if (hook.timeout.has_value() && *hook.timeout <= 0) {
    return path.Member("timeout").Error("must be above 0: ", *hook.timeout);
  }
  return absl::OkStatus();
}

absl::Status CheckIntelRdt(const IntelRdt& rdt, const DocumentPath& path) {
  if (rdt == IntelRdt()) return path.Error("must not be empty");
  ASCEND_RETURN_IF_ERROR(CheckText(rdt.clos_id, path.Member("closID")));
  if (rdt.clos_id == "/") {
    return path.Member("closID").Error("\"/\" is not known to runtimes before CDI 1.1.0");
  }
  ASCEND_RETURN_IF_ERROR(CheckText(rdt.l3_cache_schema, path.Member("l3CacheSchema")));
  ASCEND_RETURN_IF_ERROR(CheckText(rdt.mem_bw_schema, path.Member("memBwSchema")));
  if (!rdt.schemata.has_value()) return absl::OkStatus();
  const DocumentPath schemata = path.Member("schemata");
  if (rdt.schemata->empty()) return schemata.Error("must not be empty");
  return CheckItems(*rdt.schemata, schemata, /*allow_empty_item=*/false);
}

// A name that the kernel accepts for an interface.
absl::Status CheckInterface(const std::string& name, const DocumentPath& path) {
  ASCEND_RETURN_IF_ERROR(CheckText(name, path));
  if (name.size() >= IFNAMSIZ || name == "." || name == ".." ||
      name.find_first_of("/: ") != std::string::npos) {
    return path.Error("is not the name of a network interface: ", Quote(name));
  }
  return absl::OkStatus();
}

absl::Status CheckEdits(const ContainerEdits& edits, const DocumentPath& path) {
  ASCEND_RETURN_IF_ERROR(CheckEnv(edits.env, path.Member("env")));
  const DocumentPath nodes = path.Member("deviceNodes");
  std::set<absl::string_view> node_paths;
  for (size_t i = 0; i < edits.device_nodes.size(); ++i) {
    const DocumentPath at = nodes.Element(i);
    ASCEND_RETURN_IF_ERROR(CheckDeviceNode(edits.device_nodes[i], at));
    ASCEND_RETURN_IF_ERROR(CheckPlace(edits.device_nodes[i].path, at.Member("path"), &node_paths));
  }
  const DocumentPath net_devices = path.Member("netDevices");
  for (size_t i = 0; i < edits.net_devices.size(); ++i) {
    const DocumentPath at = net_devices.Element(i);
    ASCEND_RETURN_IF_ERROR(
        CheckInterface(edits.net_devices[i].host_interface_name, at.Member("hostInterfaceName")));
    ASCEND_RETURN_IF_ERROR(CheckInterface(edits.net_devices[i].name, at.Member("name")));
  }
  const DocumentPath hooks = path.Member("hooks");
  for (size_t i = 0; i < edits.hooks.size(); ++i) {
    ASCEND_RETURN_IF_ERROR(CheckHook(edits.hooks[i], hooks.Element(i)));
  }
  const DocumentPath mounts = path.Member("mounts");
  std::set<absl::string_view> destinations;
  for (size_t i = 0; i < edits.mounts.size(); ++i) {
    const DocumentPath at = mounts.Element(i);
    ASCEND_RETURN_IF_ERROR(CheckMount(edits.mounts[i], at));
    ASCEND_RETURN_IF_ERROR(
        CheckPlace(edits.mounts[i].container_path, at.Member("containerPath"), &destinations));
  }
  if (edits.intel_rdt.has_value()) {
    ASCEND_RETURN_IF_ERROR(CheckIntelRdt(*edits.intel_rdt, path.Member("intelRdt")));
  }
  const DocumentPath gids = path.Member("additionalGids");
  for (size_t i = 0; i < edits.additional_gids.size(); ++i) {
    if (edits.additional_gids[i] == 0) return gids.Element(i).Error("0 has no effect");
    ASCEND_RETURN_IF_ERROR(CheckOwner(edits.additional_gids[i], gids.Element(i)));
  }
  return absl::OkStatus();
}

absl::Status CheckAnnotations(const std::map<std::string, std::string>& annotations,
                              const DocumentPath& path) {
  ASCEND_RETURN_IF_ERROR(ValidateAnnotations(annotations)).With(path.ToString());
  for (const auto& [key, value] : annotations) {
    ASCEND_RETURN_IF_ERROR(CheckText(value, path.Member(key)));
  }
  return absl::OkStatus();
}

absl::Status CheckKind(const Kind& kind, const DocumentPath& path) {
  if (kind.vendor.size() < kMinVendor || !IsDnsSubdomain(kind.vendor)) {
    return path.Error("the vendor must be a lower-case DNS subdomain of 2 to 253 characters, not ",
                      Quote(kind.vendor));
  }
  if (kind.device_class.size() < kMinClass || kind.device_class.size() > kMaxClass ||
      absl::StrContains(kind.device_class, '.')) {
    return path.Error("the class must have ", kMinClass, " to ", kMaxClass,
                      " characters and no dot, not ", Quote(kind.device_class));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateForWriting(const Spec& spec) {
  Spec versioned = spec;
  versioned.version = std::string(VersionName(MinimumVersion(spec)));
  ASCEND_RETURN_IF_ERROR(ValidateForReading(versioned));

  const DocumentPath document;
  ASCEND_RETURN_IF_ERROR(CheckKind(SplitKind(spec.kind), document.Member("kind")));
  ASCEND_RETURN_IF_ERROR(CheckAnnotations(spec.annotations, document.Member("annotations")));
  ASCEND_RETURN_IF_ERROR(CheckEdits(spec.container_edits, document.Member("containerEdits")));
  const DocumentPath devices = document.Member("devices");
  for (size_t i = 0; i < spec.devices.size(); ++i) {
    const Device& device = spec.devices[i];
    const DocumentPath at = devices.Element(i);
    const DocumentPath name = at.Member("name");
    if (device.name.size() > kMaxDeviceName || absl::StrContains(device.name, ':')) {
      return name.Error("must have at most ", kMaxDeviceName, " characters and no colon, not ",
                        Quote(device.name));
    }
    ASCEND_RETURN_IF_ERROR(CheckAnnotations(device.annotations, at.Member("annotations")));
    ASCEND_RETURN_IF_ERROR(CheckEdits(device.container_edits, at.Member("containerEdits")));
  }
  return absl::OkStatus();
}

}  // namespace ascend::cdi
