#include "kubeletplugin/claims/npu_config.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "nlohmann/json.hpp"

namespace ascend::kubeletplugin {
namespace {

using Source = kube::OpaqueConfig::Source;

constexpr char kApiVersion[] = "npu.huawei.com/v1alpha1";
constexpr char kKind[] = "NpuConfig";

std::string Text(const nlohmann::json& value) {
  return value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

absl::Status ExpectString(const nlohmann::json& object, const char* name, const char* expected) {
  const auto it = object.find(name);
  if (it == object.end()) {
    return absl::InvalidArgumentError(absl::StrCat("field ", name, " is missing"));
  }
  if (!it->is_string() || it->get<std::string>() != expected) {
    return absl::InvalidArgumentError(absl::StrCat("field ", name, " is ", Text(*it)));
  }
  return absl::OkStatus();
}

// Sets what the entry sets, and leaves the rest.
absl::Status Apply(const std::string& parameters, NpuConfig* config) {
  const nlohmann::json object = nlohmann::json::parse(parameters, nullptr, false);
  if (!object.is_object()) return absl::InvalidArgumentError("parameters are no JSON object");
  ASCEND_RETURN_IF_ERROR(ExpectString(object, "apiVersion", kApiVersion));
  ASCEND_RETURN_IF_ERROR(ExpectString(object, "kind", kKind));
  for (const auto& [name, value] : object.items()) {
    if (name == "apiVersion" || name == "kind") continue;
    if (name == "sharedUse") {
      if (value != "Warn" && value != "Expected") {
        return absl::InvalidArgumentError(absl::StrCat("field sharedUse is ", Text(value),
                                                       ", neither \"Warn\" nor \"Expected\""));
      }
      config->shared_use_expected = value == "Expected";
    } else {
      return absl::InvalidArgumentError(absl::StrCat("unknown field \"", name, "\""));
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

absl::StatusOr<NpuConfig> NpuConfigFor(const std::vector<kube::OpaqueConfig>& configs,
                                       const std::string& driver,
                                       const kube::DeviceResult& result) {
  NpuConfig merged;
  for (const Source source : {Source::kClass, Source::kClaim}) {
    for (const kube::OpaqueConfig& config : configs) {
      if (config.source != source || config.driver != driver || !Concerns(config, result)) continue;
      if (const absl::Status applied = Apply(config.parameters_json, &merged); !applied.ok()) {
        return Annotate(applied,
                        absl::StrCat("opaque configuration of the ",
                                     source == Source::kClass ? "DeviceClass" : "claim",
                                     " (expected apiVersion ", kApiVersion, ", kind ", kKind, ")"));
      }
    }
  }
  return merged;
}

}  // namespace ascend::kubeletplugin
