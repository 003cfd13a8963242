#include "kubeletplugin/slices/comparison.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace ascend::kubeletplugin {
namespace {

// A taint's time is the server's unless somebody insists on one.
bool SameTaints(const std::vector<kube::DeviceTaint>& wanted,
                const std::vector<kube::DeviceTaint>& stored) {
  return std::equal(wanted.begin(), wanted.end(), stored.begin(), stored.end(),
                    [](const kube::DeviceTaint& a, const kube::DeviceTaint& b) {
                      return a.key == b.key && a.value == b.value && a.effect == b.effect &&
                             (a.time_added.empty() || a.time_added == b.time_added);
                    });
}

bool SameDeviceButTaints(const kube::SliceDevice& wanted, const kube::SliceDevice& stored) {
  return wanted.name == stored.name && wanted.attributes == stored.attributes &&
         wanted.capacity == stored.capacity && wanted.consumes_counters == stored.consumes_counters;
}

bool SameDevice(const kube::SliceDevice& wanted, const kube::SliceDevice& stored) {
  return SameDeviceButTaints(wanted, stored) && SameTaints(wanted.taints, stored.taints);
}

bool SameSlice(const kube::ResourceSlice& wanted, const kube::ResourceSlice& stored,
               bool (*same_device)(const kube::SliceDevice&, const kube::SliceDevice&)) {
  return wanted.driver == stored.driver && wanted.node_name == stored.node_name &&
         wanted.pool_name == stored.pool_name &&
         wanted.pool_slice_count == stored.pool_slice_count &&
         wanted.shared_counters == stored.shared_counters &&
         std::equal(wanted.devices.begin(), wanted.devices.end(), stored.devices.begin(),
                    stored.devices.end(), same_device);
}

}  // namespace

bool SameContent(const kube::ResourceSlice& wanted, const kube::ResourceSlice& stored) {
  return SameSlice(wanted, stored, SameDevice);
}

bool SameContentButTaints(const kube::ResourceSlice& wanted, const kube::ResourceSlice& stored) {
  return SameSlice(wanted, stored, SameDeviceButTaints);
}

void KeepTaintTimes(const kube::ResourceSlice& stored, kube::ResourceSlice* wanted) {
  for (kube::SliceDevice& device : wanted->devices) {
    const auto old = std::find_if(stored.devices.begin(), stored.devices.end(),
                                  [&](const auto& d) { return d.name == device.name; });
    if (old == stored.devices.end()) continue;
    for (kube::DeviceTaint& taint : device.taints) {
      for (const kube::DeviceTaint& known : old->taints) {
        if (taint.key == known.key && taint.value == known.value && taint.effect == known.effect) {
          taint.time_added = known.time_added;
        }
      }
    }
  }
}

Dropped DroppedFields(const kube::ResourceSlice& sent, const kube::ResourceSlice& stored) {
  Dropped dropped;
  dropped.counters = sent.shared_counters.size() > stored.shared_counters.size();
  for (const kube::SliceDevice& device : sent.devices) {
    const auto kept = std::find_if(stored.devices.begin(), stored.devices.end(),
                                   [&](const auto& d) { return d.name == device.name; });
    if (kept == stored.devices.end()) continue;
    if (!SameTaints(device.taints, kept->taints)) dropped.taints = true;
    if (device.consumes_counters.size() > kept->consumes_counters.size()) dropped.counters = true;
    for (const auto& [name, value] : device.attributes) {
      if (kept->attributes.count(name) != 0) continue;
      dropped.fields.push_back(absl::StrCat("attribute ", name));
    }
    for (const auto& [name, value] : device.capacity) {
      if (kept->capacity.count(name) != 0) continue;
      dropped.fields.push_back(absl::StrCat("capacity ", name));
    }
  }
  if (dropped.taints) dropped.fields.push_back("taints (feature gate DRADeviceTaints)");
  if (dropped.counters) dropped.fields.push_back("counters (feature gate DRAPartitionableDevices)");
  return dropped;
}

}  // namespace ascend::kubeletplugin
