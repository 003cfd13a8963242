#include "vnpu/health/fault_table.h"

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/core/status_macros.h"
#include "vnpu/health/fault_table_reader.h"

namespace ascend::vnpu {
namespace {

template <typename Rule>
void MergeRules(const std::map<uint64_t, std::optional<Rule>>& changes,
                std::map<uint64_t, Rule>* rules) {
  for (const auto& [code, rule] : changes) {
    if (rule.has_value()) {
      (*rules)[code] = *rule;
    } else {
      rules->erase(code);
    }
  }
}

template <typename Rule>
const Rule* FindRule(const std::map<uint64_t, Rule>& rules, uint64_t code) {
  const auto found = rules.find(code);
  return found == rules.end() ? nullptr : &found->second;
}

}  // namespace

std::string FaultCodeText(uint64_t code) { return absl::StrFormat("%08X", code); }

const FaultTable& FaultTable::BuiltIn() {
  static const FaultTable& table = *[] {
    const absl::StatusOr<FaultTableText> text = ReadFaultTable(BuiltInFaultTableYaml());
    if (!text.ok()) {  // the program was built wrong; nothing in it can be trusted
      std::cerr << "built-in fault table: " << text.status() << std::endl;
      std::abort();
    }
    auto* built_in = new FaultTable();  // never deleted: used until the last thread ends
    built_in->Merge(*text);
    built_in->version_ = text->version;
    return built_in;
  }();
  return table;
}

absl::StatusOr<FaultTable> FaultTable::WithOverrides(absl::string_view yaml) {
  ASCEND_ASSIGN_OR_RETURN(const FaultTableText text, ReadFaultTable(yaml));
  FaultTable table = BuiltIn();
  if (text == FaultTableText()) return table;
  table.Merge(text);
  table.version_ =
      absl::StrCat(table.version_, "+", text.version.empty() ? "custom" : text.version);
  return table;
}

void FaultTable::Merge(const FaultTableText& text) {
  for (const auto& [code, level] : text.codes) codes_[code] = level;
  MergeRules(text.frequency, &frequency_);
  MergeRules(text.duration, &duration_);
  network_ = text.network.value_or(network_);
  damping_ = text.damping.value_or(damping_);
  for (const auto& [level, change] : text.actions) {
    HealthAction& action = actions_[static_cast<size_t>(level)];
    action.effect = change.effect.value_or(action.effect);
    action.state = change.state.value_or(action.state);
    action.recover = change.recover.value_or(action.recover);
  }
}

absl::Status FaultTable::EvictOn(absl::string_view level) {
  const std::optional<HealthLevel> found = HealthLevelFromName(level);
  if (!found.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no health level \"", level, "\""));
  }
  if (!MayEvict(*found)) {
    return absl::InvalidArgumentError(absl::StrCat("pods cannot be evicted from chips that are \"",
                                                   level, "\": nobody knows how they are"));
  }
  actions_[static_cast<size_t>(*found)].effect = TaintEffect::kNoExecute;
  return absl::OkStatus();
}

std::optional<HealthLevel> FaultTable::Find(uint64_t code) const {
  const HealthLevel* const level = FindRule(codes_, code);
  return level == nullptr ? std::nullopt : std::optional<HealthLevel>(*level);
}

HealthLevel FaultTable::LevelOf(uint64_t code, FaultSeverity severity, Health grade) const {
  if (const std::optional<HealthLevel> level = Find(code); level.has_value()) return *level;
  bool minor = false;
  switch (severity) {
    case FaultSeverity::kWarning:
    case FaultSeverity::kMinor:
      minor = true;
      break;
    case FaultSeverity::kMajor:
    case FaultSeverity::kCritical:
      break;
    case FaultSeverity::kUnknown:
      minor = grade == Health::kOk || grade == Health::kMinor;
      break;
  }
  return minor ? HealthLevel::kNotHandleFault : HealthLevel::kSeparateNpu;
}

const FrequencyRule* FaultTable::FrequencyOf(uint64_t code) const {
  return FindRule(frequency_, code);
}

const DurationRule* FaultTable::DurationOf(uint64_t code) const {
  return FindRule(duration_, code);
}

}  // namespace ascend::vnpu
