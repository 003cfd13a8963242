#include "cdi/spec.h"

namespace ascend::cdi {

bool ContainerEdits::empty() const {
  return env.empty() && device_nodes.empty() && net_devices.empty() && hooks.empty() &&
         mounts.empty() && !intel_rdt.has_value() && additional_gids.empty();
}

}  // namespace ascend::cdi
