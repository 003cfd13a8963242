#include "kubeletplugin/inventory_memory.h"

#include <memory>
#include <string>
#include <vector>

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/inventory_file.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;

class FakeClock : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch() + now; }
  absl::Duration Monotonic() const override { return now; }
  absl::Duration now;
};

std::shared_ptr<const vnpu::Inventory> Node(const std::vector<int>& chips,
                                            vnpu::LibraryState state) {
  auto inventory = std::make_shared<vnpu::Inventory>();
  inventory->library = state;
  for (const int id : chips) {
    vnpu::Chip& chip = inventory->chips.emplace_back();
    chip.physical_id = id;
    chip.health = vnpu::Health::kOk;
  }
  return inventory;
}

agent::View Told(const std::vector<int>& chips,
                 vnpu::LibraryState state = vnpu::LibraryState::kReady) {
  return {.connected = true, .disconnected_for = {}, .inventory = Node(chips, state)};
}

class InventoryMemoryTest : public ::testing::Test {
 protected:
  std::unique_ptr<InventoryMemory> Start() {
    return std::make_unique<InventoryMemory>(
        InventoryMemory::Options{.file = path_, .boot_id = "boot", .grace = absl::Seconds(60)},
        clock_);
  }
  static std::vector<int> Absent(const vnpu::Inventory& inventory) {
    std::vector<int> ids;
    for (const vnpu::Chip& chip : inventory.chips) {
      if (chip.health == vnpu::Health::kAbsent) ids.push_back(chip.physical_id);
    }
    return ids;
  }

  TempDir temp_;
  const std::string path_ = temp_.path() + "/inventory.json";
  FakeClock clock_;
};

TEST_F(InventoryMemoryTest, LostChipsStayOverRestarts) {
  auto memory = Start();
  EXPECT_EQ(memory->Known({}), nullptr);
  memory->Known(Told({0, 1}));
  EXPECT_THAT(Absent(*memory->Known(Told({0}))), ElementsAre(1));
  memory = Start();
  EXPECT_THAT(Absent(*memory->Known({})), ElementsAre(1));
  EXPECT_THAT(Absent(*memory->Known(Told({0}))), ElementsAre(1));
  EXPECT_THAT(Absent(*memory->Known(Told({0, 1}))), ElementsAre());
}

TEST_F(InventoryMemoryTest, TheHealthPolicySeesWhatTheAgentSays) {
  auto memory = Start();
  memory->Known(Told({0, 1}));
  const HealthMonitor::Input input = memory->ForHealth(Told({0}));
  EXPECT_EQ(input.inventory->chips.size(), 1);  // it tells itself what is lost
  EXPECT_TRUE(input.agent_known);
  EXPECT_EQ(input.ask_again_after, std::nullopt);
}

TEST_F(InventoryMemoryTest, AnAgentThatIsAwayKnowsUntilTheGraceEnds) {
  auto memory = Start();
  agent::View view = Told({0});
  memory->ForHealth(view);
  view.connected = false;
  view.disconnected_for = absl::Seconds(20);
  EXPECT_TRUE(memory->ForHealth(view).agent_known);
  EXPECT_EQ(memory->ForHealth(view).ask_again_after, absl::Seconds(40));
  view.disconnected_for = absl::Seconds(60);
  EXPECT_FALSE(memory->ForHealth(view).agent_known);
}

TEST_F(InventoryMemoryTest, AnAgentThatHasNotEnumeratedSaysNothing) {
  auto memory = Start();
  memory->ForHealth(Told({0}));
  const agent::View starting = Told({}, vnpu::LibraryState::kStarting);
  clock_.now = absl::Seconds(100);
  HealthMonitor::Input input = memory->ForHealth(starting);
  EXPECT_EQ(input.inventory->chips.size(), 1);
  EXPECT_TRUE(input.agent_known);
  clock_.now += absl::Seconds(59);
  EXPECT_EQ(memory->ForHealth(starting).ask_again_after, absl::Seconds(1));
  clock_.now += absl::Seconds(1);
  EXPECT_FALSE(memory->ForHealth(starting).agent_known);
  EXPECT_EQ(memory->Known(starting)->chips.size(), 1);
  memory->ForHealth(Told({0}));
  clock_.now += absl::Seconds(59);
  EXPECT_TRUE(memory->ForHealth(starting).agent_known);  // counts anew
}

TEST_F(InventoryMemoryTest, DamagedFileIsNoInventory) {
  ASSERT_THAT(WriteFileAtomically(path_, "bootID boot\n{"), IsOk());
  auto memory = Start();
  EXPECT_EQ(memory->of_file(), nullptr);
  memory->Known(Told({0}));
  EXPECT_THAT(ReadInventoryFile(path_, "boot"), IsOk());
  EXPECT_EQ(Start()->of_file()->chips.size(), 1);
}

}  // namespace
}  // namespace ascend::kubeletplugin
