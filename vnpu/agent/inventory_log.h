// Says once what changed on the node: a line for the library, a line for each chip concerned.
#ifndef ASCEND_DRA_VNPU_AGENT_INVENTORY_LOG_H_
#define ASCEND_DRA_VNPU_AGENT_INVENTORY_LOG_H_

#include "vnpu/chip.h"

namespace ascend::agent {

// Not thread-safe.
class InventoryLog {
 public:
  // Logs the differences to the inventory of the call before. Chips are compared between states
  // in which the library was ready: while it is not, they are only remembered, not seen.
  void Note(const vnpu::Inventory& inventory);

 private:
  void NoteLibrary(const vnpu::Inventory& inventory);
  void NoteChips(const vnpu::Inventory& inventory);

  vnpu::Inventory last_;
  vnpu::Inventory last_ready_;
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_INVENTORY_LOG_H_
