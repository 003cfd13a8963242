// What the node should publish, from what is known: no I/O, no clock, the same input always gives
// the same slices.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SLICES_BUILDER_H_
#define ASCEND_DRA_KUBELETPLUGIN_SLICES_BUILDER_H_

#include <memory>
#include <string>
#include <vector>

#include "kubeletplugin/claims/record.h"
#include "kubeletplugin/devices.h"
#include "kubeletplugin/kube/resource_slice.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

// Key of the taint on devices; its value is the level: "lost" (not in the inventory), "absent",
// "critical", "major", "unknown", or "withdrawn": healthy, but only the claim that holds it may
// keep it (the chip was excluded, or the multi-die policy changed).
inline constexpr char kUnhealthyTaint[] = "npu.huawei.com/unhealthy";

struct SliceInputs {
  std::string driver;
  std::string node_name;
  std::string node_uid;
  DeviceOptions devices;
  // The last known inventory; null = none yet, then only held devices can be told.
  std::shared_ptr<const vnpu::Inventory> inventory;
  // False: the agent has been away for a while, so nobody knows how the chips are.
  bool health_known = true;
  std::vector<std::shared_ptr<const ClaimRecord>> records;
  // False on servers that drop taints (before 1.36): sick devices that nobody holds are left out.
  bool server_keeps_taints = true;
};

struct SlicePlan {
  // One pool. At least one slice, even without devices: an empty pool differs from no driver.
  // Generation is left 0, for the publisher to set.
  std::vector<kube::ResourceSlice> slices;
  // Devices that had to be left out, and why; for the log.
  std::vector<std::string> problems;
};

// A device that a claim holds stays published under its allocated name, attributes and capacity
// until its record is gone, tainted if need be, whatever became of the chip: the scheduler counts
// only what is published and would otherwise hand the chip out twice.
SlicePlan BuildSlices(const SliceInputs& inputs);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SLICES_BUILDER_H_
