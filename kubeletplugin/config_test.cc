#include "kubeletplugin/config.h"

#include <string>

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kHead[] = "apiVersion: npu.huawei.com/v1alpha1\nkind: DriverConfig\n";

absl::StatusOr<DriverConfig> Parse(const std::string& rest, const std::string& node = "node-1") {
  return ParseDriverConfig(kHead + rest, node);
}

TEST(ConfigTest, Defaults) {
  const auto config = Parse("");
  ASSERT_THAT(config, IsOk());
  EXPECT_TRUE(config->ascend_visible_devices_void);
  EXPECT_THAT(config->excluded_chips, IsEmpty());
  EXPECT_THAT(config->extra_mounts, IsEmpty());
}

TEST(ConfigTest, ValuesAndOverridesByNodeName) {
  const std::string text =
      "nodes:\n  node-2: {excludedChips: [], ascendVisibleDevicesVoid: true}\n"
      "excludedChips: [7, 3]\nascendVisibleDevicesVoid: false\nextraMounts: [/etc/site.conf]\n";
  const auto first = Parse(text);
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(first->excluded_chips, ElementsAre(3, 7));
  EXPECT_FALSE(first->ascend_visible_devices_void);
  EXPECT_THAT(first->extra_mounts, ElementsAre("/etc/site.conf"));
  const auto second = Parse(text, "node-2");
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(second->excluded_chips, IsEmpty());
  EXPECT_TRUE(second->ascend_visible_devices_void);
  EXPECT_THAT(second->extra_mounts, ElementsAre("/etc/site.conf"));
}

TEST(ConfigTest, MistakesAreNamedWithTheirLine) {
  const auto invalid = [](const char* part) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(part));
  };
  EXPECT_THAT(Parse("excludedChip: [1]\n"), invalid("line 3: unknown key excludedChip"));
  EXPECT_THAT(Parse("excludedChips: 1\n"), invalid("must be a list"));
  EXPECT_THAT(Parse("excludedChips: [one]\n"), invalid("must be a physical id"));
  EXPECT_THAT(Parse("excludedChips: [-1]\n"), invalid("must not be negative"));
  EXPECT_THAT(Parse("ascendVisibleDevicesVoid: 2\n"), invalid("must be true or false"));
  EXPECT_THAT(Parse("extraMounts: [relative]\n"), invalid("absolute path"));
  EXPECT_THAT(Parse("extraMounts: [/a/../b]\n"), invalid("absolute path"));
  EXPECT_THAT(Parse("excludedChips: [1]\nexcludedChips: [2]\n"), invalid("appears twice"));
  EXPECT_THAT(Parse("nodes: {other: {typo: 1}}\n"), invalid("unknown key nodes.other.typo"));
  EXPECT_THAT(Parse("nodes: [1]\n"), invalid("nodes must be a mapping"));
  EXPECT_THAT(Parse("a: [\n"), invalid("not valid YAML"));
  EXPECT_THAT(ParseDriverConfig("kind: DriverConfig\n", "n"), invalid("are required"));
  EXPECT_THAT(ParseDriverConfig("apiVersion: v1\nkind: DriverConfig\n", "n"),
              invalid("apiVersion must be"));
  EXPECT_THAT(ParseDriverConfig("", "n"), invalid("must be a mapping"));
  EXPECT_THAT(ParseDriverConfig("[]", "n"), invalid("must be a mapping"));
}

}  // namespace
}  // namespace ascend::kubeletplugin
