// The node agent's configuration file, one for all nodes of a cluster:
//
//   apiVersion: npu.huawei.com/v1alpha1
//   kind: DriverConfig
//   excludedChips: [7]                # physical ids that are not offered
//   ascendVisibleDevicesVoid: true    # set ASCEND_VISIBLE_DEVICES=void in containers
//   extraMounts: [/etc/my-site.conf]  # host paths, mounted read-only where they exist
//   vnpuMode: dynamic                 # off (default), static or dynamic: see docs/vnpu.md
//   vnpuTemplates: [vir05_1c_8g]      # offered in dynamic mode; missing: all of the product
//   vnpuChangeNodeModes: true         # may set vNPU mode container, recovery off
//   vnpuOnA3: true                    # vNPUs on A3 dies: no driver is known to make them
//   vnpuCatalog: [...]                # products in the form of vnpu/catalog.h
//   a3Unit: module                    # module or die; missing: by the multi-die policy
//   health:                           # see docs/health.md
//     faultTable: {...}               # changes of the fault table, in the form of
//                                     # vnpu/health/fault_table.h
//     evictOn: [SeparateNPU]          # levels that evict pods (NoExecute); missing: none
//     reset: idle                     # reset idle chips whose fault wants it; missing: off
//   nodes:                            # per node name; replaces the value above
//     npu-node-1: {excludedChips: []}
//
// Strict: an unknown key or a value of the wrong type is an error that names it.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CONFIG_H_
#define ASCEND_DRA_KUBELETPLUGIN_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kubeletplugin/devices.h"
#include "vnpu/health/fault_table.h"

namespace ascend::kubeletplugin {

struct DriverConfig {
  DeviceOptions devices;
  bool vnpu_change_node_modes = false;
  vnpu::FaultTable faults = vnpu::FaultTable::BuiltIn();
  bool reset_idle_chips = false;
  bool ascend_visible_devices_void = true;
  std::vector<std::string> extra_mounts;
};

// The configuration as it holds for `node_name`.
absl::StatusOr<DriverConfig> ParseDriverConfig(absl::string_view yaml,
                                               const std::string& node_name);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CONFIG_H_
