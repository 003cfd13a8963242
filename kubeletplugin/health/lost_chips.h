// A chip that the node had and has no more is lost, not forgotten: it stays in sight, absent, until
// it returns or the node reboots.
#ifndef ASCEND_DRA_KUBELETPLUGIN_HEALTH_LOST_CHIPS_H_
#define ASCEND_DRA_KUBELETPLUGIN_HEALTH_LOST_CHIPS_H_

#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

// `now` and those chips of `before` (of the same boot; null = none) that are not in it, as
// Health::kAbsent. A chip is the same if its uuid is, or, where either has none, its physical id. A
// place that another chip has taken has lost nothing. Only a library that is ready can lose a chip.
vnpu::Inventory WithLostChips(vnpu::Inventory now, const vnpu::Inventory* before);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_HEALTH_LOST_CHIPS_H_
