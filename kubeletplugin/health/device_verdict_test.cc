#include "kubeletplugin/health/device_verdict.h"

#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using vnpu::HealthLevel;
using vnpu::HealthState;
using vnpu::TaintEffect;

TEST(DeviceVerdictTest, TheWorstChipCounts) {
  ChipVerdicts verdicts;
  verdicts[0] = {.physical_id = 0};
  verdicts[1] = {.physical_id = 1,
                 .level = HealthLevel::kRestartNpu,
                 .effect = TaintEffect::kNoExecute,
                 .state = HealthState::kUnhealthy};
  verdicts[2] = {.physical_id = 2,
                 .level = HealthLevel::kLost,
                 .effect = TaintEffect::kNoSchedule,
                 .state = HealthState::kUnhealthy};
  verdicts[3] = {.physical_id = 3,
                 .level = HealthLevel::kUnknown,
                 .effect = TaintEffect::kNoSchedule,
                 .state = HealthState::kUnknown};
  EXPECT_EQ(VerdictOn({0}, verdicts).physical_id, 0);
  EXPECT_EQ(VerdictOn({0, 2}, verdicts).physical_id, 2);
  EXPECT_EQ(VerdictOn({2, 0}, verdicts).physical_id, 2);
  EXPECT_EQ(VerdictOn({2, 3}, verdicts).physical_id, 2);
  EXPECT_EQ(VerdictOn({1, 2}, verdicts).physical_id, 1);  // it evicts
}

TEST(DeviceVerdictTest, AChipThatNobodyToldOfIsUnknown) {
  ChipVerdicts verdicts;
  verdicts[0] = {.physical_id = 0};
  EXPECT_EQ(VerdictOn({0, 1}, verdicts).level, HealthLevel::kUnknown);
  EXPECT_EQ(VerdictOn({1}, {}).effect, TaintEffect::kNoSchedule);
  EXPECT_EQ(VerdictOn({1}, {}).state, HealthState::kUnknown);
}

}  // namespace
}  // namespace ascend::kubeletplugin
