// What the health policy remembers of a chip. Internal to this folder.
#ifndef ASCEND_DRA_VNPU_HEALTH_CHIP_MEMORY_H_
#define ASCEND_DRA_VNPU_HEALTH_CHIP_MEMORY_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "vnpu/health/level.h"

namespace ascend::vnpu {

enum class CauseSource {
  kFault,      // a fault code
  kGrade,      // the library's grade, also "absent"
  kNetwork,    // the RoCE port
  kStuck,      // a call that does not return
  kLost,       // not listed any more
  kUnknown,    // not told at the moment
  kIsolated,   // by hand
  kFrequency,  // by a frequency rule
};
inline constexpr size_t kCauseSources = 8;

struct CauseKey {
  CauseSource source = CauseSource::kFault;
  uint64_t code = 0;
  HealthLevel level = HealthLevel::kHealthy;
  bool raised = false;  // by a duration rule
  friend auto operator<=>(const CauseKey&, const CauseKey&) = default;
};

struct CauseState {
  std::string text;
  absl::Time since;
  // It is gone, and counts until then; nullopt: there, or not known to be gone. Not saved: nobody
  // looked meanwhile.
  std::optional<absl::Time> until;
  friend bool operator==(const CauseState&, const CauseState&) = default;
};

struct CodeState {
  uint64_t seen = 0;  // Fault::occurrences, as the chip's agent last told
  bool listed = false;
  std::optional<absl::Time> active_since;  // nullopt: not active when it was last known
  std::vector<absl::Time> times;           // ascending; only if the code has a frequency rule
  std::optional<absl::Time> isolated_since;
  absl::Time isolated_until = absl::InfinitePast();
  friend bool operator==(const CodeState&, const CodeState&) = default;
};

struct Isolation {
  std::string reason;
  absl::Time since;
  friend bool operator==(const Isolation&, const Isolation&) = default;
};

struct ChipMemory {
  std::string uuid;  // empty = unknown
  int physical_id = -1;
  int card_id = -1;
  int device_id = -1;
  bool on_boot = false;  // seen since the node booted
  bool listed = false;   // in the last inventory; not saved
  absl::Time last_seen = absl::InfinitePast();
  std::optional<std::string> agent_instance;  // whose counts are in `codes`

  std::map<CauseKey, CauseState> causes;
  std::map<uint64_t, CodeState> codes;
  std::optional<absl::Time> network_down_since;  // nullopt: not down when it was last known
  bool forget_network = false;                   // Release(): not knowing no longer keeps it down
  std::optional<Isolation> isolated;

  int flaps = 0;                           // how often it got worse again soon after it was better
  std::optional<absl::Time> recovered_at;  // got better then, and has not got worse since
  bool judged = false;                     // the rest means something
  HealthLevel level = HealthLevel::kHealthy;
  TaintEffect effect = TaintEffect::kNone;
  absl::Time since;
  friend bool operator==(const ChipMemory&, const ChipMemory&) = default;
};

// As JSON. Times to the microsecond, `last_seen` to the hour.
std::string MemoryToJson(absl::string_view boot_id, const std::vector<ChipMemory>& chips);
// Strict: kInvalidArgument names the member that is wrong. Of another boot than `boot_id`, the
// history remains, and nothing of the state.
absl::StatusOr<std::vector<ChipMemory>> MemoryFromJson(absl::string_view json,
                                                       absl::string_view boot_id);

inline constexpr size_t kMaxRememberedChips = 256;
inline constexpr size_t kMaxRememberedCodes = 256;  // of a chip; of its causes as many
inline constexpr absl::Duration kForgetAfter = absl::Hours(30 * 24);

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_HEALTH_CHIP_MEMORY_H_
