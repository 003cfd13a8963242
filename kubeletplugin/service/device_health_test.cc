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
using vnpu::HealthLevel;

vnpu::Chip Chip(int physical_id) {
  vnpu::Chip chip;
  chip.physical_id = physical_id;
  return chip;
}

vnpu::Verdict Verdict(int id, HealthLevel level, HealthState state, const std::string& message) {
  return {.physical_id = id, .level = level, .state = state, .message = message};
}

std::shared_ptr<const ClaimRecord> Record(const std::string& device, std::vector<int> chips) {
  ClaimRecord record;
  RecordedDevice& held = record.devices.emplace_back();
  held.device = device;
  for (const int id : chips) held.chips.push_back({.physical_id = id});
  return std::make_shared<const ClaimRecord>(record);
}

class DeviceHealthTest : public ::testing::Test {
 protected:
  DeviceHealth Device(const std::string& name, HealthState state,
                      const std::string& message = "") const {
    return {
        .pool = "node-1", .device = name, .state = state, .message = message, .checked_at = now_};
  }

  const absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  const ChipVerdicts verdicts_ = {
      {0, Verdict(0, HealthLevel::kHealthy, HealthState::kHealthy, "")},
      {1, Verdict(1, HealthLevel::kSubHealthFault, HealthState::kHealthy,
                  "SubHealthFault: fault 80E20207")},
      {2, Verdict(2, HealthLevel::kSeparateNpu, HealthState::kUnhealthy,
                  "SeparateNPU: fault 80E18402")},
      {3, Verdict(3, HealthLevel::kUnknown, HealthState::kUnknown, "unknown: the agent is away")}};
};

TEST_F(DeviceHealthTest, AsWellAsTheWorstChip) {
  const vnpu::Chip zero = Chip(0), one = Chip(1), two = Chip(2), three = Chip(3);
  const auto health = HealthOfDevices("node-1",
                                      {{.name = "npu-0", .chips = {&zero}},
                                       {.name = "npu-0-1", .chips = {&zero, &one}},
                                       {.name = "npu-2-3", .chips = {&two, &three}},
                                       {.name = "npu-3", .chips = {&three}}},
                                      {}, verdicts_, now_);
  EXPECT_THAT(
      health,
      ElementsAre(
          Device("npu-0", HealthState::kHealthy),
          Device("npu-0-1", HealthState::kHealthy, "chip 1: SubHealthFault: fault 80E20207"),
          Device("npu-2-3", HealthState::kUnhealthy,
                 "chip 2: SeparateNPU: fault 80E18402; chip 3: unknown: the agent is away"),
          Device("npu-3", HealthState::kUnknown, "chip 3: unknown: the agent is away")));
}

TEST_F(DeviceHealthTest, PartsOnlyWhereTheyAreHeld) {
  const vnpu::Chip two = Chip(2);
  const NpuDevice whole{.name = "npu-2", .chips = {&two}};
  const NpuDevice part{.name = "npu-2-vir05-1c-8g-0", .chips = {&two}, .partition = Partition{}};
  const NpuDevice other{.name = "npu-2-vir05-1c-8g-1", .chips = {&two}, .partition = Partition{}};
  const std::string sick = "chip 2: SeparateNPU: fault 80E18402";
  EXPECT_THAT(
      HealthOfDevices("node-1", {whole, part, other}, {Record(part.name, {2})}, verdicts_, now_),
      ElementsAre(Device("npu-2", HealthState::kUnhealthy, sick),
                  Device(part.name, HealthState::kUnhealthy, sick)));
}

TEST_F(DeviceHealthTest, HeldDevicesStay) {
  const vnpu::Chip zero = Chip(0);
  EXPECT_THAT(HealthOfDevices("node-1", {{.name = "npu-0", .chips = {&zero}}},
                              {Record("npu-0", {0}), Record("npu-9", {9}), Record("npu-0", {0})},
                              verdicts_, now_),
              ElementsAre(Device("npu-0", HealthState::kHealthy),
                          Device("npu-9", HealthState::kUnknown,
                                 "chip 9: unknown: nothing is known of it yet")));
}

TEST_F(DeviceHealthTest, ADeviceWithoutChipsIsUnknown) {
  EXPECT_THAT(HealthOfDevices("node-1", {}, {Record("npu-0", {})}, verdicts_, now_),
              ElementsAre(Device("npu-0", HealthState::kUnknown)));
  EXPECT_THAT(HealthOfDevices("node-1", {}, {}, verdicts_, now_), IsEmpty());
}

}  // namespace
}  // namespace ascend::kubeletplugin
