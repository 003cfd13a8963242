// How bad a chip is, and what that means for pods: the taint's effect and the kubelet's state.
#ifndef ASCEND_DRA_VNPU_HEALTH_LEVEL_H_
#define ASCEND_DRA_VNPU_HEALTH_LEVEL_H_

#include <array>
#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"

namespace ascend::vnpu {

// From good to bad. Names in upper case are MindCluster's, for faults; the others are the driver's
// own. kUnknown and kStuck come before every known fault that keeps pods away: what is known says
// more.
enum class HealthLevel {
  kHealthy,              // ""
  kNotHandleFault,       // "NotHandleFault": to be ignored
  kSubHealthFault,       // "SubHealthFault": works, degraded
  kUnknown,              // "unknown": nobody knows at the moment
  kStuck,                // "stuck": a call about the chip does not return
  kRestartRequest,       // "RestartRequest": the request must be made again
  kRestartBusiness,      // "RestartBusiness": the job must be started again
  kFreeRestartNpu,       // "FreeRestartNPU": to be reset when idle
  kRestartNpu,           // "RestartNPU": to be reset now
  kMajor,                // "major": so the library grades it, and no fault code says why
  kPreSeparateNpu,       // "PreSeparateNPU": to be isolated when its job has ended
  kCritical,             // "critical": as "major"
  kSeparateNpu,          // "SeparateNPU": to be isolated until it is repaired
  kManuallySeparateNpu,  // "ManuallySeparateNPU": isolated by hand, or by a frequency rule
  kAbsent,               // "absent": the library says that it is gone or has not started
  kLost,                 // "lost": was there on this boot, and the library lists it no more
};
inline constexpr size_t kHealthLevels = 16;

// The value of the taint; "" = healthy.
absl::string_view HealthLevelName(HealthLevel level);
// nullopt: there is no such level. "" is none either: nobody writes it.
std::optional<HealthLevel> HealthLevelFromName(absl::string_view name);

// Whether the fault table may give it to a code.
bool IsFaultLevel(HealthLevel level);
// Whether the operator may have pods evicted for it: never for not knowing.
bool MayEvict(HealthLevel level);

enum class TaintEffect { kNone, kNoSchedule, kNoExecute };  // ascending
absl::string_view TaintEffectName(TaintEffect effect);      // "none", "NoSchedule", "NoExecute"

// For the kubelet, ascending.
enum class HealthState { kHealthy, kUnknown, kUnhealthy };
absl::string_view HealthStateName(HealthState state);  // "Healthy", "Unknown", "Unhealthy"

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_HEALTH_LEVEL_H_
