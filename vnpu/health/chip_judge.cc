#include "vnpu/health/chip_judge.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/strings.h"

namespace ascend::vnpu {
namespace {

constexpr int kMaxFlaps = 16;  // makes 18 hours of a second
constexpr size_t kMaxText = 256;
constexpr size_t kCausesInMessage = 4;

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", time, absl::UTCTimeZone());
}

std::string FaultText(const Fault& fault) {
  return absl::StrCat("fault ", FaultCodeText(fault.code), fault.text.empty() ? "" : " (",
                      fault.text, fault.text.empty() ? "" : ")");
}

bool Explains(const Fault& fault, FaultSeverity grade) {
  return fault.active && (fault.severity == FaultSeverity::kUnknown || fault.severity >= grade);
}

// One look at one chip.
class Judge {
 public:
  Judge(const FaultTable& table, const ChipLook& look, absl::Time now, ChipMemory& memory)
      : table_(table), look_(look), chip_(look.chip), now_(now), memory_(memory) {}

  absl::Time Run() {
    if (chip_ != nullptr) LookAtChip();
    if (look_.any && !look_.ready) unknown_.insert(unknown_.begin(), look_.unknown);
    if (!unknown_.empty()) {
      Tell({.source = CauseSource::kUnknown, .level = HealthLevel::kUnknown},
           absl::StrCat("health is not known: ", absl::StrJoin(unknown_, "; ")));
    }
    if (!look_.lost.empty()) {
      Tell({.source = CauseSource::kLost, .level = HealthLevel::kLost}, look_.lost);
    }
    LookAtIsolation();
    FindKnown();
    LetGo();
    Bound();
    Conclude();
    return next_;
  }

 private:
  void LookAtChip() {
    if (!chip_->stuck.empty()) {
      Tell({.source = CauseSource::kStuck, .level = HealthLevel::kStuck}, chip_->stuck);
    }
    // What a stuck chip says was known before.
    trusted_ = look_.ready && chip_->stuck.empty();
    LookAtGrade();
    LookAtFaults();
    LookAtNetwork();
  }

  void LookAtGrade() {
    switch (chip_->health) {
      case Health::kUnknown:
        unknown_.emplace_back("the library does not tell the chip's health");
        break;
      case Health::kOk:
      case Health::kMinor:
        break;
      case Health::kMajor:
        TellGrade(FaultSeverity::kMajor, HealthLevel::kMajor);
        break;
      case Health::kCritical:
        TellGrade(FaultSeverity::kCritical, HealthLevel::kCritical);
        break;
      case Health::kAbsent:
        Tell({.source = CauseSource::kGrade, .level = HealthLevel::kAbsent},
             "the library says that the chip is gone or has not started");
        break;
    }
  }

  void TellGrade(FaultSeverity grade, HealthLevel level) {
    const auto explains = [grade](const Fault& fault) { return Explains(fault, grade); };
    if (chip_->faults.has_value() && absl::c_any_of(*chip_->faults, explains)) return;
    Tell({.source = CauseSource::kGrade, .level = level},
         absl::StrCat("the library grades the chip as ", HealthLevelName(level),
                      ", and no fault code says why"));
  }

  void LookAtFaults() {
    const bool new_instance = memory_.agent_instance != look_.agent_instance;
    if (!chip_->faults.has_value() && !chip_->faults_error.empty()) {
      unknown_.push_back(absl::StrCat("fault codes: ", chip_->faults_error));
      return;  // counts of another agent process begin with its first list
    }
    static const std::vector<Fault> kNone;  // a library without a list
    std::set<uint64_t> listed;
    for (const Fault& fault : chip_->faults.has_value() ? *chip_->faults : kNone) {
      LookAtFault(fault, new_instance);
      listed.insert(fault.code);
    }
    memory_.agent_instance = std::string(look_.agent_instance);
    for (auto& [code, state] : memory_.codes) {
      if (listed.count(code) > 0) continue;
      if (new_instance) state.seen = 0;
      if (!trusted_) continue;
      state.listed = false;
      state.active_since.reset();
    }
  }

  // How often it came since it was last told.
  uint64_t NewOccurrences(const Fault& fault, const CodeState& state, bool new_instance) const {
    const bool was_active = state.active_since.has_value();
    // Never counted before: when those came that are gone, nobody knows.
    if (!memory_.agent_instance.has_value()) return fault.active ? 1 : 0;
    uint64_t before = state.seen;
    // Counted anew: if it was active, the first one is what was there already.
    if (new_instance || fault.occurrences < before ||
        (!state.listed && fault.occurrences == before)) {
      before = was_active ? 1 : 0;
    }
    const uint64_t came = fault.occurrences > before ? fault.occurrences - before : 0;
    return came == 0 && fault.active && !was_active ? 1 : came;
  }

  void LookAtFault(const Fault& fault, bool new_instance) {
    CodeState& state = memory_.codes[fault.code];
    const uint64_t came = NewOccurrences(fault, state, new_instance);
    state.seen = fault.occurrences;
    state.listed = true;
    if (came > 0) Count(fault.code, came, state);
    const bool pulse = came > 0 && !fault.active;
    if (fault.active) {
      if (!state.active_since.has_value()) state.active_since = now_;
    } else if (trusted_) {
      state.active_since.reset();
    }
    if (!fault.active && !pulse) return;
    const HealthLevel level = table_.LevelOf(fault.code, fault.severity, chip_->health);
    CauseKey key = {.source = CauseSource::kFault, .code = fault.code, .level = level};
    std::string text = FaultText(fault);
    const DurationRule* const rule = table_.DurationOf(fault.code);
    if (rule != nullptr) {
      const std::optional<absl::Time> since = fault.active ? state.active_since : std::nullopt;
      Raise(*rule, since, &key, &text);
    }
    Tell(key, std::move(text), pulse);
  }

  // Gives the key the rule's level if it is time for it, or still has it from before.
  void Raise(const DurationRule& rule, std::optional<absl::Time> since, CauseKey* key,
             std::string* text) {
    CauseKey raised = *key;
    raised.level = std::max(key->level, rule.level);
    raised.raised = true;
    if (memory_.causes.count(raised) == 0) {
      if (!since.has_value()) return;
      if (now_ < *since + rule.after) {
        next_ = std::min(next_, *since + rule.after);
        return;
      }
    }
    memory_.causes.erase(*key);
    *key = raised;
    absl::StrAppend(text, " for ", absl::FormatDuration(rule.after), " or more");
  }

  void Count(uint64_t code, uint64_t came, CodeState& state) {
    const FrequencyRule* const rule = table_.FrequencyOf(code);
    if (rule == nullptr) return;
    const auto most = static_cast<size_t>(rule->times);
    state.times.insert(state.times.end(), std::min<uint64_t>(came, most), now_);
    const auto too_old = [this, rule](absl::Time time) { return time + rule->within <= now_; };
    state.times.erase(std::remove_if(state.times.begin(), state.times.end(), too_old),
                      state.times.end());
    if (state.times.size() < most) return;
    state.times.erase(state.times.begin(), state.times.end() - static_cast<std::ptrdiff_t>(most));
    if (!state.isolated_since.has_value()) state.isolated_since = now_;
    state.isolated_until = now_ + rule->release;
  }

  void LookAtNetwork() {
    if (chip_->network == NetworkHealth::kOk && trusted_) {
      memory_.network_down_since.reset();
      memory_.forget_network = false;
    }
    if (chip_->network == NetworkHealth::kUnknown && memory_.forget_network) {
      memory_.network_down_since.reset();
    }
    if (chip_->network != NetworkHealth::kDown) return;
    memory_.forget_network = false;
    if (!memory_.network_down_since.has_value()) memory_.network_down_since = now_;
    CauseKey key = {.source = CauseSource::kNetwork};
    std::string text = "the network port is down";
    Raise(table_.network(), memory_.network_down_since, &key, &text);
    if (key.raised) Tell(key, std::move(text));
  }

  void LookAtIsolation() {
    if (memory_.isolated.has_value()) {
      Tell({.source = CauseSource::kIsolated, .level = HealthLevel::kManuallySeparateNpu},
           absl::StrCat("isolated by hand: ", memory_.isolated->reason), false,
           memory_.isolated->since);
    }
    for (auto& [code, state] : memory_.codes) {
      if (!state.isolated_since.has_value()) continue;
      if (now_ >= state.isolated_until) {
        state.isolated_since.reset();
        state.isolated_until = absl::InfinitePast();
        continue;
      }
      next_ = std::min(next_, state.isolated_until);
      Tell({.source = CauseSource::kFrequency,
            .code = code,
            .level = HealthLevel::kManuallySeparateNpu},
           absl::StrCat("fault ", FaultCodeText(code), " came too often: isolated until ",
                        TimeText(state.isolated_until)),
           false, state.isolated_since);
    }
  }

  // `pulse`: it was there, and is not now.
  void Tell(CauseKey key, std::string text, bool pulse = false,
            std::optional<absl::Time> since = std::nullopt) {
    const auto [at, added] = memory_.causes.try_emplace(key);
    CauseState& cause = at->second;
    if (added) cause.since = since.value_or(now_);
    cause.text = std::string(CutUtf8(text, kMaxText));
    cause.until.reset();
    if (pulse && trusted_) cause.until = now_ + RecoverDelay(key);
    told_.insert(key);
  }

  // Which sources say of all that they do not name that it is gone.
  void FindKnown() {
    const bool chip_known = chip_ != nullptr && trusted_;
    const auto set = [this](CauseSource source, bool known) {
      known_[static_cast<size_t>(source)] = known;
    };
    set(CauseSource::kFault,
        chip_known && (chip_->faults.has_value() || chip_->faults_error.empty()));
    set(CauseSource::kGrade, chip_known && chip_->health != Health::kUnknown);
    set(CauseSource::kNetwork,
        memory_.forget_network || (chip_known && chip_->network != NetworkHealth::kUnknown));
    set(CauseSource::kStuck, chip_ != nullptr && look_.ready);
    set(CauseSource::kLost, look_.ready);
    set(CauseSource::kUnknown, look_.any);
    set(CauseSource::kIsolated, true);
    set(CauseSource::kFrequency, true);
  }

  absl::Duration RecoverDelay(const CauseKey& key) const {
    absl::Duration delay = table_.ActionOf(key.level).recover;
    if (key.raised) {
      const DurationRule* const rule =
          key.source == CauseSource::kNetwork ? &table_.network() : table_.DurationOf(key.code);
      if (rule != nullptr) delay = rule->recover;
    }
    const absl::Duration doubled = delay * (int64_t{1} << memory_.flaps);
    return std::max(delay, std::min(doubled, table_.damping().longest));
  }

  void LetGo() {
    for (auto at = memory_.causes.begin(); at != memory_.causes.end();) {
      CauseState& cause = at->second;
      const bool told = told_.count(at->first) > 0;
      if (!told && !known_[static_cast<size_t>(at->first.source)]) {
        cause.until.reset();  // the quiet time begins when it is known again
      } else if (!told && !cause.until.has_value()) {
        cause.until = now_ + RecoverDelay(at->first);
      }
      if (cause.until.has_value() && *cause.until <= now_) {
        at = memory_.causes.erase(at);
      } else {
        ++at;
      }
    }
  }

  // A chip that names ever new codes must not fill the memory.
  void Bound() {
    while (memory_.causes.size() > kMaxRememberedCodes) {
      auto least = memory_.causes.end();
      for (auto at = memory_.causes.begin(); at != memory_.causes.end(); ++at) {
        if (told_.count(at->first) > 0) continue;
        if (least == memory_.causes.end() || at->first.level < least->first.level) least = at;
      }
      if (least == memory_.causes.end()) break;
      memory_.causes.erase(least);
    }
    const auto age = [](const CodeState& state) {
      return std::make_tuple(state.listed, state.isolated_since.has_value(),
                             state.times.empty() ? absl::InfinitePast() : state.times.back());
    };
    // Counts of another agent process, and of nothing that a rule asks for, are worth nothing.
    for (auto at = memory_.codes.begin(); at != memory_.codes.end();) {
      const CodeState& state = at->second;
      const bool worthless = state.seen == 0 && !state.listed && !state.active_since.has_value() &&
                             !state.isolated_since.has_value() && !Recent(at->first, state);
      at = worthless ? memory_.codes.erase(at) : std::next(at);
    }
    while (memory_.codes.size() > kMaxRememberedCodes) {
      const auto oldest = std::min_element(
          memory_.codes.begin(), memory_.codes.end(),
          [&age](const auto& a, const auto& b) { return age(a.second) < age(b.second); });
      if (oldest->second.listed) break;
      memory_.codes.erase(oldest);
    }
  }

  bool Recent(uint64_t code, const CodeState& state) const {
    const FrequencyRule* const rule = table_.FrequencyOf(code);
    return rule != nullptr && !state.times.empty() && state.times.back() + rule->within > now_;
  }

  void Conclude() {
    HealthLevel level = HealthLevel::kHealthy;
    TaintEffect effect = TaintEffect::kNone;
    for (const auto& [key, cause] : memory_.causes) {
      const TaintEffect its = table_.ActionOf(key.level).effect;
      if (std::tie(its, key.level) > std::tie(effect, level)) {
        effect = its;
        level = key.level;
      }
    }
    const auto before = std::make_tuple(memory_.effect, memory_.level);
    const auto after = std::make_tuple(effect, level);
    if (memory_.judged && after < before) memory_.recovered_at = now_;
    if (memory_.judged && after > before && memory_.recovered_at.has_value()) {
      const bool soon = now_ - *memory_.recovered_at <= table_.damping().window;
      memory_.flaps = soon ? std::min(memory_.flaps + 1, kMaxFlaps) : 0;
      memory_.recovered_at.reset();
    }
    if (!memory_.judged || after != before) memory_.since = now_;
    memory_.judged = true;
    memory_.level = level;
    memory_.effect = effect;
    for (const auto& [key, cause] : memory_.causes) {
      if (cause.until.has_value()) next_ = std::min(next_, *cause.until);
    }
  }

  const FaultTable& table_;
  const ChipLook& look_;
  const Chip* const chip_;
  const absl::Time now_;
  ChipMemory& memory_;
  bool trusted_ = false;  // what the chip says is so now
  std::vector<std::string> unknown_;
  std::set<CauseKey> told_;
  std::array<bool, kCauseSources> known_ = {};
  absl::Time next_ = absl::InfiniteFuture();
};

}  // namespace

absl::Time JudgeChip(const FaultTable& table, const ChipLook& look, absl::Time now,
                     ChipMemory& memory) {
  return Judge(table, look, now, memory).Run();
}

Verdict VerdictOf(const FaultTable& table, const ChipMemory& memory) {
  Verdict verdict{.physical_id = memory.physical_id,
                  .uuid = memory.uuid,
                  .level = memory.level,
                  .effect = memory.effect,
                  .since = memory.since};
  for (const auto& [key, cause] : memory.causes) {
    verdict.causes.push_back({.level = key.level,
                              .text = cause.text,
                              .code = key.code,
                              .since = cause.since,
                              .present = !cause.until.has_value()});
    verdict.state = std::max(verdict.state, table.ActionOf(key.level).state);
  }
  const auto badness = [&table](const HealthCause& cause) {
    return std::make_tuple(table.ActionOf(cause.level).effect, cause.level, cause.code,
                           absl::string_view(cause.text));
  };
  absl::c_sort(verdict.causes, [&badness](const HealthCause& a, const HealthCause& b) {
    return badness(a) > badness(b);
  });
  std::vector<std::string> parts;
  for (const HealthCause& cause : verdict.causes) {
    if (parts.size() == kCausesInMessage) {
      parts.push_back(absl::StrCat("and ", verdict.causes.size() - kCausesInMessage, " more"));
      break;
    }
    parts.push_back(absl::StrCat(HealthLevelName(cause.level), ": ", cause.text, ", since ",
                                 TimeText(cause.since)));
  }
  verdict.message = std::string(CutUtf8(absl::StrJoin(parts, "; "), kMaxHealthMessage));
  return verdict;
}

}  // namespace ascend::vnpu
