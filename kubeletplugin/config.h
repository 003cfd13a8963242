// The node agent's configuration file, one for all nodes of a cluster:
//
//   apiVersion: npu.huawei.com/v1alpha1
//   kind: DriverConfig
//   excludedChips: [7]                  # physical ids that are not offered
//   ascendVisibleDevicesVoid: true      # set ASCEND_VISIBLE_DEVICES=void in containers
//   extraMounts: [/etc/my-site.conf]    # host paths, mounted read-only where they exist
//   nodes:                              # per node name; replaces the value above
//     npu-node-1: {excludedChips: []}
//
// Strict: an unknown key or a value of the wrong type is an error that names it.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CONFIG_H_
#define ASCEND_DRA_KUBELETPLUGIN_CONFIG_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ascend::kubeletplugin {

struct DriverConfig {
  std::set<int> excluded_chips;
  bool ascend_visible_devices_void = true;
  std::vector<std::string> extra_mounts;
};

// The configuration as it holds for `node_name`.
absl::StatusOr<DriverConfig> ParseDriverConfig(absl::string_view yaml,
                                               const std::string& node_name);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CONFIG_H_
