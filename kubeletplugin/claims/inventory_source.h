// Where the claim engine learns of the node's chips.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_INVENTORY_SOURCE_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_INVENTORY_SOURCE_H_

#include <functional>
#include <memory>

#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

// The last look; null until the agent reported for the first time. Thread-safe.
using InventorySource = std::function<std::shared_ptr<const vnpu::Inventory>()>;

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_INVENTORY_SOURCE_H_
