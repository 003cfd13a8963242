// What one look says about one chip, in the light of what is remembered of it. Internal to this
// folder.
#ifndef ASCEND_DRA_VNPU_HEALTH_CHIP_JUDGE_H_
#define ASCEND_DRA_VNPU_HEALTH_CHIP_JUDGE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "vnpu/chip.h"
#include "vnpu/health/chip_memory.h"
#include "vnpu/health/fault_table.h"
#include "vnpu/health/health_policy.h"

namespace ascend::vnpu {

struct ChipLook {
  const Chip* chip = nullptr;        // null: not in the inventory
  absl::string_view agent_instance;  // whose inventory it is
  bool any = false;                  // false: nobody told anything yet
  bool ready = false;                // the inventory is complete and says what is now
  std::string unknown;               // why it is not
  std::string lost;                  // not empty: the chip is lost, and how
};

// Brings `memory` up to date; the time when the next change is due by itself.
absl::Time JudgeChip(const FaultTable& table, const ChipLook& look, absl::Time now,
                     ChipMemory& memory);

// What the memory says.
Verdict VerdictOf(const FaultTable& table, const ChipMemory& memory);

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_HEALTH_CHIP_JUDGE_H_
