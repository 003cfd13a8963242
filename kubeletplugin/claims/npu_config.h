// The opaque configuration that a DeviceClass or a ResourceClaim may carry for this driver:
//
//   opaque:
//     driver: npu.huawei.com
//     parameters:
//       apiVersion: npu.huawei.com/v1alpha1
//       kind: NpuConfig
//       sharedUse: Expected
//
// sharedUse: what to do when several containers use a chip at the same time, which works only where
//   device-share is on. Warn (default): their pods get a warning Event. Expected: nothing.
//
// Strict: an unknown field, kind, version or value is an error that names it, because a typing
// mistake that is ignored shows only as a job that runs differently than meant. The admission
// policy in deploy/manifests refuses the same mistakes when the object is created.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_NPU_CONFIG_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_NPU_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kubeletplugin/kube/resource_claim.h"

namespace ascend::kubeletplugin {

struct NpuConfig {
  bool shared_use_expected = false;
  friend bool operator==(const NpuConfig&, const NpuConfig&) = default;
};

// What holds for one result of the allocation. An entry concerns it if it names no requests, the
// result's request or its base name. Field by field, the claim's entries win over the class's, and
// later ones over earlier ones. kInvalidArgument, saying where and what, if an entry for `driver`
// that concerns the result is wrong; entries for other drivers are none of our business.
absl::StatusOr<NpuConfig> NpuConfigFor(const std::vector<kube::OpaqueConfig>& configs,
                                       const std::string& driver, const kube::DeviceResult& result);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_NPU_CONFIG_H_
