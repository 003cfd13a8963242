// The health of devices for the kubelet, from the verdicts on the chips they are made of.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SERVICE_DEVICE_HEALTH_H_
#define ASCEND_DRA_KUBELETPLUGIN_SERVICE_DEVICE_HEALTH_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kubeletplugin/claims/record.h"
#include "kubeletplugin/devices.h"
#include "kubeletplugin/health/device_verdict.h"
#include "kubeletplugin/service/health_feed.h"

namespace ascend::kubeletplugin {

// Of the whole chips among `devices`, and of all that is held: by name, each once. Parts that
// nobody holds are many, and no pod has them. A device is as well as the worst of its chips; the
// message tells of each that is not simply well.
std::vector<DeviceHealth> HealthOfDevices(
    const std::string& pool, const std::vector<NpuDevice>& devices,
    const std::vector<std::shared_ptr<const ClaimRecord>>& records, const ChipVerdicts& verdicts,
    absl::Time checked_at);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SERVICE_DEVICE_HEALTH_H_
