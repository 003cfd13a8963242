// From what is known about the chips over time to a verdict on each of them.
//
// A chip has causes: active fault codes, a grade that no code explains, a network that is down,
// "stuck", "absent", "lost", "unknown", isolation. A cause counts from the moment that it is told,
// and goes when it has been known to be gone for the recover delay of its level, which grows while
// the chip flaps. The verdict is the worst of the causes: the hardest effect, then the worst level.
// What nobody knows at the moment stays as it was, beside a cause "unknown": a chip never gets
// better by not being asked.
#ifndef ASCEND_DRA_VNPU_HEALTH_HEALTH_POLICY_H_
#define ASCEND_DRA_VNPU_HEALTH_HEALTH_POLICY_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "vnpu/chip.h"
#include "vnpu/health/fault_table.h"
#include "vnpu/health/level.h"

namespace ascend::vnpu {

// One reason for a verdict.
struct HealthCause {
  HealthLevel level = HealthLevel::kHealthy;
  std::string text;     // "fault 80E18402 (HBM multi bit ecc)", "isolated: fan is loud"
  uint64_t code = 0;    // of a fault, and of a fault that came too often; else 0
  absl::Time since;     // stays while it comes and goes faster than the recover delay
  bool present = true;  // false: it is gone, not yet for long enough
  friend bool operator==(const HealthCause&, const HealthCause&) = default;
};

struct Verdict {
  int physical_id = -1;
  std::string uuid;                           // empty = unknown
  HealthLevel level = HealthLevel::kHealthy;  // HealthLevelName() is the taint's value
  TaintEffect effect = TaintEffect::kNone;
  HealthState state = HealthState::kHealthy;
  // For people: the causes and since when; empty on a healthy chip. The same text as long as the
  // same causes count, whether they come and go or not. At most kMaxHealthMessage bytes.
  std::string message;
  absl::Time since;                 // moves only with level and effect: the taint's timeAdded
  std::vector<HealthCause> causes;  // worst first
  friend bool operator==(const Verdict&, const Verdict&) = default;
};
inline constexpr size_t kMaxHealthMessage = 512;

// Not thread-safe. Does no I/O and knows no clock: time is told. A clock that was set back makes
// times that would lie in the future "now"; one that was set forward shortens the delays that run.
class HealthPolicy {
 public:
  // `boot_id` tells boots of the node apart: a chip that was there on another boot is not lost, and
  // only isolation and the counts of its faults outlive the boot.
  HealthPolicy(FaultTable table, std::string boot_id);
  ~HealthPolicy();
  HealthPolicy(HealthPolicy&&) noexcept;
  HealthPolicy& operator=(HealthPolicy&&) noexcept;

  // To be called with every inventory, when `agent_known` changes, and at next_change().
  // `inventory` is the last one that the agent told; null = none since this process started: what
  // was restored stays. `agent_known` false = it has been away for so long that what it told says
  // nothing about now. True if a verdict changed.
  bool Update(const Inventory* inventory, bool agent_known, absl::Time now);

  // By physical id: of all chips in the inventory, and of those that were there on this boot. If
  // a chip has taken another one's place, its verdict alone is here.
  const std::map<int, Verdict>& verdicts() const;

  // When time alone may change something: Update() with the same arguments is due then.
  // InfiniteFuture() if nothing does.
  absl::Time next_change() const;

  // By hand, kept over restarts and reboots until Release(). A chip whose uuid nobody knows is
  // named by its physical id ("3"). kNotFound for a chip that is not known, kInvalidArgument
  // without a reason. Once more: the new reason counts.
  absl::Status Isolate(absl::string_view uuid, absl::string_view reason, absl::Time now);
  // Ends isolation, by hand or by frequency; also forgets the counts of its faults, the flaps, and
  // a network that was down when it was last known. kNotFound as above; a chip that is not isolated
  // is no error. Faults that are there still count, and the recover delay is waited for.
  absl::Status Release(absl::string_view uuid, absl::Time now);

  // The memory, as JSON. The text changes only if there is something worth keeping (the time a chip
  // was last seen is kept to the hour).
  std::string Save() const;
  // Takes over what another process saved, and forgets all else; delays that ran then begin anew.
  // Strict: kInvalidArgument with what is wrong, and this is as new.
  absl::Status Restore(absl::string_view json);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_HEALTH_HEALTH_POLICY_H_
