// From a node's inventory to the devices that Kubernetes hands out. One place decides which chips
// make a device and what it is called, for the slices and for claims alike.
#ifndef ASCEND_DRA_KUBELETPLUGIN_DEVICES_H_
#define ASCEND_DRA_KUBELETPLUGIN_DEVICES_H_

#include <set>
#include <string>
#include <vector>

#include "kubeletplugin/kube/resource_slice.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

// A whole chip, or an A3 module of two dies where the node's multi-die policy is union.
struct NpuDevice {
  std::string name;               // "npu-3", "npu-2-3"
  std::vector<vnpu::Chip> chips;  // ascending physical id; one or two
};

struct DeviceOptions {
  std::set<int> excluded_chips;  // physical ids that are not offered
};

// Ascending by physical id. An A3 die whose module peer is missing or excluded is not offered in
// union mode: one die alone cannot be used there (the library drops the whole module).
std::vector<NpuDevice> DevicesOf(const vnpu::Inventory& inventory, const DeviceOptions& options);

// The name that DevicesOf gives to a device of these chips.
std::string DeviceName(const std::vector<vnpu::Chip>& chips);
// The physical ids in a name that DeviceName made; empty for any other name.
std::vector<int> PhysicalIdsOf(absl::string_view device_name);

// The device as a ResourceSlice shows it: attributes and capacity, no taints. Facts that are
// unknown are left out, never guessed; strings are cut to what the API takes.
kube::SliceDevice ToSliceDevice(const NpuDevice& device, const vnpu::Inventory& inventory);

// `text` as a strict semantic version ("25.5.1.b030" becomes "25.5.1-b030"); empty if it is none.
std::string NormalizeVersion(absl::string_view text);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_DEVICES_H_
