#include "kubeletplugin/health/resets_file.h"

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "nlohmann/json.hpp"

namespace ascend::kubeletplugin {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxFile = 1 << 20;

std::string TimeText(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone());
}

Json ToJson(int physical_id, const ResetTries& tries) {
  Json codes = Json::array();
  for (const uint64_t code : tries.codes) codes.push_back(absl::StrFormat("%08X", code));
  return {{"physicalID", physical_id},      {"uuid", tries.uuid},
          {"codes", std::move(codes)},      {"tries", tries.tries},
          {"last", TimeText(tries.last)},   {"group", tries.group},
          {"until", TimeText(tries.until)}, {"outcome", tries.outcome},
          {"failed", tries.failed},         {"gaveUp", tries.gave_up}};
}

// The member of this name, if it is of the type.
template <typename T>
const T* Get(const Json& json, const char* key) {
  const auto value = json.find(key);
  return value == json.end() ? nullptr : value->get_ptr<const T*>();
}

bool ReadTime(const Json& json, const char* key, absl::Time* time) {
  const std::string* const text = Get<std::string>(json, key);
  return text != nullptr && absl::ParseTime(absl::RFC3339_full, *text, time, nullptr);
}

std::optional<std::pair<int, ResetTries>> FromJson(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto* const id = Get<Json::number_integer_t>(json, "physicalID");
  const auto* const uuid = Get<std::string>(json, "uuid");
  const auto* const codes = Get<Json::array_t>(json, "codes");
  const auto* const count = Get<Json::number_integer_t>(json, "tries");
  const auto* const group = Get<Json::array_t>(json, "group");
  const auto* const outcome = Get<std::string>(json, "outcome");
  const auto* const failed = Get<bool>(json, "failed");
  const auto* const gave_up = Get<bool>(json, "gaveUp");
  if (id == nullptr || uuid == nullptr || codes == nullptr || count == nullptr ||
      group == nullptr || outcome == nullptr || failed == nullptr || gave_up == nullptr) {
    return std::nullopt;
  }
  ResetTries tries = {.uuid = *uuid, .codes = {}, .tries = static_cast<int>(*count)};
  tries.outcome = *outcome;
  tries.failed = *failed;
  tries.gave_up = *gave_up;
  if (!ReadTime(json, "last", &tries.last) || !ReadTime(json, "until", &tries.until)) {
    return std::nullopt;
  }
  for (const Json& code : *codes) {
    uint64_t value = 0;
    if (!code.is_string() || !absl::SimpleHexAtoi(code.get<std::string>(), &value)) {
      return std::nullopt;
    }
    tries.codes.insert(value);
  }
  for (const Json& member : *group) {
    if (!member.is_number_integer()) return std::nullopt;
    tries.group.insert(member.get<int>());
  }
  return std::pair<int, ResetTries>(static_cast<int>(*id), std::move(tries));
}

}  // namespace

std::string ResetText(const ResetTries& tries, int most) {
  if (tries.tries == 0) return "";
  std::string text =
      absl::StrCat("reset ", tries.tries, " of ", most, " at ",
                   absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", tries.last, absl::UTCTimeZone()));
  if (tries.under_way()) return absl::StrCat(text, " is under way");
  absl::StrAppend(&text, tries.failed ? " failed: " : ": ", tries.outcome);
  if (tries.gave_up) absl::StrAppend(&text, "; no more is tried");
  return text;
}

absl::Status WriteResetsFile(const std::string& path, const ResetMemory& memory) {
  Json chips = Json::array();
  for (const auto& [id, tries] : memory) chips.push_back(ToJson(id, tries));
  const Json json = {{"version", 1}, {"chips", std::move(chips)}};
  return WriteFileAtomically(path, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

absl::StatusOr<ResetMemory> ReadResetsFile(const std::string& path) {
  ASCEND_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFile));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto damaged = [&](absl::string_view what) {
    return absl::DataLossError(absl::StrCat(path, ": ", what));
  };
  if (!json.is_object()) return damaged("no JSON object");
  const auto version = json.find("version");
  if (version == json.end() || *version != 1) return damaged("not of version 1");
  const auto* const chips = Get<Json::array_t>(json, "chips");
  if (chips == nullptr) return damaged("\"chips\" is missing");
  ResetMemory memory;
  for (const Json& chip : *chips) {
    auto entry = FromJson(chip);
    if (!entry) return damaged("an entry of \"chips\" tells of no resets");
    memory.insert(*std::move(entry));
  }
  return memory;
}

}  // namespace ascend::kubeletplugin
