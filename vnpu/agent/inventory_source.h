// Where the agent's knowledge comes from.
#ifndef ASCEND_DRA_VNPU_AGENT_INVENTORY_SOURCE_H_
#define ASCEND_DRA_VNPU_AGENT_INVENTORY_SOURCE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "vnpu/chip.h"
#include "vnpu/dcmi/dcmi.h"

namespace ascend::agent {

class InventorySource {
 public:
  virtual ~InventorySource() = default;

  // A look at the hardware under way. Vendor code runs in it: any step may take long, never return,
  // or take the process down. Thread-safe.
  class Look {
   public:
    virtual ~Look() = default;
    // Looks at one thing more. False: there was nothing left to begin with. While a step does not
    // return, another thread may go on with the rest.
    virtual bool Step() = 0;
    // What was found by now; of a step that has not returned, what was known before. Called once.
    virtual vnpu::Inventory Finish() = 0;
  };

  // Begins a look, again and again whatever became of the one before, which has been finished or
  // given up. What hangs here concerns the whole node.
  //
  // An error of kNotFound means that the library is not there (yet); any other, that it answers
  // with errors. The message says what an operator can do. Of the inventory, `revision`,
  // `agent_instance`, `library` and `library_message` are the caller's to fill.
  virtual absl::StatusOr<std::shared_ptr<Look>> Begin() = 0;

  // Who uses a chip of the last inventory, now. An error means that nobody knows. May be called
  // while a step or another such call hangs; else by one thread at a time.
  virtual absl::StatusOr<std::vector<dcmi::ChipProcess>> Processes(const vnpu::Chip& chip) = 0;
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_INVENTORY_SOURCE_H_
