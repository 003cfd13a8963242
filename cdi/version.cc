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

Version WithoutPathsAndTypes(const ContainerEdits& edits) {
  if (!edits.net_devices.empty()) return Version::k1_1_0;
  if (edits.intel_rdt.has_value() &&
      (edits.intel_rdt->schemata.has_value() || edits.intel_rdt->enable_monitoring)) {
    return Version::k1_1_0;
  }
  if (edits.intel_rdt.has_value() || !edits.additional_gids.empty()) return Version::k0_7_0;
  return Version::k0_3_0;
}

Version OfPathsAndTypes(const ContainerEdits& edits) {
  for (const DeviceNode& node : edits.device_nodes) {
    if (!node.host_path.empty()) return Version::k0_5_0;
  }
  for (const Mount& mount : edits.mounts) {
    if (!mount.type.empty()) return Version::k0_4_0;
  }
  return Version::k0_3_0;
}

Version WithoutPathsAndTypes(const Device& device) {
  Version version = WithoutPathsAndTypes(device.container_edits);
  if (!device.annotations.empty()) version = std::max(version, Version::k0_6_0);
  if (!device.name.empty() && absl::ascii_isdigit(static_cast<unsigned char>(device.name[0]))) {
    version = std::max(version, Version::k0_5_0);
  }
  return version;
}

// Looks for host paths and mount types in the devices from number `first` on.
Version VersionOf(const Spec& spec, size_t first) {
  Version version =
      std::max(WithoutPathsAndTypes(spec.container_edits), OfPathsAndTypes(spec.container_edits));
  if (!spec.annotations.empty() || absl::StrContains(SplitKind(spec.kind).device_class, '.')) {
    version = std::max(version, Version::k0_6_0);
  }
  for (size_t i = 0; i < spec.devices.size(); ++i) {
    version = std::max(version, WithoutPathsAndTypes(spec.devices[i]));
    if (i >= first) version = std::max(version, OfPathsAndTypes(spec.devices[i].container_edits));
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

Version MinimumVersion(const Spec& spec) { return VersionOf(spec, 0); }

Version EnforcedVersion(const Spec& spec) {
  return VersionOf(spec, spec.devices.empty() ? 0 : spec.devices.size() - 1);
}

}  // namespace ascend::cdi
