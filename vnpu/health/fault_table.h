// What fault codes mean, and what is done about it, as data.
//
// The built-in table is vnpu/health/fault_table.yaml, compiled in; an operator's configuration
// may change single codes, rules and actions of it, in the same form, where everything may be
// missing:
//
//   version: "site 3"                 # shown beside the built-in one
//   levels:                           # a code that is named here leaves the level it had
//     RestartRequest:
//       - 80C9:8000,8008-800A         # 80C98000, 80C98008, 80C98009, 80C9800A
//       - 80CB,80CD:8008              # 80CB8008, 80CD8008
//       - 110001024                   # one whole code; always hexadecimal, at most 16 digits
//   frequency:                        # so many times within a day: isolated, for that long
//     - {codes: ["80E0:1801"], times: 2, within: 24h, release: 24h}
//     - {codes: ["80E1:8005"], off: true}       # takes the built-in rule away
//   duration:                         # active for so long: this level instead of its own, until
//     - {codes: ["8107:8603"], after: 20s, level: PreSeparateNPU, recover: 60s}  # gone that long
//   network: {after: 20s, level: PreSeparateNPU, recover: 60s}  # the same for a RoCE port's link
//   actions:                          # recover: how long the level must be gone
//     RestartNPU: {effect: NoExecute, state: Unhealthy, recover: 15s}
//   damping: {window: 10m, longest: 10m}  # each relapse so soon doubles `recover`, up to longest
#ifndef ASCEND_DRA_VNPU_HEALTH_FAULT_TABLE_H_
#define ASCEND_DRA_VNPU_HEALTH_FAULT_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "vnpu/chip.h"
#include "vnpu/health/level.h"

namespace ascend::vnpu {

// A fault that comes `times` times `within` a time isolates the chip (ManuallySeparateNPU) until
// `release` after the last of them.
struct FrequencyRule {
  int times = 0;
  absl::Duration within;
  absl::Duration release;
  friend bool operator==(const FrequencyRule&, const FrequencyRule&) = default;
};

// A fault that is active for `after` has `level` from then on, until it has been gone for
// `recover`.
struct DurationRule {
  absl::Duration after;
  HealthLevel level = HealthLevel::kPreSeparateNpu;
  absl::Duration recover;
  friend bool operator==(const DurationRule&, const DurationRule&) = default;
};

struct HealthAction {
  TaintEffect effect = TaintEffect::kNone;
  HealthState state = HealthState::kHealthy;
  absl::Duration recover;  // how long a cause of this level must be gone; not used for healthy
  friend bool operator==(const HealthAction&, const HealthAction&) = default;
};

// A cause that comes within `window` after the chip got better doubles what it must be gone for,
// each time, up to `longest`.
struct Damping {
  absl::Duration window;
  absl::Duration longest;
  friend bool operator==(const Damping&, const Damping&) = default;
};

// "80E01801", at least eight digits: how codes are written in messages.
std::string FaultCodeText(uint64_t code);

struct FaultTableText;  // fault_table_reader.h

// A value: copied freely, const calls from any thread.
class FaultTable {
 public:
  // Lives as long as the process.
  static const FaultTable& BuiltIn();

  // The built-in table, changed by `yaml`, which is a mapping as above: strict, an unknown key or
  // level, a code that is not hexadecimal or appears twice, a duration that is not longer than
  // zero, or NoExecute for a level that never may is kInvalidArgument with the line, the code and
  // what is wrong. An empty text is the built-in table.
  static absl::StatusOr<FaultTable> WithOverrides(absl::string_view yaml);

  // Has pods evicted from chips of this level. kInvalidArgument for a level that does not exist or
  // never may ("unknown", "stuck").
  absl::Status EvictOn(absl::string_view level);

  // Codes that the table does not know: of a severity up to minor NotHandleFault, else SeparateNPU.
  // The chip's grade stands for a severity that nobody told; SeparateNPU if nobody knows either.
  HealthLevel LevelOf(uint64_t code, FaultSeverity severity, Health grade) const;
  // nullopt: a code that the table does not know.
  std::optional<HealthLevel> Find(uint64_t code) const;

  // Null if the code has none; valid as long as the table.
  const FrequencyRule* FrequencyOf(uint64_t code) const;
  const DurationRule* DurationOf(uint64_t code) const;

  const HealthAction& ActionOf(HealthLevel level) const {
    return actions_[static_cast<size_t>(level)];
  }
  const DurationRule& network() const { return network_; }
  const Damping& damping() const { return damping_; }

  // Levels of codes move between releases: to be shown. With overrides "<built-in>+<theirs>", where
  // theirs is "custom" if they do not say.
  const std::string& version() const { return version_; }
  const std::map<uint64_t, HealthLevel>& codes() const { return codes_; }
  const std::map<uint64_t, FrequencyRule>& frequency() const { return frequency_; }
  const std::map<uint64_t, DurationRule>& duration() const { return duration_; }

 private:
  void Merge(const FaultTableText& text);

  std::string version_;
  std::map<uint64_t, HealthLevel> codes_;
  std::map<uint64_t, FrequencyRule> frequency_;
  std::map<uint64_t, DurationRule> duration_;
  std::array<HealthAction, kHealthLevels> actions_;
  DurationRule network_;
  Damping damping_;
};

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_HEALTH_FAULT_TABLE_H_
