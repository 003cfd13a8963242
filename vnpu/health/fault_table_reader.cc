#include "vnpu/health/fault_table_reader.h"

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/core/status_macros.h"

namespace ascend::vnpu {
namespace {

constexpr size_t kMaxCodes = 65536;  // a range over all of a module's codes
constexpr size_t kHalf = 4;          // digits on each side of the colon
constexpr size_t kWhole = 16;
constexpr int kMaxTimes = 100;
constexpr absl::Duration kMaxDuration = absl::Hours(30 * 24);
constexpr size_t kMaxVersion = 63;

absl::Status Invalid(const YAML::Node& node, absl::string_view what) {
  const int line = node.Mark().line;
  return absl::InvalidArgumentError(line >= 0 ? absl::StrCat("line ", line + 1, ": ", what)
                                              : std::string(what));
}

// yaml-cpp keeps the first of two equal keys; that is a mistake nobody should have to find.
absl::Status CheckMap(const YAML::Node& map, absl::string_view where,
                      std::initializer_list<absl::string_view> known) {
  if (!map.IsMap()) return Invalid(map, absl::StrCat(where, " must be a mapping"));
  std::set<std::string> seen;
  for (const auto& entry : map) {
    if (!entry.first.IsScalar()) return Invalid(entry.first, "keys must be strings");
    const std::string& key = entry.first.Scalar();
    if (known.size() > 0 && !absl::c_linear_search(known, key)) {
      return Invalid(entry.first, absl::StrCat(where, " has no key \"", key, "\""));
    }
    if (!seen.insert(key).second) {
      return Invalid(entry.first, absl::StrCat("key ", key, " appears twice"));
    }
  }
  return absl::OkStatus();
}

// The member, undefined if there is none. A copy per call: nodes are handles.
YAML::Node Get(const YAML::Node& map, absl::string_view key) { return map[std::string(key)]; }

absl::StatusOr<YAML::Node> GetScalar(const YAML::Node& map, absl::string_view where,
                                     absl::string_view key) {
  const YAML::Node value = Get(map, key);
  if (!value.IsDefined()) return Invalid(map, absl::StrCat(where, " needs ", key));
  if (!value.IsScalar()) return Invalid(value, absl::StrCat(key, " must be one value"));
  return value;
}

bool IsHex(absl::string_view text, size_t min, size_t max) {
  return text.size() >= min && text.size() <= max && absl::c_all_of(text, absl::ascii_isxdigit);
}

absl::StatusOr<uint64_t> ParseHalf(absl::string_view text) {
  uint64_t value = 0;
  if (!IsHex(text, kHalf, kHalf) || !absl::SimpleHexAtoi(text, &value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not four hexadecimal digits"));
  }
  return value;
}

// The codes of a list under `codes` or a level; `use` is called with each code and its node.
template <typename Use>
absl::Status ForEachCode(const YAML::Node& list, absl::string_view where, const Use& use) {
  if (!list.IsSequence()) return Invalid(list, absl::StrCat(where, " must be a list of codes"));
  for (const YAML::Node& item : list) {
    if (!item.IsScalar()) {
      return Invalid(item, absl::StrCat(where,
                                        ": a code must be text; one with a comma or a "
                                        "colon needs quotes here"));
    }
    const absl::StatusOr<std::vector<uint64_t>> codes = ParseFaultCodes(item.Scalar());
    if (!codes.ok()) {
      return Invalid(item, absl::StrCat(where, ": ", codes.status().message()));
    }
    for (const uint64_t code : *codes) ASCEND_RETURN_IF_ERROR(use(code, item));
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> ReadDuration(const YAML::Node& map, absl::string_view where,
                                            absl::string_view key) {
  ASCEND_ASSIGN_OR_RETURN(const YAML::Node node, GetScalar(map, where, key));
  absl::Duration duration;
  if (!absl::ParseDuration(node.Scalar(), &duration) || duration <= absl::ZeroDuration() ||
      duration > kMaxDuration) {
    return Invalid(node,
                   absl::StrCat(where, ": ", key, " must be a time such as 20s, 10m or 24h, ",
                                "longer than zero and at most 720h, not \"", node.Scalar(), "\""));
  }
  return duration;
}

absl::StatusOr<HealthLevel> FaultLevel(const YAML::Node& node, absl::string_view where) {
  const std::optional<HealthLevel> level =
      node.IsScalar() ? HealthLevelFromName(node.Scalar()) : std::nullopt;
  if (level.has_value() && IsFaultLevel(*level)) return *level;
  return Invalid(node, absl::StrCat(where, ": \"", node.IsScalar() ? node.Scalar() : "",
                                    "\" is no level of a fault: NotHandleFault, SubHealthFault, "
                                    "RestartRequest, RestartBusiness, FreeRestartNPU, RestartNPU, "
                                    "PreSeparateNPU or SeparateNPU"));
}

absl::Status ReadVersion(const YAML::Node& node, FaultTableText* text) {
  if (!node.IsDefined()) return absl::OkStatus();
  if (!node.IsScalar() || node.Scalar().empty() || node.Scalar().size() > kMaxVersion ||
      !absl::c_all_of(node.Scalar(), absl::ascii_isprint)) {
    return Invalid(node, absl::StrCat("version must be a text of at most ", kMaxVersion,
                                      " printable characters"));
  }
  text->version = node.Scalar();
  return absl::OkStatus();
}

absl::Status ReadLevels(const YAML::Node& levels, FaultTableText* text) {
  if (!levels.IsDefined()) return absl::OkStatus();
  ASCEND_RETURN_IF_ERROR(CheckMap(levels, "levels", {}));
  for (const auto& entry : levels) {
    ASCEND_ASSIGN_OR_RETURN(const HealthLevel level, FaultLevel(entry.first, "levels"));
    const auto add = [text, level](uint64_t code, const YAML::Node& node) -> absl::Status {
      const auto [at, added] = text->codes.emplace(code, level);
      if (added) return absl::OkStatus();
      return Invalid(node,
                     absl::StrCat("code ", FaultCodeText(code), " is ", HealthLevelName(at->second),
                                  " already, and cannot be ", HealthLevelName(level), " too"));
    };
    ASCEND_RETURN_IF_ERROR(ForEachCode(entry.second, entry.first.Scalar(), add));
  }
  return absl::OkStatus();
}

absl::StatusOr<FrequencyRule> ReadFrequencyRule(const YAML::Node& map) {
  FrequencyRule rule;
  ASCEND_ASSIGN_OR_RETURN(const YAML::Node times, GetScalar(map, "a frequency rule", "times"));
  if (!absl::SimpleAtoi(times.Scalar(), &rule.times) || rule.times < 1 || rule.times > kMaxTimes) {
    return Invalid(times, absl::StrCat("times must be a whole number from 1 to ", kMaxTimes));
  }
  ASCEND_ASSIGN_OR_RETURN(rule.within, ReadDuration(map, "a frequency rule", "within"));
  ASCEND_ASSIGN_OR_RETURN(rule.release, ReadDuration(map, "a frequency rule", "release"));
  return rule;
}

absl::StatusOr<DurationRule> ReadDurationRule(const YAML::Node& map, absl::string_view where) {
  DurationRule rule;
  ASCEND_ASSIGN_OR_RETURN(rule.after, ReadDuration(map, where, "after"));
  ASCEND_ASSIGN_OR_RETURN(const YAML::Node level, GetScalar(map, where, "level"));
  ASCEND_ASSIGN_OR_RETURN(rule.level, FaultLevel(level, where));
  ASCEND_ASSIGN_OR_RETURN(rule.recover, ReadDuration(map, where, "recover"));
  return rule;
}

// A list of rules for codes: `{codes: [...], off: true}`, or what `read` reads.
template <typename Rule, typename Read>
absl::Status ReadRules(const YAML::Node& list, absl::string_view where,
                       std::initializer_list<absl::string_view> keys, const Read& read,
                       std::map<uint64_t, std::optional<Rule>>* rules) {
  if (!list.IsDefined()) return absl::OkStatus();
  if (!list.IsSequence()) return Invalid(list, absl::StrCat(where, " must be a list of rules"));
  for (const YAML::Node& item : list) {
    std::optional<Rule> rule;
    const YAML::Node off = item.IsMap() ? Get(item, "off") : YAML::Node(YAML::NodeType::Undefined);
    if (off.IsDefined()) {
      ASCEND_RETURN_IF_ERROR(
          CheckMap(item, absl::StrCat("a rule of ", where, " that is off"), {"codes", "off"}));
      if (!off.IsScalar() || off.Scalar() != "true") {
        return Invalid(off, "off must be true, or not be there");
      }
    } else {
      ASCEND_RETURN_IF_ERROR(CheckMap(item, absl::StrCat("a rule of ", where), keys));
      ASCEND_ASSIGN_OR_RETURN(rule, read(item));
    }
    const YAML::Node codes = Get(item, "codes");
    if (!codes.IsDefined()) return Invalid(item, absl::StrCat("a rule of ", where, " needs codes"));
    const auto add = [&](uint64_t code, const YAML::Node& node) -> absl::Status {
      if (rules->emplace(code, rule).second) return absl::OkStatus();
      return Invalid(
          node, absl::StrCat("code ", FaultCodeText(code), " has a rule of ", where, " already"));
    };
    ASCEND_RETURN_IF_ERROR(ForEachCode(codes, where, add));
  }
  return absl::OkStatus();
}

absl::StatusOr<FaultTableText::Action> ReadAction(const YAML::Node& map, HealthLevel level) {
  const absl::string_view name = HealthLevelName(level);
  ASCEND_RETURN_IF_ERROR(CheckMap(map, name, {"effect", "state", "recover"}));
  FaultTableText::Action action;
  if (Get(map, "effect").IsDefined()) {
    ASCEND_ASSIGN_OR_RETURN(const YAML::Node node, GetScalar(map, name, "effect"));
    for (const TaintEffect effect :
         {TaintEffect::kNone, TaintEffect::kNoSchedule, TaintEffect::kNoExecute}) {
      if (node.Scalar() == TaintEffectName(effect)) action.effect = effect;
    }
    if (!action.effect.has_value()) {
      return Invalid(node, absl::StrCat(name, ": effect must be none, NoSchedule or NoExecute"));
    }
    if (action.effect == TaintEffect::kNoExecute && !MayEvict(level)) {
      return Invalid(node, absl::StrCat(name, ": effect cannot be NoExecute: no pod is evicted ",
                                        "because nobody knows how its chip is"));
    }
  }
  if (Get(map, "state").IsDefined()) {
    ASCEND_ASSIGN_OR_RETURN(const YAML::Node node, GetScalar(map, name, "state"));
    for (const HealthState state :
         {HealthState::kHealthy, HealthState::kUnknown, HealthState::kUnhealthy}) {
      if (node.Scalar() == HealthStateName(state)) action.state = state;
    }
    if (!action.state.has_value()) {
      return Invalid(node, absl::StrCat(name, ": state must be Healthy, Unknown or Unhealthy"));
    }
  }
  if (Get(map, "recover").IsDefined()) {
    ASCEND_ASSIGN_OR_RETURN(action.recover, ReadDuration(map, name, "recover"));
  }
  return action;
}

absl::Status ReadActions(const YAML::Node& actions, FaultTableText* text) {
  if (!actions.IsDefined()) return absl::OkStatus();
  ASCEND_RETURN_IF_ERROR(CheckMap(actions, "actions", {}));
  for (const auto& entry : actions) {
    const std::optional<HealthLevel> level = HealthLevelFromName(entry.first.Scalar());
    if (!level.has_value()) {
      return Invalid(entry.first,
                     absl::StrCat("actions: there is no level \"", entry.first.Scalar(), "\""));
    }
    ASCEND_ASSIGN_OR_RETURN(text->actions[*level], ReadAction(entry.second, *level));
  }
  return absl::OkStatus();
}

absl::StatusOr<FaultTableText> ReadDocument(const YAML::Node& root) {
  FaultTableText text;
  if (root.IsNull()) return text;
  ASCEND_RETURN_IF_ERROR(
      CheckMap(root, "the fault table",
               {"version", "levels", "frequency", "duration", "network", "actions", "damping"}));
  ASCEND_RETURN_IF_ERROR(ReadVersion(Get(root, "version"), &text));
  ASCEND_RETURN_IF_ERROR(ReadLevels(Get(root, "levels"), &text));
  ASCEND_RETURN_IF_ERROR(ReadRules<FrequencyRule>(Get(root, "frequency"), "frequency",
                                                  {"codes", "times", "within", "release"},
                                                  ReadFrequencyRule, &text.frequency));
  ASCEND_RETURN_IF_ERROR(ReadRules<DurationRule>(
      Get(root, "duration"), "duration", {"codes", "after", "level", "recover"},
      [](const YAML::Node& map) { return ReadDurationRule(map, "a duration rule"); },
      &text.duration));
  if (const YAML::Node network = Get(root, "network"); network.IsDefined()) {
    ASCEND_RETURN_IF_ERROR(CheckMap(network, "network", {"after", "level", "recover"}));
    ASCEND_ASSIGN_OR_RETURN(text.network, ReadDurationRule(network, "network"));
  }
  ASCEND_RETURN_IF_ERROR(ReadActions(Get(root, "actions"), &text));
  if (const YAML::Node damping = Get(root, "damping"); damping.IsDefined()) {
    ASCEND_RETURN_IF_ERROR(CheckMap(damping, "damping", {"window", "longest"}));
    text.damping.emplace();
    ASCEND_ASSIGN_OR_RETURN(text.damping->window, ReadDuration(damping, "damping", "window"));
    ASCEND_ASSIGN_OR_RETURN(text.damping->longest, ReadDuration(damping, "damping", "longest"));
  }
  return text;
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> ParseFaultCodes(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  std::vector<uint64_t> codes;
  if (!absl::StrContains(text, ':')) {
    uint64_t code = 0;
    if (!IsHex(text, 1, kWhole) || !absl::SimpleHexAtoi(text, &code)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", text, "\" is no fault code: at most 16 hexadecimal digits, without 0x, or groups ",
          "such as 80C9:8000,8008-800A"));
    }
    codes.push_back(code);
    return codes;
  }
  for (const absl::string_view prefix : absl::StrSplit(halves.first, ',')) {
    ASCEND_ASSIGN_OR_RETURN(const uint64_t high, ParseHalf(prefix), "code ", text);
    for (const absl::string_view part : absl::StrSplit(halves.second, ',')) {
      const std::pair<absl::string_view, absl::string_view> range =
          absl::StrSplit(part, absl::MaxSplits('-', 1));
      ASCEND_ASSIGN_OR_RETURN(const uint64_t first, ParseHalf(range.first), "code ", text);
      uint64_t last = first;
      if (absl::StrContains(part, '-')) {
        ASCEND_ASSIGN_OR_RETURN(last, ParseHalf(range.second), "code ", text);
        if (last <= first) {
          return absl::InvalidArgumentError(
              absl::StrCat("code ", text, ": the range ", part, " is empty"));
        }
      }
      if (codes.size() + (last - first) >= kMaxCodes) {
        return absl::InvalidArgumentError(
            absl::StrCat("code ", text, " stands for more than ", kMaxCodes, " codes"));
      }
      for (uint64_t low = first; low <= last; ++low) codes.push_back(high << 16 | low);
    }
  }
  return codes;
}

absl::StatusOr<FaultTableText> ReadFaultTable(absl::string_view yaml) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(yaml));
    if (documents.empty()) return FaultTableText();
    if (documents.size() > 1) return Invalid(documents[1], "more than one YAML document");
    return ReadDocument(documents[0]);
  } catch (const YAML::Exception& error) {  // yaml-cpp has no other way to report
    return absl::InvalidArgumentError(absl::StrCat("not valid YAML: ", error.what()));
  }
}

}  // namespace ascend::vnpu
