#include "kubeletplugin/health/health_monitor.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::HasSubstr;
using vnpu::HealthLevel;

constexpr uint64_t kSeparate = 0x80E18402;

class HealthMonitorTest : public ::testing::Test {
 protected:
  HealthMonitorTest() { SetFault(false); }

  // The agent tells of two chips, the first with a fault or not.
  void SetFault(bool active) {
    auto inventory = std::make_shared<vnpu::Inventory>();
    inventory->library = vnpu::LibraryState::kReady;
    inventory->agent_instance = "a";
    for (int id = 0; id < 2; ++id) {
      vnpu::Chip& chip = inventory->chips.emplace_back();
      chip.physical_id = id;
      chip.uuid = id == 0 ? "A" : "B";
      chip.health = vnpu::Health::kOk;
      chip.faults.emplace();
    }
    if (active) {
      inventory->chips[0].faults->push_back(
          {.code = kSeparate, .active = true, .occurrences = 1, .text = "HBM"});
    }
    MutexLock lock(&mutex_);
    input_.inventory = std::move(inventory);
  }

  std::unique_ptr<HealthMonitor> Start(vnpu::FaultTable table = vnpu::FaultTable::BuiltIn()) {
    return std::make_unique<HealthMonitor>(
        HealthMonitor::Options{.file = temp_.path() + "/health.json",
                               .orders_directory = temp_.path() + "/orders",
                               .boot_id = "boot",
                               .table = std::move(table),
                               .last_inventory = nullptr},
        [this] {
          MutexLock lock(&mutex_);
          return input_;
        },
        [this](const ChipVerdicts& before, const ChipVerdicts& now) {
          MutexLock lock(&mutex_);
          changes_.emplace_back(before, now);
          changed_.SignalAll();
        });
  }

  // The change after the last that was taken.
  std::pair<ChipVerdicts, ChipVerdicts> NextChange() {
    MutexLock lock(&mutex_);
    while (changes_.empty()) changed_.Wait(&mutex_);
    auto change = changes_.front();
    changes_.erase(changes_.begin());
    return change;
  }

  static vnpu::FaultTable Quick() {
    auto table = vnpu::FaultTable::WithOverrides(
        "actions: {SeparateNPU: {recover: 50ms}, ManuallySeparateNPU: {recover: 50ms}}");
    EXPECT_THAT(table, IsOk());
    return *std::move(table);
  }

  TempDir temp_;
  Mutex mutex_;
  CondVar changed_;
  HealthMonitor::Input input_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<ChipVerdicts, ChipVerdicts>> changes_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(HealthMonitorTest, HasVerdictsFromTheStart) {
  SetFault(true);
  const auto monitor = Start();
  EXPECT_EQ(monitor->Current()->at(0).level, HealthLevel::kSeparateNpu);
  EXPECT_EQ(monitor->Current()->at(1).level, HealthLevel::kHealthy);
  const auto [before, now] = NextChange();
  EXPECT_TRUE(before.empty());
  EXPECT_EQ(now, *monitor->Current());
}

TEST_F(HealthMonitorTest, TellsBadNewsAtOnceAndGoodNewsByItself) {
  const auto monitor = Start(Quick());
  NextChange();
  SetFault(true);
  monitor->Wake();
  EXPECT_EQ(NextChange().second.at(0).level, HealthLevel::kSeparateNpu);
  SetFault(false);
  monitor->Wake();  // and nothing more: the delay ends by itself
  // The cause is gone first, and then the verdict.
  auto change = NextChange();
  while (change.second.at(0).level != HealthLevel::kHealthy) change = NextChange();
  EXPECT_EQ(change.first.at(0).level, HealthLevel::kSeparateNpu);
}

TEST_F(HealthMonitorTest, RefreshKnowsWhatTheAgentToldBefore) {
  const auto monitor = Start();
  for (const bool sick : {true, false, true}) {
    SetFault(sick);
    monitor->Refresh();
    const auto inventory = monitor->judged();
    EXPECT_EQ(inventory->chips[0].faults->empty(), !sick);
    EXPECT_EQ(monitor->Current()->at(0).level, HealthLevel::kSeparateNpu);  // good news is late
  }
  monitor->Stop();
  monitor->Refresh();  // does not wait for ever
}

TEST_F(HealthMonitorTest, RemembersOverARestart) {
  SetFault(true);
  auto monitor = Start();
  NextChange();
  const absl::Time since = monitor->Current()->at(0).since;
  monitor.reset();
  {
    MutexLock lock(&mutex_);
    input_.inventory = nullptr;  // the agent has not answered yet
  }
  monitor = Start();
  EXPECT_EQ(monitor->Current()->at(0).level, HealthLevel::kSeparateNpu);
  SetFault(true);
  monitor->Wake();
  monitor.reset();
  MutexLock lock(&mutex_);
  // What was told before the restart is no news.
  for (const auto& [before, now] : changes_) {
    EXPECT_EQ(before.at(0).level, now.at(0).level);
    EXPECT_EQ(now.at(0).since, since);
  }
}

TEST_F(HealthMonitorTest, WithoutMemoryTheLastInventoryOfTheBootCounts) {
  std::shared_ptr<const vnpu::Inventory> last;
  {
    MutexLock lock(&mutex_);
    last = std::exchange(input_.inventory, nullptr);
  }
  HealthMonitor monitor(
      {.file = temp_.path() + "/health.json",
       .orders_directory = temp_.path() + "/orders",
       .boot_id = "boot",
       .table = vnpu::FaultTable::BuiltIn(),
       .last_inventory = last},
      [] { return HealthMonitor::Input(); }, [](const ChipVerdicts&, const ChipVerdicts&) {});
  EXPECT_EQ(monitor.Current()->at(1).level, HealthLevel::kHealthy);
}

TEST_F(HealthMonitorTest, OrdersAreCarriedOutOnceAndKept) {
  auto monitor = Start(Quick());
  NextChange();
  const ChipOrder isolate = {.action = ChipOrder::Action::kIsolate,
                             .physical_id = 1,
                             .uuid = "B",
                             .reason = "fan is loud",
                             .at = absl::FromUnixMillis(1'790'000'000'000)};
  ASSERT_THAT(WriteChipOrder(temp_.path() + "/orders", isolate), IsOk());
  monitor->Wake();
  const vnpu::Verdict verdict = NextChange().second.at(1);
  EXPECT_EQ(verdict.level, HealthLevel::kManuallySeparateNpu);
  EXPECT_EQ(verdict.effect, vnpu::TaintEffect::kNoSchedule);
  EXPECT_THAT(verdict.message, HasSubstr("fan is loud"));
  monitor.reset();
  EXPECT_EQ(ReadHealthFile(temp_.path() + "/health.json")->orders_done.at(1), isolate.at);

  monitor = Start(Quick());
  EXPECT_EQ(monitor->Current()->at(1).since, verdict.since);
  ChipOrder release = isolate;
  release.action = ChipOrder::Action::kRelease;
  release.reason = "";
  release.at += absl::Milliseconds(1);
  ASSERT_THAT(WriteChipOrder(temp_.path() + "/orders", release), IsOk());
  monitor->Wake();
  while (NextChange().second.at(1).level != HealthLevel::kHealthy) {
  }
}

TEST_F(HealthMonitorTest, OrderAboutAnotherChipWaits) {
  const ChipOrder isolate = {.action = ChipOrder::Action::kIsolate,
                             .physical_id = 1,
                             .uuid = "another chip",
                             .reason = "x",
                             .at = absl::UnixEpoch()};
  ASSERT_THAT(WriteChipOrder(temp_.path() + "/orders", isolate), IsOk());
  ASSERT_THAT(WriteFileAtomically(temp_.path() + "/orders/chip-0", "{"), IsOk());
  const auto monitor = Start();
  EXPECT_EQ(monitor->Current()->at(0).level, HealthLevel::kHealthy);
  EXPECT_EQ(monitor->Current()->at(1).level, HealthLevel::kHealthy);
}

TEST_F(HealthMonitorTest, DamagedMemoryIsSetAside) {
  const std::string path = temp_.path() + "/health.json";
  for (const char* text : {"{", R"({"version": 1, "chips": [], "memory": {"odd": 1}})"}) {
    ASSERT_THAT(WriteFileAtomically(path, text), IsOk());
    const auto monitor = Start();
    EXPECT_EQ(monitor->Current()->at(0).level, HealthLevel::kHealthy);
    EXPECT_EQ(*ReadFile(path + ".damaged"), text);
  }
}

}  // namespace
}  // namespace ascend::kubeletplugin
