#include "vnpu/health/level.h"

#include <array>
#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"

namespace ascend::vnpu {
namespace {

// In the order of the enumeration.
constexpr std::array<absl::string_view, kHealthLevels> kNames = {"",
                                                                 "NotHandleFault",
                                                                 "SubHealthFault",
                                                                 "unknown",
                                                                 "stuck",
                                                                 "RestartRequest",
                                                                 "RestartBusiness",
                                                                 "FreeRestartNPU",
                                                                 "RestartNPU",
                                                                 "major",
                                                                 "PreSeparateNPU",
                                                                 "critical",
                                                                 "SeparateNPU",
                                                                 "ManuallySeparateNPU",
                                                                 "absent",
                                                                 "lost"};

}  // namespace

absl::string_view HealthLevelName(HealthLevel level) { return kNames[static_cast<size_t>(level)]; }

std::optional<HealthLevel> HealthLevelFromName(absl::string_view name) {
  for (size_t i = 1; i < kHealthLevels; ++i) {
    if (kNames[i] == name) return static_cast<HealthLevel>(i);
  }
  return std::nullopt;
}

bool IsFaultLevel(HealthLevel level) {
  switch (level) {
    case HealthLevel::kNotHandleFault:
    case HealthLevel::kSubHealthFault:
    case HealthLevel::kRestartRequest:
    case HealthLevel::kRestartBusiness:
    case HealthLevel::kFreeRestartNpu:
    case HealthLevel::kRestartNpu:
    case HealthLevel::kPreSeparateNpu:
    case HealthLevel::kSeparateNpu:
      return true;
    default:
      return false;
  }
}

bool MayEvict(HealthLevel level) {
  return level != HealthLevel::kHealthy && level != HealthLevel::kUnknown &&
         level != HealthLevel::kStuck;
}

absl::string_view TaintEffectName(TaintEffect effect) {
  switch (effect) {
    case TaintEffect::kNone:
      return "none";
    case TaintEffect::kNoSchedule:
      return "NoSchedule";
    case TaintEffect::kNoExecute:
      return "NoExecute";
  }
  return "none";
}

absl::string_view HealthStateName(HealthState state) {
  switch (state) {
    case HealthState::kHealthy:
      return "Healthy";
    case HealthState::kUnknown:
      return "Unknown";
    case HealthState::kUnhealthy:
      return "Unhealthy";
  }
  return "Unknown";
}

}  // namespace ascend::vnpu
