#include "kubeletplugin/health/chip_orders.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "nlohmann/json.hpp"

namespace ascend::kubeletplugin {
namespace {

constexpr char kPrefix[] = "chip-";
constexpr size_t kMaxOrderSize = 4096;

std::string FileName(int physical_id) { return absl::StrCat(kPrefix, physical_id); }

std::string ToText(const ChipOrder& order) {
  const nlohmann::ordered_json json = {
      {"action", order.action == ChipOrder::Action::kIsolate ? "isolate" : "release"},
      {"physicalID", order.physical_id},
      {"uuid", order.uuid},
      {"reason", order.reason},
      {"at", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", order.at, absl::UTCTimeZone())}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

absl::StatusOr<ChipOrder> FromText(absl::string_view text, int physical_id) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::DataLossError("no JSON object");
  const auto string = [&](const char* key) -> const std::string* {
    const auto value = json.find(key);
    return value == json.end() ? nullptr : value->get_ptr<const std::string*>();
  };
  const std::string* const action = string("action");
  const std::string* const uuid = string("uuid");
  const std::string* const reason = string("reason");
  const std::string* const at = string("at");
  absl::Time time;
  const auto id = json.find("physicalID");
  if (action == nullptr || (*action != "isolate" && *action != "release") || uuid == nullptr ||
      reason == nullptr || id == json.end() || !id->is_number_integer() || *id != physical_id ||
      at == nullptr || !absl::ParseTime(absl::RFC3339_full, *at, &time, nullptr)) {
    return absl::DataLossError("not an order about this chip");
  }
  ASCEND_RETURN_IF_ERROR(CheckReason(*reason));
  return ChipOrder{
      .action = *action == "isolate" ? ChipOrder::Action::kIsolate : ChipOrder::Action::kRelease,
      .physical_id = physical_id,
      .uuid = *uuid,
      .reason = *reason,
      .at = time};
}

absl::StatusOr<ChipOrder> ReadOrder(const std::string& directory, int physical_id) {
  ASCEND_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(JoinPath(directory, FileName(physical_id)), kMaxOrderSize));
  return FromText(text, physical_id);
}

}  // namespace

absl::Status CheckReason(absl::string_view reason) {
  if (reason.size() > kMaxReason) {
    return absl::InvalidArgumentError(absl::StrCat("the reason has ", reason.size(),
                                                   " bytes, at most ", kMaxReason, " can be kept"));
  }
  if (std::any_of(reason.begin(), reason.end(),
                  [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); })) {
    return absl::InvalidArgumentError("the reason has control characters: use one plain line");
  }
  return absl::OkStatus();
}

absl::Status WriteChipOrder(const std::string& directory, const ChipOrder& order) {
  if (order.physical_id < 0) return absl::InvalidArgumentError("an order needs a chip");
  ASCEND_RETURN_IF_ERROR(CheckReason(order.reason));
  if (order.action == ChipOrder::Action::kIsolate && order.reason.empty()) {
    return absl::InvalidArgumentError("an isolation needs a reason");
  }
  ASCEND_RETURN_IF_ERROR(MakeDirectories(directory, 0700, /*durable=*/true));
  return WriteFileAtomically(JoinPath(directory, FileName(order.physical_id)), ToText(order));
}

absl::StatusOr<ChipOrders> ReadChipOrders(const std::string& directory) {
  ChipOrders result;
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(directory);
  if (absl::IsNotFound(names.status())) return result;
  ASCEND_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    absl::string_view id_text = name;
    int id = -1;
    // Temporary files of a writer begin with a dot.
    if (absl::StartsWith(name, ".")) continue;
    if (!absl::ConsumePrefix(&id_text, kPrefix) || !absl::SimpleAtoi(id_text, &id) || id < 0 ||
        FileName(id) != name) {
      result.problems.push_back(
          absl::StrCat(JoinPath(directory, name), " is no order about a chip: remove it"));
      continue;
    }
    absl::StatusOr<ChipOrder> order = ReadOrder(directory, id);
    if (absl::IsNotFound(order.status())) continue;
    if (!order.ok()) {
      result.problems.push_back(absl::StrCat(JoinPath(directory, name), ": ",
                                             order.status().message(),
                                             ": remove it and give the order again"));
      continue;
    }
    result.orders.push_back(*std::move(order));
  }
  std::sort(result.orders.begin(), result.orders.end(),
            [](const auto& a, const auto& b) { return a.physical_id < b.physical_id; });
  return result;
}

}  // namespace ascend::kubeletplugin
