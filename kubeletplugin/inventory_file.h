// The last inventory of this boot on disk, so that a plugin that starts while the agent is away
// still knows the chips. Another boot voids it: the hardware may have changed.
#ifndef ASCEND_DRA_KUBELETPLUGIN_INVENTORY_FILE_H_
#define ASCEND_DRA_KUBELETPLUGIN_INVENTORY_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

absl::Status WriteInventoryFile(const std::string& path, const std::string& boot_id,
                                const vnpu::Inventory& inventory);
// kNotFound if there is none, or none of this boot.
absl::StatusOr<vnpu::Inventory> ReadInventoryFile(const std::string& path,
                                                  const std::string& boot_id);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_INVENTORY_FILE_H_
