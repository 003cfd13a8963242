#include "cdi/version.h"

#include <optional>
#include <utility>

#include "gtest/gtest.h"

namespace ascend::cdi {
namespace {

Spec Plain() {
  Spec spec;
  spec.kind = "huawei.com/npu";
  spec.devices = {{"a", {}, {.env = {"A=1"}}}};
  return spec;
}

TEST(VersionTest, OnlyExactVersionsAreKnown) {
  EXPECT_EQ(ParseVersion("0.5.0"), Version::k0_5_0);
  EXPECT_EQ(ParseVersion("v1.1.0"), Version::k1_1_0);
  for (const char* text : {"", "v", "1.1", "0.5.1", "V0.5.0", "vv0.5.0", " 0.5.0", "1.2.0"}) {
    EXPECT_EQ(ParseVersion(text), std::nullopt) << text;
  }
}

TEST(VersionTest, NamesAndValuesMatch) {
  for (int i = 0; i <= static_cast<int>(Version::k1_1_0); ++i) {
    const auto version = static_cast<Version>(i);
    EXPECT_EQ(ParseVersion(VersionName(version)), version);
  }
  EXPECT_EQ(VersionName(Version::k0_5_0), "0.5.0");
  EXPECT_EQ(VersionName(Version::k1_1_0), "1.1.0");
}

// Every row of the table in the specification's history, at the spec and at the device.
TEST(VersionTest, EveryFeatureNeedsItsVersion) {
  EXPECT_EQ(MinimumVersion(Plain()), Version::k0_3_0);
  EXPECT_EQ(MinimumVersion(Spec()), Version::k0_3_0);

  const struct {
    ContainerEdits edits;
    Version version;
  } kEdits[] = {
      {{.device_nodes = {{.path = "/dev/x", .permissions = "none"}}}, Version::k0_3_0},
      {{.mounts = {{.host_path = "/a", .container_path = "/a"}}}, Version::k0_3_0},
      {{.mounts = {{.host_path = "/a", .container_path = "/a", .type = "bind"}}}, Version::k0_4_0},
      {{.device_nodes = {{.path = "/dev/x"}, {.path = "/dev/x", .host_path = "/dev/x"}}},
       Version::k0_5_0},
      {{.intel_rdt = IntelRdt()}, Version::k0_7_0},
      {{.additional_gids = {0}}, Version::k0_7_0},
      {{.net_devices = {{"eth0", "eth0"}}}, Version::k1_1_0},
      {{.intel_rdt = IntelRdt{.schemata = {{}}}}, Version::k1_1_0},
      {{.intel_rdt = IntelRdt{.enable_monitoring = true}}, Version::k1_1_0},
  };
  for (const auto& test : kEdits) {
    Spec at_spec = Plain();
    at_spec.container_edits = test.edits;
    EXPECT_EQ(MinimumVersion(at_spec), test.version);
    Spec at_device = Plain();
    at_device.devices.push_back({"b", {}, test.edits});
    EXPECT_EQ(MinimumVersion(at_device), test.version);
  }

  Spec digit = Plain();
  digit.devices[0].name = "0";
  EXPECT_EQ(MinimumVersion(digit), Version::k0_5_0);
  Spec annotated = Plain();
  annotated.annotations["a"] = "";
  EXPECT_EQ(MinimumVersion(annotated), Version::k0_6_0);
  Spec annotated_device = digit;
  annotated_device.devices[0].annotations["a"] = "";
  EXPECT_EQ(MinimumVersion(annotated_device), Version::k0_6_0);
  Spec dotted = Plain();
  dotted.kind = "huawei.com/npu.x";
  EXPECT_EQ(MinimumVersion(dotted), Version::k0_6_0);
}

TEST(VersionTest, TheReferenceLooksForHostPathsAndMountTypesInTheLastDeviceOnly) {
  const ContainerEdits host_path = {.device_nodes = {{.path = "/dev/a", .host_path = "/dev/b"}}};
  Spec spec = Plain();
  spec.devices.push_back({"last", {}, host_path});
  EXPECT_EQ(EnforcedVersion(spec), Version::k0_5_0);
  std::swap(spec.devices.front(), spec.devices.back());
  EXPECT_EQ(EnforcedVersion(spec), Version::k0_3_0);
  EXPECT_EQ(MinimumVersion(spec), Version::k0_5_0);
  // Everything else is looked for everywhere.
  spec.devices.front().container_edits.additional_gids = {5};
  EXPECT_EQ(EnforcedVersion(spec), Version::k0_7_0);
  spec.container_edits = host_path;
  spec.devices.front().container_edits = host_path;
  EXPECT_EQ(EnforcedVersion(spec), Version::k0_5_0);
}

}  // namespace
}  // namespace ascend::cdi
