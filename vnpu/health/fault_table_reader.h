// The fault table's text form: fault_table.h shows it.
#ifndef ASCEND_DRA_VNPU_HEALTH_FAULT_TABLE_READER_H_
#define ASCEND_DRA_VNPU_HEALTH_FAULT_TABLE_READER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "vnpu/health/fault_table.h"
#include "vnpu/health/level.h"

namespace ascend::vnpu {

// vnpu/health/fault_table.yaml, compiled in.
absl::string_view BuiltInFaultTableYaml();

// What a text says, and nothing else.
struct FaultTableText {
  struct Action {
    std::optional<TaintEffect> effect;
    std::optional<HealthState> state;
    std::optional<absl::Duration> recover;
    friend bool operator==(const Action&, const Action&) = default;
  };
  std::string version;  // empty = does not say
  std::map<uint64_t, HealthLevel> codes;
  std::map<uint64_t, std::optional<FrequencyRule>> frequency;  // nullopt: `off`
  std::map<uint64_t, std::optional<DurationRule>> duration;
  std::optional<DurationRule> network;
  std::map<HealthLevel, Action> actions;
  std::optional<Damping> damping;
  friend bool operator==(const FaultTableText&, const FaultTableText&) = default;
};

// kInvalidArgument with the line and what is wrong; nothing of an empty text.
absl::StatusOr<FaultTableText> ReadFaultTable(absl::string_view yaml);

// The codes of "80C9:8000,8008-800A", "80CB,80CD:8008" or "110001024", as they are written there.
// kInvalidArgument if it is none of these.
absl::StatusOr<std::vector<uint64_t>> ParseFaultCodes(absl::string_view text);

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_HEALTH_FAULT_TABLE_READER_H_
