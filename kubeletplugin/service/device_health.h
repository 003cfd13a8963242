// The health of devices, from that of the chips they are made of.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SERVICE_DEVICE_HEALTH_H_
#define ASCEND_DRA_KUBELETPLUGIN_SERVICE_DEVICE_HEALTH_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kubeletplugin/claims/record.h"
#include "kubeletplugin/devices.h"
#include "kubeletplugin/service/health_feed.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

struct ChipHealth {
  HealthState state = HealthState::kUnknown;
  std::string message;  // for people; of a healthy chip empty, or a remark
  friend bool operator==(const ChipHealth&, const ChipHealth&) = default;
};

// By physical id, as the library grades them.
std::map<int, ChipHealth> HealthOfChips(const vnpu::Inventory& inventory);

// Of all `devices`, and of those in `records` that are not among them (any more): by name, each
// once. A device is as well as the worst of its chips, a partition as its chip; a chip that is not
// in `chips` is gone, which is unhealthy.
std::vector<DeviceHealth> HealthOfDevices(
    const std::string& pool, const std::vector<NpuDevice>& devices,
    const std::vector<std::shared_ptr<const ClaimRecord>>& records,
    const std::map<int, ChipHealth>& chips, absl::Time checked_at);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SERVICE_DEVICE_HEALTH_H_
