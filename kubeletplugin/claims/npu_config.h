// The opaque configuration that a DeviceClass or a ResourceClaim may carry for this driver:
//
//   opaque:
//     driver: npu.huawei.com
//     parameters: {apiVersion: npu.huawei.com/v1alpha1, kind: NpuConfig}
//
// Strict: an unknown field, kind or version is an error that names it, because a typing mistake
// that is ignored shows only as a job that runs differently than meant. No option exists yet.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_NPU_CONFIG_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_NPU_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kubeletplugin/kube/resource_claim.h"

namespace ascend::kubeletplugin {

// Checks every entry for `driver` that concerns one of our results. Entries for other drivers are
// none of our business.
absl::Status CheckNpuConfigs(const std::vector<kube::OpaqueConfig>& configs,
                             const std::string& driver,
                             const std::vector<kube::DeviceResult>& results);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_NPU_CONFIG_H_
