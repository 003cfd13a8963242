// What the API server accepts in a ResourceSlice, in one table, checked before anything is sent:
// one bad field would refuse the whole slice and with it every chip of the node.
// Source: Kubernetes' validation of resource.k8s.io/v1 (1.34 to 1.37; the stricter one counts).
#ifndef ASCEND_DRA_KUBELETPLUGIN_SLICES_LIMITS_H_
#define ASCEND_DRA_KUBELETPLUGIN_SLICES_LIMITS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kubeletplugin/kube/resource_slice.h"

namespace ascend::kubeletplugin {

// 64 rather than 128: the first taint on a larger slice would make it invalid.
inline constexpr size_t kMaxDevicesPerSlice = 64;
inline constexpr size_t kMaxAttributesAndCapacities = 32;  // per device, together
inline constexpr size_t kMaxCounterSetsPerSlice = 8;
inline constexpr size_t kMaxCountersPerSet = 32;
inline constexpr size_t kMaxConsumedSets = 2;  // per device
inline constexpr size_t kMaxTaints = 4;        // 1.34; 16 from 1.35 on
inline constexpr size_t kMaxIdentifier = 32;
inline constexpr size_t kMaxDomain = 63;
inline constexpr size_t kMaxAttributeString = 64;
inline constexpr size_t kMaxDriverName = 63;
inline constexpr size_t kMaxObjectName = 253;  // also of nodes and pools

// kInvalidArgument naming the device and the field, or OK.
absl::Status CheckDevice(const kube::SliceDevice& device);
absl::Status CheckCounterSet(const kube::CounterSet& set);
absl::Status CheckSlice(const kube::ResourceSlice& slice);

bool IsStrictSemver(absl::string_view text);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SLICES_LIMITS_H_
