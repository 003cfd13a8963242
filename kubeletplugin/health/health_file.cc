#include "kubeletplugin/health/health_file.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "nlohmann/json.hpp"

namespace ascend::kubeletplugin {
namespace {

using Json = nlohmann::ordered_json;

// The memory of 64 chips with long histories.
constexpr size_t kMaxHealthFile = 16 << 20;

std::optional<vnpu::TaintEffect> EffectFromName(absl::string_view name) {
  for (const vnpu::TaintEffect effect :
       {vnpu::TaintEffect::kNone, vnpu::TaintEffect::kNoSchedule, vnpu::TaintEffect::kNoExecute}) {
    if (name == vnpu::TaintEffectName(effect)) return effect;
  }
  return std::nullopt;
}

std::optional<vnpu::HealthState> StateFromName(absl::string_view name) {
  for (const vnpu::HealthState state :
       {vnpu::HealthState::kHealthy, vnpu::HealthState::kUnknown, vnpu::HealthState::kUnhealthy}) {
    if (name == vnpu::HealthStateName(state)) return state;
  }
  return std::nullopt;
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone());
}

std::optional<absl::Time> TimeFromText(const std::string& text) {
  absl::Time time;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) return std::nullopt;
  return time;
}

Json ToJson(const vnpu::Verdict& verdict) {
  return {{"physicalID", verdict.physical_id},
          {"uuid", verdict.uuid},
          {"level", std::string(vnpu::HealthLevelName(verdict.level))},
          {"effect", std::string(vnpu::TaintEffectName(verdict.effect))},
          {"state", std::string(vnpu::HealthStateName(verdict.state))},
          {"message", verdict.message},
          {"since", TimeText(verdict.since)}};
}

std::optional<vnpu::Verdict> FromJson(const Json& json) {
  const auto text = [&](const char* key) {
    const auto value = json.find(key);
    return value != json.end() && value->is_string() ? value->get<std::string>() : std::string();
  };
  const auto id = json.find("physicalID");
  const std::string level_name = text("level");
  const std::optional<vnpu::HealthLevel> level =
      level_name.empty() ? vnpu::HealthLevel::kHealthy : vnpu::HealthLevelFromName(level_name);
  const std::optional<vnpu::TaintEffect> effect = EffectFromName(text("effect"));
  const std::optional<vnpu::HealthState> state = StateFromName(text("state"));
  const std::optional<absl::Time> since = TimeFromText(text("since"));
  if (id == json.end() || !id->is_number_integer() || !level || !effect || !state || !since) {
    return std::nullopt;
  }
  return vnpu::Verdict{.physical_id = id->get<int>(),
                       .uuid = text("uuid"),
                       .level = *level,
                       .effect = *effect,
                       .state = *state,
                       .message = text("message"),
                       .since = *since,
                       .causes = {}};
}

}  // namespace

absl::Status WriteHealthFile(const std::string& path, const HealthFile& file) {
  Json chips = Json::array();
  for (const auto& [id, verdict] : file.verdicts) {
    chips.push_back(ToJson(verdict));
    if (const auto done = file.orders_done.find(id); done != file.orders_done.end()) {
      chips.back()["orderDone"] = TimeText(done->second);
    }
  }
  const Json json = {{"version", 1},
                     {"chips", std::move(chips)},
                     {"memory", Json::parse(file.policy, nullptr, /*allow_exceptions=*/false)}};
  return WriteFileAtomically(path, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

absl::StatusOr<HealthFile> ReadHealthFile(const std::string& path) {
  ASCEND_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxHealthFile));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto damaged = [&](absl::string_view what) {
    return absl::DataLossError(absl::StrCat(path, ": ", what));
  };
  if (!json.is_object()) return damaged("no JSON object");
  const auto version = json.find("version");
  if (version == json.end() || *version != 1) return damaged("not of version 1");
  const auto memory = json.find("memory");
  const auto chips = json.find("chips");
  if (memory == json.end() || chips == json.end() || !chips->is_array()) {
    return damaged("\"memory\" or \"chips\" is missing");
  }
  HealthFile file;
  file.policy = memory->dump(-1, ' ', false, Json::error_handler_t::replace);
  for (const Json& chip : *chips) {
    std::optional<vnpu::Verdict> verdict;
    if (chip.is_object()) verdict = FromJson(chip);
    if (!verdict) return damaged("an entry of \"chips\" is no verdict");
    const int id = verdict->physical_id;
    if (const auto done = chip.find("orderDone"); done != chip.end()) {
      const std::optional<absl::Time> at =
          done->is_string() ? TimeFromText(done->get<std::string>()) : std::nullopt;
      if (!at) return damaged("\"orderDone\" is no time");
      file.orders_done[id] = *at;
    }
    file.verdicts.emplace(id, *std::move(verdict));
  }
  return file;
}

}  // namespace ascend::kubeletplugin
