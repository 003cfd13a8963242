// Says once what changed on the node: a line for the library, a line for each chip concerned.
#ifndef ASCEND_DRA_VNPU_AGENT_INVENTORY_LOG_H_
#define ASCEND_DRA_VNPU_AGENT_INVENTORY_LOG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "base/runtime/clock.h"
#include "vnpu/chip.h"

namespace ascend::agent {

// Not thread-safe.
class InventoryLog {
 public:
  explicit InventoryLog(const Clock& clock = Clock::Real()) : clock_(clock) {}

  // Logs the differences to the inventory of the call before. Chips are compared between states
  // in which the library was ready: while it is not, they are only remembered, not seen. A fault
  // that keeps coming has a line for its first three times, then whenever their number has doubled
  // or a minute has passed; a line that it is gone follows those alone.
  void Note(const vnpu::Inventory& inventory);

 private:
  void NoteLibrary(const vnpu::Inventory& inventory);
  void NoteChips(const vnpu::Inventory& inventory);
  void NoteFaults(const vnpu::Inventory& inventory);
  void NoteFault(const vnpu::Chip& chip, const vnpu::Fault& fault);

  // What was said of a fault.
  struct Told {
    uint64_t occurrences = 0;
    bool active = false;
    std::optional<absl::Duration> when;
  };

  const Clock& clock_;
  vnpu::Inventory last_;
  vnpu::Inventory last_ready_;
  std::map<std::pair<int, uint64_t>, Told> told_;  // by physical id and code
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_INVENTORY_LOG_H_
