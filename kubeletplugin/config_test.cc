#include "kubeletplugin/config.h"

#include <optional>
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
  EXPECT_THAT(config->devices.excluded_chips, IsEmpty());
  EXPECT_THAT(config->extra_mounts, IsEmpty());
}

TEST(ConfigTest, ValuesAndOverridesByNodeName) {
  const std::string text =
      "nodes:\n  node-2: {excludedChips: [], ascendVisibleDevicesVoid: true}\n"
      "excludedChips: [7, 3]\nascendVisibleDevicesVoid: false\nextraMounts: [/etc/site.conf]\n";
  const auto first = Parse(text);
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(first->devices.excluded_chips, ElementsAre(3, 7));
  EXPECT_FALSE(first->ascend_visible_devices_void);
  EXPECT_THAT(first->extra_mounts, ElementsAre("/etc/site.conf"));
  const auto second = Parse(text, "node-2");
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(second->devices.excluded_chips, IsEmpty());
  EXPECT_TRUE(second->ascend_visible_devices_void);
  EXPECT_THAT(second->extra_mounts, ElementsAre("/etc/site.conf"));
}

TEST(ConfigTest, HowChipsAreDivided) {
  const auto defaults = Parse("");
  ASSERT_THAT(defaults, IsOk());
  EXPECT_EQ(defaults->devices.vnpu_mode, VnpuMode::kOff);
  EXPECT_EQ(defaults->devices.vnpu_templates, std::nullopt);
  EXPECT_EQ(defaults->devices.a3_unit, A3Unit::kPolicy);
  EXPECT_FALSE(defaults->devices.vnpus_on_a3);
  EXPECT_FALSE(defaults->vnpu_change_node_modes);

  const std::string text =
      "vnpuMode: dynamic\nvnpuTemplates: [vir05_1c_8g, vir01]\nvnpuOnA3: true\na3Unit: module\n"
      "vnpuChangeNodeModes: true\n"
      "nodes: {node-2: {vnpuMode: static, a3Unit: die, vnpuTemplates: []}}\n";
  const auto first = Parse(text);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->devices.vnpu_mode, VnpuMode::kDynamic);
  EXPECT_THAT(*first->devices.vnpu_templates, ElementsAre("vir01", "vir05_1c_8g"));
  EXPECT_TRUE(first->devices.vnpus_on_a3);
  EXPECT_EQ(first->devices.a3_unit, A3Unit::kModule);
  EXPECT_TRUE(first->vnpu_change_node_modes);
  const auto second = Parse(text, "node-2");
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(second->devices.vnpu_mode, VnpuMode::kStatic);
  EXPECT_THAT(*second->devices.vnpu_templates, IsEmpty());
  EXPECT_EQ(second->devices.a3_unit, A3Unit::kDie);
}

TEST(ConfigTest, OwnProductsAreAdded) {
  const auto config = Parse(
      "vnpuTemplates: [vir07_1c]\n"
      "vnpuCatalog:\n"
      "  - product: site-board\n"
      "    family: 910B\n"
      "    boards: [0x99]\n"
      "    budget: {aicore: 14, aicpu: 7, memory: 4096}\n"
      "    templates: [{name: vir07_1c, aicore: 7, aicpu: 1, memory: 2048}]\n");
  ASSERT_THAT(config, IsOk());
  ASSERT_NE(config->devices.catalog, nullptr);
  vnpu::Chip chip;
  chip.family = vnpu::Family::k910B;
  chip.board_id = 0x99;
  ASSERT_NE(config->devices.catalog->Find(chip), nullptr);
  EXPECT_EQ(config->devices.catalog->Find(chip)->name, "site-board");
}

TEST(ConfigTest, HealthChangesTheFaultTable) {
  const auto config = Parse(
      "health:\n"
      "  evictOn: [SeparateNPU]\n"  // before the table, and on top of it all the same
      "  faultTable:\n"
      "    version: site 3\n"
      "    levels: {SubHealthFault: ['80E18402']}\n"
      "nodes:\n"
      "  node-2: {health: {}}\n");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->faults.Find(0x80E18402), vnpu::HealthLevel::kSubHealthFault);
  EXPECT_EQ(config->faults.ActionOf(vnpu::HealthLevel::kSeparateNpu).effect,
            vnpu::TaintEffect::kNoExecute);
  EXPECT_EQ(config->faults.ActionOf(vnpu::HealthLevel::kRestartNpu).effect,
            vnpu::TaintEffect::kNoSchedule);
  const auto second = Parse(
      "health: {evictOn: [SeparateNPU]}\n"
      "nodes: {node-2: {health: {}}}\n",
      "node-2");
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(second->faults.ActionOf(vnpu::HealthLevel::kSeparateNpu).effect,
            vnpu::TaintEffect::kNoSchedule);
}

TEST(ConfigTest, ResetsAreOffUnlessTheyAreAskedFor) {
  const auto resets = [](const std::string& yaml, const std::string& node = "node-1") {
    const auto config = Parse(yaml, node);
    EXPECT_THAT(config, IsOk());
    return config.ok() && config->reset_idle_chips;
  };
  EXPECT_FALSE(resets(""));
  EXPECT_FALSE(resets("health: {}\n"));
  EXPECT_FALSE(resets("health: {reset: off}\n"));
  EXPECT_TRUE(resets("health: {reset: idle}\n"));
  const std::string per_node = "health: {reset: idle}\nnodes: {node-2: {health: {}}}\n";
  EXPECT_TRUE(resets(per_node));
  EXPECT_FALSE(resets(per_node, "node-2"));
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
  EXPECT_THAT(Parse("vnpuMode: on\n"), invalid("vnpuMode must be off or static or dynamic"));
  EXPECT_THAT(Parse("a3Unit: both\n"), invalid("a3Unit must be module or die"));
  EXPECT_THAT(Parse("vnpuTemplates: vir01\n"), invalid("must be a list of names"));
  EXPECT_THAT(Parse("vnpuTemplates: [vir00]\n"), invalid("vir00 is a template of no product"));
  EXPECT_THAT(Parse("vnpuOnA3: 1\n"), invalid("vnpuOnA3 must be true or false"));
  EXPECT_THAT(Parse("vnpuChangeNodeModes: []\n"), invalid("must be true or false"));
  EXPECT_THAT(Parse("vnpuCatalog: [{product: x}]\n"), invalid("line 3: vnpuCatalog: "));
  EXPECT_THAT(Parse("health: yes\n"), invalid("health must be a mapping"));
  EXPECT_THAT(Parse("health: {reset: always}\n"),
              invalid("line 3: health.reset must be off or idle"));
  EXPECT_THAT(Parse("health: {reset: true}\n"), invalid("health.reset must be off or idle"));
  EXPECT_THAT(Parse("health: {evict: []}\n"), invalid("line 3: unknown key health.evict"));
  EXPECT_THAT(Parse("health: {evictOn: SeparateNPU}\n"), invalid("must be a list of levels"));
  EXPECT_THAT(Parse("health: {evictOn: [unknown]}\n"), invalid("line 3: health.evictOn: "));
  EXPECT_THAT(Parse("health: {evictOn: [Bad]}\n"), invalid("health.evictOn: "));
  EXPECT_THAT(Parse("health: {faultTable: {levels: {Bad: []}}}\n"),
              invalid("line 3: health.faultTable: "));
  EXPECT_THAT(Parse("nodes: {other: {health: 1}}\n"), invalid("health must be a mapping"));
  EXPECT_THAT(Parse("a: [\n"), invalid("not valid YAML"));
  EXPECT_THAT(ParseDriverConfig("kind: DriverConfig\n", "n"), invalid("are required"));
  EXPECT_THAT(ParseDriverConfig("apiVersion: v1\nkind: DriverConfig\n", "n"),
              invalid("apiVersion must be"));
  EXPECT_THAT(ParseDriverConfig("", "n"), invalid("must be a mapping"));
  EXPECT_THAT(ParseDriverConfig("[]", "n"), invalid("must be a mapping"));
}

}  // namespace
}  // namespace ascend::kubeletplugin
