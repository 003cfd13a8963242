#include "vnpu/health/chip_memory.h"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/core/status_macros.h"
#include "nlohmann/json.hpp"

namespace ascend::vnpu {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr size_t kMaxTimes = 100;
constexpr int kMaxFlaps = 16;
constexpr int64_t kMaxMicros = int64_t{253402300799} * 1000000;  // year 9999

// In the order of the enumeration.
constexpr std::array<absl::string_view, kCauseSources> kSourceNames = {
    "fault", "grade", "network", "stuck", "lost", "unknown", "isolated", "frequency"};

json TimeJson(absl::Time time) { return absl::ToUnixMicros(time); }
json TimeJson(const std::optional<absl::Time>& time) {
  return time.has_value() ? TimeJson(*time) : json();
}
std::string CodeJson(uint64_t code) { return absl::StrFormat("%X", code); }

// Reads an object that has exactly the members that are asked for: after the last, Done().
class Members {
 public:
  Members(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  // Null if it is missing, which is then the status; also if this is no object.
  const json* Get(const char* name) {
    if (!object_.is_object()) return Fail("", "is not an object");
    const auto found = object_.find(name);
    if (found == object_.end()) return Fail(name, "is missing");
    ++asked_;
    return &*found;
  }
  void Read(const char* name, std::string* out) {
    const json* const value = Get(name);
    if (value == nullptr) return;
    if (!value->is_string()) return (void)Fail(name, "is not a string");
    *out = value->get<std::string>();
  }
  void Read(const char* name, std::optional<std::string>* out) {
    const json* const value = Get(name);
    if (value == nullptr || value->is_null()) return;
    Again();
    Read(name, &out->emplace());
  }
  void Read(const char* name, bool* out) {
    const json* const value = Get(name);
    if (value == nullptr) return;
    if (!value->is_boolean()) return (void)Fail(name, "is not a boolean");
    *out = value->get<bool>();
  }
  template <typename Number>
  void Read(const char* name, Number* out, Number min, Number max) {
    const json* const value = Get(name);
    if (value == nullptr) return;
    const bool fits = value->is_number_unsigned()
                          ? value->get<uint64_t>() <= static_cast<uint64_t>(max) &&
                                (min <= 0 || value->get<uint64_t>() >= static_cast<uint64_t>(min))
                          : value->is_number_integer() && std::numeric_limits<Number>::is_signed &&
                                value->get<int64_t>() >= static_cast<int64_t>(min);
    if (!fits) return (void)Fail(name, "is not a whole number in its range");
    *out = value->get<Number>();
  }
  void Read(const char* name, absl::Time* out) {
    int64_t micros = 0;
    Read<int64_t>(name, &micros, 0, kMaxMicros);
    *out = absl::FromUnixMicros(micros);
  }
  void Read(const char* name, std::optional<absl::Time>* out) {
    const json* const value = Get(name);
    if (value == nullptr || value->is_null()) return;
    Again();
    Read(name, &out->emplace());
  }
  void ReadCode(const char* name, uint64_t* out) {
    std::string text;
    Read(name, &text);
    if (!status_.ok()) return;
    if (text.empty() || text.size() > 16 || !absl::c_all_of(text, absl::ascii_isxdigit) ||
        !absl::SimpleHexAtoi(text, out)) {
      Fail(name, "is not a fault code");
    }
  }
  void ReadLevel(const char* name, HealthLevel* out) {
    std::string text;
    Read(name, &text);
    if (!status_.ok()) return;
    const std::optional<HealthLevel> level =
        text.empty() ? HealthLevel::kHealthy : HealthLevelFromName(text);
    if (!level.has_value()) return (void)Fail(name, "is not a health level");
    *out = *level;
  }
  void ReadEffect(const char* name, TaintEffect* out) {
    std::string text;
    Read(name, &text);
    if (!status_.ok()) return;
    for (const TaintEffect effect :
         {TaintEffect::kNone, TaintEffect::kNoSchedule, TaintEffect::kNoExecute}) {
      if (TaintEffectName(effect) == text) {
        *out = effect;
        return;
      }
    }
    Fail(name, "is not a taint effect");
  }
  void ReadSource(const char* name, CauseSource* out) {
    std::string text;
    Read(name, &text);
    if (!status_.ok()) return;
    const auto found = absl::c_find(kSourceNames, text);
    if (found == kSourceNames.end()) return (void)Fail(name, "is not a source of causes");
    *out = static_cast<CauseSource>(found - kSourceNames.begin());
  }
  // `read`: (const json& element, std::string where) -> absl::Status.
  template <typename F>
  void Each(const char* name, size_t most, const F& read) {
    const json* const list = Get(name);
    if (list == nullptr) return;
    if (!list->is_array()) return (void)Fail(name, "is not a list");
    if (list->size() > most) return (void)Fail(name, "is too long");
    for (size_t i = 0; i < list->size() && status_.ok(); ++i) {
      status_.Update(read((*list)[i], absl::StrCat(where_, name, "[", i, "].")));
    }
  }

  const json* Fail(absl::string_view name, absl::string_view what) {
    status_.Update(absl::InvalidArgumentError(absl::StrCat(where_, name, " ", what)));
    return nullptr;
  }
  absl::Status Done() {
    if (status_.ok() && object_.size() != asked_) Fail("", "has a member that is not known");
    return status_;
  }

 private:
  void Again() { --asked_; }

  const json& object_;
  const std::string where_;  // "chips[0].", empty at the root
  size_t asked_ = 0;
  absl::Status status_;
};

json CauseJson(const CauseKey& key, const CauseState& cause) {
  return {{"source", std::string(kSourceNames[static_cast<size_t>(key.source)])},
          {"code", CodeJson(key.code)},
          {"level", std::string(HealthLevelName(key.level))},
          {"raised", key.raised},
          {"text", cause.text},
          {"since", TimeJson(cause.since)}};
}

absl::Status ReadCause(const json& object, const std::string& where, ChipMemory* chip) {
  Members members(object, where);
  CauseKey key;
  CauseState cause;
  members.ReadSource("source", &key.source);
  members.ReadCode("code", &key.code);
  members.ReadLevel("level", &key.level);
  members.Read("raised", &key.raised);
  members.Read("text", &cause.text);
  members.Read("since", &cause.since);
  if (!chip->causes.emplace(key, cause).second) members.Fail("", "is there twice");
  return members.Done();
}

json CodeStateJson(uint64_t code, const CodeState& state) {
  json times = json::array();
  for (const absl::Time time : state.times) times.push_back(TimeJson(time));
  return {{"code", CodeJson(code)},
          {"seen", state.seen},
          {"listed", state.listed},
          {"activeSince", TimeJson(state.active_since)},
          {"times", std::move(times)},
          {"isolatedSince", TimeJson(state.isolated_since)},
          {"isolatedUntil",
           state.isolated_since.has_value() ? TimeJson(state.isolated_until) : json()}};
}

absl::Status ReadCodeState(const json& object, const std::string& where, ChipMemory* chip) {
  Members members(object, where);
  uint64_t code = 0;
  CodeState state;
  std::optional<absl::Time> until;
  members.ReadCode("code", &code);
  members.Read<uint64_t>("seen", &state.seen, 0, std::numeric_limits<uint64_t>::max());
  members.Read("listed", &state.listed);
  members.Read("activeSince", &state.active_since);
  members.Each("times", kMaxTimes, [&](const json& time, const std::string& at) -> absl::Status {
    if (!time.is_number_integer() || time < 0 || time > kMaxMicros) {
      return absl::InvalidArgumentError(absl::StrCat(at, " is not a time"));
    }
    state.times.push_back(absl::FromUnixMicros(time.get<int64_t>()));
    return absl::OkStatus();
  });
  members.Read("isolatedSince", &state.isolated_since);
  members.Read("isolatedUntil", &until);
  if (until.has_value() != state.isolated_since.has_value()) {
    members.Fail("isolatedUntil", "and isolatedSince belong together");
  }
  state.isolated_until = until.value_or(absl::InfinitePast());
  if (!absl::c_is_sorted(state.times)) members.Fail("times", "are not in order");
  if (!chip->codes.emplace(code, state).second) members.Fail("", "is there twice");
  return members.Done();
}

json ChipJson(const ChipMemory& chip) {
  json causes = json::array();
  for (const auto& [key, cause] : chip.causes) causes.push_back(CauseJson(key, cause));
  json codes = json::array();
  for (const auto& [code, state] : chip.codes) codes.push_back(CodeStateJson(code, state));
  json isolated;
  if (chip.isolated.has_value()) {
    isolated = {{"reason", chip.isolated->reason}, {"since", TimeJson(chip.isolated->since)}};
  }
  return {{"uuid", chip.uuid},
          {"physicalId", chip.physical_id},
          {"cardId", chip.card_id},
          {"deviceId", chip.device_id},
          {"seenOnBoot", chip.on_boot},
          {"lastSeen", TimeJson(absl::UnixEpoch() +
                                absl::Floor(chip.last_seen - absl::UnixEpoch(), absl::Hours(1)))},
          {"agentInstance", chip.agent_instance.has_value() ? json(*chip.agent_instance) : json()},
          {"causes", std::move(causes)},
          {"codes", std::move(codes)},
          {"networkDownSince", TimeJson(chip.network_down_since)},
          {"forgetNetwork", chip.forget_network},
          {"isolated", std::move(isolated)},
          {"flaps", chip.flaps},
          {"recoveredAt", TimeJson(chip.recovered_at)},
          {"level", std::string(HealthLevelName(chip.level))},
          {"effect", std::string(TaintEffectName(chip.effect))},
          {"since", TimeJson(chip.since)}};
}

absl::Status ReadChip(const json& object, const std::string& where, ChipMemory* chip) {
  Members members(object, where);
  constexpr int kMaxId = std::numeric_limits<int>::max();
  members.Read("uuid", &chip->uuid);
  members.Read<int>("physicalId", &chip->physical_id, -1, kMaxId);
  members.Read<int>("cardId", &chip->card_id, -1, kMaxId);
  members.Read<int>("deviceId", &chip->device_id, -1, kMaxId);
  members.Read("seenOnBoot", &chip->on_boot);
  members.Read("lastSeen", &chip->last_seen);
  members.Read("agentInstance", &chip->agent_instance);
  members.Each("causes", kMaxRememberedCodes * 2, [chip](const json& cause, const std::string& at) {
    return ReadCause(cause, at, chip);
  });
  members.Each("codes", kMaxRememberedCodes * 2, [chip](const json& code, const std::string& at) {
    return ReadCodeState(code, at, chip);
  });
  members.Read("networkDownSince", &chip->network_down_since);
  members.Read("forgetNetwork", &chip->forget_network);
  if (const json* const isolated = members.Get("isolated");
      isolated != nullptr && !isolated->is_null()) {
    Members parts(*isolated, absl::StrCat(where, "isolated."));
    chip->isolated.emplace();
    parts.Read("reason", &chip->isolated->reason);
    parts.Read("since", &chip->isolated->since);
    ASCEND_RETURN_IF_ERROR(parts.Done());
  }
  members.Read<int>("flaps", &chip->flaps, 0, kMaxFlaps);
  members.Read("recoveredAt", &chip->recovered_at);
  members.ReadLevel("level", &chip->level);
  members.ReadEffect("effect", &chip->effect);
  members.Read("since", &chip->since);
  chip->judged = true;
  return members.Done();
}

// The node has booted since: faults are gone or will be told anew.
void KeepHistory(ChipMemory* chip) {
  chip->on_boot = false;
  chip->judged = false;
  chip->causes.clear();
  chip->network_down_since.reset();
  chip->level = HealthLevel::kHealthy;
  chip->effect = TaintEffect::kNone;
  for (auto& [code, state] : chip->codes) {
    state.listed = false;
    state.active_since.reset();
  }
}

}  // namespace

std::string MemoryToJson(absl::string_view boot_id, const std::vector<ChipMemory>& chips) {
  json list = json::array();
  for (const ChipMemory& chip : chips) list.push_back(ChipJson(chip));
  const json root = {
      {"version", kVersion}, {"bootId", std::string(boot_id)}, {"chips", std::move(list)}};
  // The library's words may be in any encoding.
  return root.dump(1, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<std::vector<ChipMemory>> MemoryFromJson(absl::string_view text,
                                                       absl::string_view boot_id) {
  const json root = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return absl::InvalidArgumentError("not valid JSON");
  Members members(root, "");
  std::string saved_boot_id;
  std::vector<ChipMemory> chips;
  std::set<std::string> uuids;
  int version = 0;
  members.Read<int>("version", &version, kVersion, kVersion);
  members.Read("bootId", &saved_boot_id);
  members.Each(
      "chips", kMaxRememberedChips,
      [&](const json& chip, const std::string& where) -> absl::Status {
        ASCEND_RETURN_IF_ERROR(ReadChip(chip, where, &chips.emplace_back()));
        const std::string& uuid = chips.back().uuid;
        if (uuid.empty() || uuids.insert(uuid).second) return absl::OkStatus();
        return absl::InvalidArgumentError(absl::StrCat(where, "uuid ", uuid, " is there twice"));
      });
  ASCEND_RETURN_IF_ERROR(members.Done());
  if (saved_boot_id != boot_id) {
    for (ChipMemory& chip : chips) KeepHistory(&chip);
  }
  return chips;
}

}  // namespace ascend::vnpu
