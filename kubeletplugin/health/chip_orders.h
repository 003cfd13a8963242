// An operator's orders about chips, from `ascend-dra chips isolate|release` to the plugin: one
// small file per chip, so that an order can be given while the plugin is down, and so that each of
// two instances of an upgrade sees it. The last order about a chip stays: carrying it out once more
// changes nothing.
#ifndef ASCEND_DRA_KUBELETPLUGIN_HEALTH_CHIP_ORDERS_H_
#define ASCEND_DRA_KUBELETPLUGIN_HEALTH_CHIP_ORDERS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace ascend::kubeletplugin {

struct ChipOrder {
  enum class Action { kIsolate, kRelease };
  Action action = Action::kIsolate;
  int physical_id = -1;
  std::string uuid;    // the chip that is meant; empty: whichever has the physical id
  std::string reason;  // of an isolation: said to whoever asks why the chip is not used
  absl::Time at;       // when it was given, to the millisecond
  friend bool operator==(const ChipOrder&, const ChipOrder&) = default;
};

// At most 256 bytes of text without control characters: it is shown in Events and tables.
inline constexpr size_t kMaxReason = 256;
absl::Status CheckReason(absl::string_view reason);

// Takes the place of the order before about the same chip. The directory is made if it is missing.
// The order is on disk when this returns. kInvalidArgument: no chip, or no fit reason.
absl::Status WriteChipOrder(const std::string& directory, const ChipOrder& order);

// All of them, by physical id. A directory that is not there has none. Files that are no orders
// stay, and are told in `problems`.
struct ChipOrders {
  std::vector<ChipOrder> orders;
  std::vector<std::string> problems;  // one line each, naming the file
};
absl::StatusOr<ChipOrders> ReadChipOrders(const std::string& directory);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_HEALTH_CHIP_ORDERS_H_
