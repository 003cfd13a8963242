// How devices and counters look in a ResourceSlice.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SLICE_DEVICE_H_
#define ASCEND_DRA_KUBELETPLUGIN_SLICE_DEVICE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "kubeletplugin/devices.h"
#include "kubeletplugin/kube/resource_slice.h"
#include "vnpu/chip.h"
#include "vnpu/partition_plan.h"

namespace ascend::kubeletplugin {

// Name of a chip's counter set.
std::string CounterSetName(int physical_id);
kube::CounterSet ToCounterSet(int physical_id, const vnpu::Counters& counters);
kube::CounterValues ToCounterValues(const vnpu::Counters& counters);

// Makes a node's devices into what a ResourceSlice shows of them: attributes and capacity, no
// taints. Facts that are unknown are left out, never guessed; strings are cut to what the API
// takes. What devices of the same chips have in common is worked out once, if they come one after
// the other. Not thread-safe.
class SliceDeviceMaker {
 public:
  explicit SliceDeviceMaker(const vnpu::Inventory& inventory);
  // The chips of `device` must live as long as this object.
  kube::SliceDevice Make(const NpuDevice& device);

 private:
  const std::map<std::string, kube::AttributeValue> versions_;  // of the node
  std::vector<const vnpu::Chip*> chips_;                        // of the last device
  std::map<std::string, kube::AttributeValue> common_;          // to all devices of these chips
};

// One device alone.
kube::SliceDevice ToSliceDevice(const NpuDevice& device, const vnpu::Inventory& inventory);

// `text` as a strict semantic version ("25.5.1.b030" becomes "25.5.1-b030"); empty if it is none.
std::string NormalizeVersion(absl::string_view text);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SLICE_DEVICE_H_
