#include "kubeletplugin/service/device_health.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

vnpu::Chip Chip(int physical_id, vnpu::Health health = vnpu::Health::kOk) {
  vnpu::Chip chip;
  chip.physical_id = physical_id;
  chip.health = health;
  return chip;
}

ChipHealth Healthy(const std::string& message = "") {
  return {.state = HealthState::kHealthy, .message = message};
}
ChipHealth Sick(const std::string& message) {
  return {.state = HealthState::kUnhealthy, .message = message};
}
ChipHealth Unknown(const std::string& message = "") {
  return {.state = HealthState::kUnknown, .message = message};
}

std::shared_ptr<const ClaimRecord> Record(const std::string& device, std::vector<int> chips) {
  ClaimRecord record;
  RecordedDevice& held = record.devices.emplace_back();
  held.device = device;
  for (const int id : chips) held.chips.push_back({.physical_id = id});
  return std::make_shared<const ClaimRecord>(record);
}

TEST(HealthOfChipsTest, FollowsTheLibrary) {
  vnpu::Inventory inventory;
  inventory.chips = {Chip(0),
                     Chip(1, vnpu::Health::kMinor),
                     Chip(2, vnpu::Health::kMajor),
                     Chip(3, vnpu::Health::kCritical),
                     Chip(4, vnpu::Health::kAbsent),
                     Chip(5, vnpu::Health::kUnknown)};
  const auto chips = HealthOfChips(inventory);
  ASSERT_EQ(chips.size(), 6u);
  EXPECT_EQ(chips.at(0), Healthy());
  EXPECT_EQ(chips.at(1), Healthy("chip 1: health minor"));
  EXPECT_EQ(chips.at(2), Sick("chip 2: health major"));
  EXPECT_EQ(chips.at(3), Sick("chip 3: health critical"));
  EXPECT_EQ(chips.at(4), Sick("chip 4: health absent"));
  EXPECT_EQ(chips.at(5), Unknown("chip 5: health unknown"));
}

TEST(HealthOfChipsTest, AStuckChipIsNotKnownToBeWell) {
  vnpu::Inventory inventory;
  inventory.chips = {Chip(0), Chip(1, vnpu::Health::kCritical)};
  for (vnpu::Chip& chip : inventory.chips) chip.stuck = "a call has not returned for 12 s";
  const auto chips = HealthOfChips(inventory);
  EXPECT_EQ(chips.at(0), Unknown("chip 0: a call has not returned for 12 s"));
  EXPECT_EQ(chips.at(1), Sick("chip 1: health critical, a call has not returned for 12 s"));
}

TEST(HealthOfChipsTest, NamesActiveFaultsOnly) {
  vnpu::Inventory inventory;
  inventory.chips = {Chip(7, vnpu::Health::kCritical)};
  vnpu::Fault active, composed, gone;
  active.code = 0x80e01801;
  active.active = true;
  active.text = "HBM multi-bit ECC";
  composed.code = 0x110001024;
  composed.active = true;
  gone.code = 0x80c98008;
  inventory.chips[0].faults = {active, composed, gone};
  EXPECT_EQ(HealthOfChips(inventory).at(7),
            Sick("chip 7: health critical, fault 0x80e01801 HBM multi-bit ECC, "
                 "fault 0x110001024"));
}

TEST(HealthOfDevicesTest, AsWellAsTheWorstChip) {
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  const vnpu::Chip c0 = Chip(0), c2 = Chip(2), c3 = Chip(3), c4 = Chip(4);
  const vnpu::Chip zero = Chip(0), two = Chip(2), three = Chip(3), four = Chip(4);
  const NpuDevice whole{.name = "npu-0", .chips = {&zero}};
  const NpuDevice part{.name = "npu-0-vir05-1c-8g-0", .chips = {&zero}, .partition = Partition{}};
  const NpuDevice module{.name = "npu-2-3", .chips = {&two, &three}};
  const NpuDevice doubtful{.name = "npu-2-4", .chips = {&two, &four}};
  const NpuDevice both{.name = "npu-3-4", .chips = {&three, &four}};
  const auto health = HealthOfDevices(
      "node-1", {whole, part, module, doubtful, both}, {},
      {{0, Sick("zero")}, {2, Healthy()}, {3, Sick("three")}, {4, Unknown("four")}}, now);
  const auto device = [&](const std::string& name, HealthState state, const std::string& message) {
    return DeviceHealth{
        .pool = "node-1", .device = name, .state = state, .message = message, .checked_at = now};
  };
  EXPECT_THAT(health, ElementsAre(device("npu-0", HealthState::kUnhealthy, "zero"),
                                  device("npu-0-vir05-1c-8g-0", HealthState::kUnhealthy, "zero"),
                                  device("npu-2-3", HealthState::kUnhealthy, "three"),
                                  device("npu-2-4", HealthState::kUnknown, "four"),
                                  device("npu-3-4", HealthState::kUnhealthy, "three; four")));
}

TEST(HealthOfDevicesTest, HeldDevicesStay) {
  const vnpu::Chip c0 = Chip(0);
  NpuDevice offered{.name = "npu-0", .chips = {&c0}};
  const auto health = HealthOfDevices(
      "node-1", {offered}, {Record("npu-0", {0}), Record("npu-5", {5}), Record("npu-0", {0})},
      {{0, Healthy()}}, absl::UnixEpoch());
  ASSERT_EQ(health.size(), 2u);
  EXPECT_EQ(health[0].device, "npu-0");
  EXPECT_EQ(health[0].state, HealthState::kHealthy);
  EXPECT_EQ(health[1].device, "npu-5");
  EXPECT_EQ(health[1].state, HealthState::kUnhealthy);
  EXPECT_EQ(health[1].message, "chip 5 is not on the node any more");
}

TEST(HealthOfDevicesTest, ADeviceWithoutChipsIsUnknown) {
  const auto health =
      HealthOfDevices("node-1", {}, {Record("npu-0", {})}, {{0, Healthy()}}, absl::UnixEpoch());
  ASSERT_EQ(health.size(), 1u);
  EXPECT_EQ(health[0].state, HealthState::kUnknown);
  EXPECT_THAT(HealthOfDevices("node-1", {}, {}, {{0, Healthy()}}, absl::UnixEpoch()), IsEmpty());
}

}  // namespace
}  // namespace ascend::kubeletplugin
