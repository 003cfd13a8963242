#include "cdi/version.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "cdi/name.h"

namespace ascend::cdi {
namespace {

constexpr std::array<absl::string_view, 10> kNames = {"0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0",
                                                      "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"};
static_assert(kNames.size() == static_cast<size_t>(Version::k1_1_0) + 1);

Version MinimumVersion(const ContainerEdits& edits) {
  if (!edits.net_devices.empty()) return Version::k1_1_0;
  if (edits.intel_rdt.has_value() &&
      (edits.intel_rdt->schemata.has_value() || edits.intel_rdt->enable_monitoring)) {
    return Version::k1_1_0;
  }
  if (edits.intel_rdt.has_value() || !edits.additional_gids.empty()) return Version::k0_7_0;
  for (const DeviceNode& node : edits.device_nodes) {
    if (!node.host_path.empty()) return Version::k0_5_0;
  }
  for (const Mount& mount : edits.mounts) {
    if (!mount.type.empty()) return Version::k0_4_0;
  }
  return Version::k0_3_0;
}

Version MinimumVersion(const Device& device) {
  Version version = MinimumVersion(device.container_edits);
  if (!device.annotations.empty()) version = std::max(version, Version::k0_6_0);
  if (!device.name.empty() && absl::ascii_isdigit(static_cast<unsigned char>(device.name[0]))) {
    version = std::max(version, Version::k0_5_0);
  }
  return version;
}

}  // namespace

absl::string_view VersionName(Version version) { return kNames[static_cast<size_t>(version)]; }

std::optional<Version> ParseVersion(absl::string_view text) {
  absl::ConsumePrefix(&text, "v");
  const auto found = std::find(kNames.begin(), kNames.end(), text);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Version>(found - kNames.begin());
}

Version MinimumVersion(const Spec& spec) {
  Version version = MinimumVersion(spec.container_edits);
  if (!spec.annotations.empty() || absl::StrContains(SplitKind(spec.kind).device_class, '.')) {
    version = std::max(version, Version::k0_6_0);
  }
  for (const Device& device : spec.devices) version = std::max(version, MinimumVersion(device));
  return version;
}

}  // namespace ascend::cdi
