#include "kubeletplugin/kube/device_status.h"

#include "nlohmann/json.hpp"

namespace ascend::kube {
namespace {

const char* Text(ConditionStatus status) {
  switch (status) {
    case ConditionStatus::kTrue:
      return "True";
    case ConditionStatus::kFalse:
      return "False";
    case ConditionStatus::kUnknown:
      break;
  }
  return "Unknown";
}

}  // namespace

nlohmann::json ToJson(const DeviceStatus& status) {
  nlohmann::json json = {
      {"driver", status.driver}, {"pool", status.pool}, {"device", status.device}};
  if (!status.share_id.empty()) json["shareID"] = status.share_id;
  for (const Condition& condition : status.conditions) {
    json["conditions"].push_back({{"type", condition.type},
                                  {"status", Text(condition.status)},
                                  {"reason", condition.reason},
                                  {"message", condition.message},
                                  {"lastTransitionTime", condition.last_transition_time}});
  }
  if (!status.data_json.empty()) {
    json["data"] = nlohmann::json::parse(status.data_json, nullptr, /*allow_exceptions=*/false);
  }
  if (!status.ips.empty()) json["networkData"] = {{"ips", status.ips}};
  return json;
}

}  // namespace ascend::kube
