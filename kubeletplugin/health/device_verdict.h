// From verdicts on chips to the verdict on a device.
#ifndef ASCEND_DRA_KUBELETPLUGIN_HEALTH_DEVICE_VERDICT_H_
#define ASCEND_DRA_KUBELETPLUGIN_HEALTH_DEVICE_VERDICT_H_

#include <map>
#include <vector>

#include "vnpu/health/health_policy.h"

namespace ascend::kubeletplugin {

// By physical id.
using ChipVerdicts = std::map<int, vnpu::Verdict>;

// Whether `a` is worse: the harder effect, then the worse state, then the worse level.
bool IsWorse(const vnpu::Verdict& a, const vnpu::Verdict& b);

// The worst of the verdicts on these chips, valid as long as `verdicts`. A chip without one is
// "unknown": nobody has told of it yet.
const vnpu::Verdict& VerdictOn(const std::vector<int>& physical_ids, const ChipVerdicts& verdicts);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_HEALTH_DEVICE_VERDICT_H_
