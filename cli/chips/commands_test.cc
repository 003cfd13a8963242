#include "cli/chips/commands.h"

#include <sstream>
#include <string>

#include "base/core/directory_watch.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/health/health_file.h"
#include "kubeletplugin/health/resets_file.h"
#include "nlohmann/json.hpp"

namespace ascend::cli {
namespace {

using kubeletplugin::ChipOrder;
using kubeletplugin::HealthFile;
using kubeletplugin::Paths;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ChipsTest : public ::testing::Test {
 protected:
  ChipsTest() {
    EXPECT_THAT(MakeDirectories(paths_.plugin_directory()), IsOk());
    health_.policy = "{}";
    health_.verdicts[0] = {.physical_id = 0, .uuid = "A", .since = absl::UnixEpoch()};
    health_.verdicts[1] = {.physical_id = 1, .uuid = "B", .since = absl::UnixEpoch()};
  }
  void Save() { ASSERT_THAT(WriteHealthFile(paths_.health_file(), health_), IsOk()); }
  Output Out(bool json = false) { return {.text = text_, .errors = errors_, .json = json}; }
  int Isolate(int chip, absl::Duration patience, const std::string& reason = "fan") {
    return OrderChip(
        paths_,
        {.action = ChipOrder::Action::kIsolate, .physical_id = chip, .reason = reason, .at = at_},
        patience, Out());
  }

  TempDir temp_;
  const Paths paths_ = *Paths::Create({.kubelet_root = temp_.path()});
  const absl::Time at_ = absl::FromUnixMicros(1'790'000'000'123'456);
  HealthFile health_;
  std::ostringstream text_;
  std::ostringstream errors_;
};

TEST_F(ChipsTest, ListSaysWhichChipsAreNotToBeUsed) {
  Save();
  EXPECT_EQ(ListChips(paths_, Out()), kExitOk);
  health_.verdicts[1].level = vnpu::HealthLevel::kSeparateNpu;
  health_.verdicts[1].effect = vnpu::TaintEffect::kNoSchedule;
  health_.verdicts[1].message = "fault 80E18402 (\x1b[31mred)";
  Save();
  text_.str("");
  EXPECT_EQ(ListChips(paths_, Out()), kExitFindings);
  EXPECT_THAT(text_.str(), AllOf(StartsWith("CHIP"), HasSubstr("SeparateNPU"),
                                 HasSubstr("NoSchedule"), HasSubstr("80E18402")));
  EXPECT_EQ(text_.str().find('\x1b'), std::string::npos);
  text_.str("");
  EXPECT_EQ(ListChips(paths_, Out(/*json=*/true)), kExitFindings);
  const auto json = nlohmann::json::parse(text_.str());
  EXPECT_EQ(json[0]["level"], "ok");
  EXPECT_EQ(json[1]["level"], "SeparateNPU");
  EXPECT_EQ(json[1]["since"], "1970-01-01T00:00:00Z");
}

TEST_F(ChipsTest, ListTellsOfResets) {
  health_.verdicts[1].level = vnpu::HealthLevel::kRestartNpu;
  health_.verdicts[1].effect = vnpu::TaintEffect::kNoSchedule;
  health_.verdicts[1].message = "fault 40F84E00";
  Save();
  ASSERT_THAT(kubeletplugin::WriteResetsFile(
                  paths_.resets_file(),
                  {{1, {.tries = 2, .outcome = "chip 1 has not started again", .failed = true}}}),
              IsOk());
  EXPECT_EQ(ListChips(paths_, Out()), kExitFindings);
  EXPECT_THAT(text_.str(), HasSubstr("fault 40F84E00; reset 2 of 3 at 1970-01-01T00:00:00Z failed: "
                                     "chip 1 has not started again"));
  text_.str("");
  ListChips(paths_, Out(/*json=*/true));
  const auto json = nlohmann::json::parse(text_.str());
  EXPECT_EQ(json[0]["reset"], "");
  EXPECT_THAT(json[1]["reset"].get<std::string>(), HasSubstr("reset 2 of 3"));
  // What cannot be read of it hides no chip.
  ASSERT_THAT(WriteFileAtomically(paths_.resets_file(), "{"), IsOk());
  EXPECT_EQ(ListChips(paths_, Out()), kExitFindings);
}

TEST_F(ChipsTest, WithoutThePluginsFileNothingIsKnown) {
  EXPECT_EQ(ListChips(paths_, Out()), kExitCannotRead);
  EXPECT_THAT(errors_.str(), HasSubstr("has not run on this node yet"));
  EXPECT_EQ(Isolate(0, absl::ZeroDuration()), kExitCannotRead);
  ASSERT_THAT(WriteFileAtomically(paths_.health_file(), "{"), IsOk());
  EXPECT_EQ(ListChips(paths_, Out()), kExitCannotRead);
}

TEST_F(ChipsTest, OrderWaitsForAPluginThatDoesNotRun) {
  Save();
  EXPECT_EQ(Isolate(1, absl::ZeroDuration()), kExitOk);
  EXPECT_THAT(text_.str(), HasSubstr("as soon as it runs"));
  const auto orders = kubeletplugin::ReadChipOrders(paths_.chip_orders_directory());
  ASSERT_THAT(orders, IsOk());
  ASSERT_EQ(orders->orders.size(), 1);
  EXPECT_EQ(orders->orders[0].uuid, "B");  // the chip that is meant, wherever it goes
  EXPECT_EQ(orders->orders[0].reason, "fan");
}

TEST_F(ChipsTest, SaysHowTheChipIsOnceTheOrderIsCarriedOut) {
  Save();
  // A plugin that carries out what it finds.
  ASSERT_THAT(MakeDirectories(paths_.chip_orders_directory()), IsOk());
  const auto plugin = DirectoryWatch::Start(paths_.chip_orders_directory(), [this] {
    const auto orders = kubeletplugin::ReadChipOrders(paths_.chip_orders_directory());
    if (!orders.ok() || orders->orders.empty()) return;
    HealthFile done = health_;
    done.verdicts[1].level = vnpu::HealthLevel::kManuallySeparateNpu;
    done.verdicts[1].message = "ManuallySeparateNPU: isolated: fan";
    done.orders_done[1] = orders->orders[0].at;
    EXPECT_THAT(WriteHealthFile(paths_.health_file(), done), IsOk());
  });
  ASSERT_THAT(plugin, IsOk());
  EXPECT_EQ(Isolate(1, absl::InfiniteDuration()), kExitOk);
  EXPECT_EQ(text_.str(), "chip 1: ManuallySeparateNPU: isolated: fan\n");
}

TEST_F(ChipsTest, MistakesChangeNothing) {
  Save();
  EXPECT_EQ(Isolate(7, absl::ZeroDuration()), kExitCannotRead);
  EXPECT_THAT(errors_.str(), HasSubstr("there is no chip 7; the plugin knows: 0, 1"));
  EXPECT_EQ(Isolate(1, absl::ZeroDuration(), ""), kExitUsage);
  EXPECT_EQ(Isolate(1, absl::ZeroDuration(), "two\nlines"), kExitUsage);
  EXPECT_TRUE(kubeletplugin::ReadChipOrders(paths_.chip_orders_directory())->orders.empty());
}

}  // namespace
}  // namespace ascend::cli
