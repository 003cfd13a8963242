// The plugin's command line as one value.
#ifndef ASCEND_DRA_KUBELETPLUGIN_OPTIONS_H_
#define ASCEND_DRA_KUBELETPLUGIN_OPTIONS_H_

#include <string>

#include "base/runtime/logging.h"
#include "kubeletplugin/config.h"
#include "kubeletplugin/paths.h"

namespace ascend::kubeletplugin {

struct PluginOptions {
  Paths::Options paths;
  std::string node_name;
  std::string agent_socket = "/run/ascend-dra/control/agent.sock";
  std::string host_root = "/host";
  std::string proc_devices = "/proc/devices";
  std::string boot_id_file = "/proc/sys/kernel/random/boot_id";
  std::string config_file;  // empty = defaults
  std::string kubeconfig;   // empty = in-cluster
  int health_port = 8084;   // -1 = off, 0 = any free one
  std::string allocations_socket = "/run/ascend-dra/telemetry/allocations.sock";  // empty = off
  unsigned allocations_group = 65532;
  LogOptions log;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_OPTIONS_H_
