#include "cdi/compatibility.h"

#include <functional>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cdi/name.h"
#include "cdi/version.h"

namespace ascend::cdi {
namespace {

// What the releases of one line do differently from v1.1.2 with a file that v1.1.2 accepts.
struct Line {
  RuntimeRelease release;
  Version oldest;
  Version newest;
  bool accepts_leading_v;
  bool survives_short_names;   // a vendor or class of one character
  bool knows_none;             // permissions "none"
  bool knows_root_clos;        // intelRdt.closID "/"
  bool takes_mode_from_host;   // fills a missing fileMode
  bool keeps_order_of_mounts;  // of equal depth
};

const std::vector<Line>& Lines() {
  static const auto* const lines = new std::vector<Line>{
      {{"0.3.2", {"CRI-O 1.24"}},
       Version::k0_1_0,
       Version::k0_3_0,
       false,
       false,
       false,
       false,
       false,
       false},
      {{"0.4.0", {"podman 4.1-4.2"}},
       Version::k0_1_0,
       Version::k0_4_0,
       false,
       false,
       false,
       false,
       false,
       false},
      {{"0.5.0-0.5.3", {"CRI-O 1.25-1.26", "podman 4.3-4.4"}},
       Version::k0_1_0,
       Version::k0_5_0,
       false,
       false,
       false,
       false,
       false,
       false},
      {{"0.5.4", {"containerd 1.7.0-1.7.11", "CRI-O 1.27", "podman 4.5-4.6"}},
       Version::k0_3_0,
       Version::k0_5_0,
       true,
       false,
       false,
       false,
       false,
       false},
      {{"0.6.x",
        {"containerd 1.7.12-1.7.15", "CRI-O 1.28-1.29", "podman 4.7-5.0", "Docker 25.0-26.0"}},
       Version::k0_3_0,
       Version::k0_6_0,
       true,
       false,
       false,
       false,
       false,
       false},
      {{"0.7.x", {"containerd 1.7.16-1.7.26", "CRI-O 1.30", "podman 5.1", "Docker 26.1-27.1"}},
       Version::k0_3_0,
       Version::k0_7_0,
       true,
       false,
       false,
       false,
       false,
       false},
      {{"0.8.x",
        {"containerd 1.7.27-1.7.34", "containerd 2.0.0-2.0.4", "CRI-O 1.31-1.32", "podman 5.2-5.4",
         "Docker 27.5-28.0"}},
       Version::k0_3_0,
       Version::k0_8_0,
       true,
       false,
       false,
       false,
       false,
       false},
      {{"1.0.x",
        {"containerd 2.0.5-2.0.14", "containerd 2.1.x", "containerd 2.2.0", "CRI-O 1.33-1.34",
         "podman 5.5-5.8", "Docker 28.1-29.0"}},
       Version::k0_3_0,
       Version::k1_0_0,
       true,
       false,
       false,
       false,
       false,
       true},
      {{"1.1.0", {"containerd 2.2.1-2.2.9", "containerd 2.3.x", "CRI-O 1.35-1.36", "Docker 29.3+"}},
       Version::k0_3_0,
       Version::k1_1_0,
       true,
       false,
       false,
       true,
       true,
       true},
      {{"1.1.1-1.1.2", {"containerd 2.4.x"}},
       Version::k0_3_0,
       Version::k1_1_0,
       true,
       true,
       true,
       true,
       true,
       true},
  };
  return *lines;
}

// Whether any edits of the spec, the common ones or a device's, satisfy `predicate`.
bool AnyEdits(const Spec& spec, const std::function<bool(const ContainerEdits&)>& predicate) {
  if (predicate(spec.container_edits)) return true;
  for (const Device& device : spec.devices) {
    if (predicate(device.container_edits)) return true;
  }
  return false;
}

bool AnyNode(const Spec& spec, const std::function<bool(const DeviceNode&)>& predicate) {
  return AnyEdits(spec, [&](const ContainerEdits& edits) {
    for (const DeviceNode& node : edits.device_nodes) {
      if (predicate(node)) return true;
    }
    return false;
  });
}

// What in a file matters to some release, looked up once for all.
struct Traits {
  std::optional<Version> version;
  Version minimum;
  bool leading_v;
  bool short_names;
  bool none;
  bool root_clos;
  bool node_without_mode;
  bool mounts;
};

Traits TraitsOf(const Spec& spec) {
  const Kind kind = SplitKind(spec.kind);
  return {
      .version = ParseVersion(spec.version),
      .minimum = MinimumVersion(spec),
      .leading_v = absl::StartsWith(spec.version, "v"),
      .short_names = kind.vendor.size() == 1 || kind.device_class.size() == 1,
      .none = AnyNode(spec, [](const DeviceNode& node) { return node.permissions == "none"; }),
      .root_clos = AnyEdits(spec,
                            [](const ContainerEdits& edits) {
                              return edits.intel_rdt.has_value() && edits.intel_rdt->clos_id == "/";
                            }),
      .node_without_mode =
          AnyNode(spec, [](const DeviceNode& node) { return !node.file_mode.has_value(); }),
      .mounts = AnyEdits(spec, [](const ContainerEdits& edits) { return !edits.mounts.empty(); }),
  };
}

// Why the release refuses the file; empty if it does not.
std::string Refusal(const Line& line, const Traits& file, const Spec& spec) {
  if (!file.version.has_value() || *file.version < line.oldest || *file.version > line.newest) {
    return absl::StrCat("knows no cdiVersion ", spec.version, ", only ", VersionName(line.oldest),
                        " to ", VersionName(line.newest));
  }
  if (file.minimum > line.newest) {
    return absl::StrCat("does not know all that the file uses: that takes ",
                        VersionName(file.minimum));
  }
  if (file.leading_v && !line.accepts_leading_v) return "refuses the \"v\" before the cdiVersion";
  if (file.short_names && !line.survives_short_names) {
    return "crashes on a vendor or class of one character";
  }
  if (file.none && !line.knows_none) return "refuses the permissions \"none\"";
  if (file.root_clos && !line.knows_root_clos) return "refuses the closID \"/\"";
  return "";
}

std::string Remarks(const Line& line, const Traits& file) {
  std::vector<absl::string_view> remarks;
  if (file.node_without_mode && !line.takes_mode_from_host) {
    remarks.push_back("device nodes without a fileMode become 0666");
  }
  if (file.mounts && !line.keeps_order_of_mounts) {
    remarks.push_back("sorts mounts of equal depth by name");
  }
  return absl::StrJoin(remarks, "; ");
}

}  // namespace

const std::vector<RuntimeRelease>& RuntimeReleases() {
  static const auto* const releases = [] {
    auto* result = new std::vector<RuntimeRelease>;
    for (const Line& line : Lines()) result->push_back(line.release);
    return result;
  }();
  return *releases;
}

std::vector<Compatibility> Compatible(const Spec& spec) {
  const Traits file = TraitsOf(spec);
  std::vector<Compatibility> result;
  for (size_t i = 0; i < Lines().size(); ++i) {
    const Line& line = Lines()[i];
    std::string refusal = Refusal(line, file, spec);
    const bool accepted = refusal.empty();
    result.push_back({.release = &RuntimeReleases()[i],
                      .accepted = accepted,
                      .reason = accepted ? Remarks(line, file) : std::move(refusal)});
  }
  return result;
}

}  // namespace ascend::cdi
