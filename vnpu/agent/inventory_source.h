// Where the agent's knowledge comes from.
#ifndef ASCEND_DRA_VNPU_AGENT_INVENTORY_SOURCE_H_
#define ASCEND_DRA_VNPU_AGENT_INVENTORY_SOURCE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "vnpu/chip.h"
#include "vnpu/dcmi/dcmi.h"

namespace ascend::agent {

class InventorySource {
 public:
  virtual ~InventorySource() = default;

  // Looks at the hardware. May take long, never return, or take the process down: vendor code
  // runs in it. Called from one thread only, again and again whatever it returned before.
  //
  // An error of kNotFound means that the library is not there (yet); any other, that it answers
  // with errors. The message says what an operator can do. Of the inventory, `revision`,
  // `agent_instance`, `library` and `library_message` are the caller's to fill.
  virtual absl::StatusOr<vnpu::Inventory> Read() = 0;

  // Who uses a chip of the last inventory, now. An error means that nobody knows. Called from the
  // same thread, and as dangerous.
  virtual absl::StatusOr<std::vector<dcmi::ChipProcess>> Processes(const vnpu::Chip& chip) = 0;
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_INVENTORY_SOURCE_H_
