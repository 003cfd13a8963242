#include "kubeletplugin/claims/npu_config.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "nlohmann/json.hpp"

namespace ascend::kubeletplugin {
namespace {

constexpr char kApiVersion[] = "npu.huawei.com/v1alpha1";
constexpr char kKind[] = "NpuConfig";

absl::Status Invalid(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("opaque configuration of the claim or its class: ", what,
                   " (expected apiVersion ", kApiVersion, ", kind ", kKind, ")"));
}

absl::Status ExpectString(const nlohmann::json& object, const char* name, const char* expected) {
  const auto it = object.find(name);
  if (it == object.end()) return Invalid(absl::StrCat("field ", name, " is missing"));
  if (!it->is_string() || it->get<std::string>() != expected) {
    return Invalid(absl::StrCat("field ", name, " is ",
                                it->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)));
  }
  return absl::OkStatus();
}

absl::Status CheckParameters(const std::string& text) {
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object()) return Invalid("parameters are no JSON object");
  ASCEND_RETURN_IF_ERROR(ExpectString(object, "apiVersion", kApiVersion));
  ASCEND_RETURN_IF_ERROR(ExpectString(object, "kind", kKind));
  for (const auto& [name, value] : object.items()) {
    if (name != "apiVersion" && name != "kind") {
      return Invalid(absl::StrCat("unknown field \"", name, "\""));
    }
  }
  return absl::OkStatus();
}

// An entry names a request by its base name ("npu") or with the subrequest ("npu/large").
bool Concerns(const kube::OpaqueConfig& config, const kube::DeviceResult& result) {
  if (config.requests.empty()) return true;
  const std::string base = result.request.substr(0, result.request.find('/'));
  return std::any_of(
      config.requests.begin(), config.requests.end(),
      [&](const std::string& request) { return request == base || request == result.request; });
}

}  // namespace

absl::Status CheckNpuConfigs(const std::vector<kube::OpaqueConfig>& configs,
                             const std::string& driver,
                             const std::vector<kube::DeviceResult>& results) {
  for (const kube::OpaqueConfig& config : configs) {
    if (config.driver != driver) continue;
    const bool concerns_us = std::any_of(results.begin(), results.end(), [&](const auto& result) {
      return Concerns(config, result);
    });
    if (!concerns_us) continue;
    ASCEND_RETURN_IF_ERROR(CheckParameters(config.parameters_json));
  }
  return absl::OkStatus();
}

}  // namespace ascend::kubeletplugin
