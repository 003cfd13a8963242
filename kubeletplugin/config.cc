#include "kubeletplugin/config.h"

#include <yaml-cpp/yaml.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"

namespace ascend::kubeletplugin {
namespace {

constexpr char kApiVersion[] = "npu.huawei.com/v1alpha1";
constexpr char kKind[] = "DriverConfig";

absl::Status Invalid(const YAML::Node& node, absl::string_view what) {
  const int line = node.Mark().line;
  return absl::InvalidArgumentError(line >= 0 ? absl::StrCat("line ", line + 1, ": ", what)
                                              : std::string(what));
}

template <typename T>
absl::StatusOr<T> Value(const YAML::Node& node, const std::string& key, absl::string_view type) {
  T value{};
  if (!node.IsScalar() || !YAML::convert<T>::decode(node, value)) {
    return Invalid(node, absl::StrCat(key, " must be ", type));
  }
  return value;
}

// yaml-cpp keeps the first of two equal keys; that is a mistake nobody should have to find.
absl::Status CheckKeys(const YAML::Node& map, absl::string_view where) {
  if (!map.IsMap()) return Invalid(map, absl::StrCat(where, " must be a mapping"));
  std::set<std::string> seen;
  for (const auto& entry : map) {
    if (!entry.first.IsScalar()) return Invalid(entry.first, "keys must be strings");
    if (!seen.insert(entry.first.Scalar()).second) {
      return Invalid(entry.first, absl::StrCat("key ", entry.first.Scalar(), " appears twice"));
    }
  }
  return absl::OkStatus();
}

// True if `key` is one of the settings, false if it is none.
absl::StatusOr<bool> ApplySetting(const std::string& key, const YAML::Node& value,
                                  DriverConfig* config) {
  if (key == "excludedChips") {
    if (!value.IsSequence()) return Invalid(value, "excludedChips must be a list of physical ids");
    config->excluded_chips.clear();
    for (const YAML::Node& item : value) {
      ASCEND_ASSIGN_OR_RETURN(const int id, Value<int>(item, "excludedChips[]", "a physical id"));
      if (id < 0) return Invalid(item, "excludedChips[] must not be negative");
      config->excluded_chips.insert(id);
    }
    return true;
  }
  if (key == "ascendVisibleDevicesVoid") {
    ASCEND_ASSIGN_OR_RETURN(config->ascend_visible_devices_void,
                            Value<bool>(value, key, "true or false"));
    return true;
  }
  if (key == "extraMounts") {
    if (!value.IsSequence()) return Invalid(value, "extraMounts must be a list of paths");
    config->extra_mounts.clear();
    for (const YAML::Node& item : value) {
      ASCEND_ASSIGN_OR_RETURN(std::string path,
                              Value<std::string>(item, "extraMounts[]", "a path"));
      if (!absl::StartsWith(path, "/") || absl::StrContains(path, "..")) {
        return Invalid(item, absl::StrCat("extraMounts[] \"", path, "\" must be an absolute path"));
      }
      config->extra_mounts.push_back(std::move(path));
    }
    return true;
  }
  return false;
}

absl::Status ApplySettings(const YAML::Node& map, absl::string_view where, DriverConfig* config) {
  ASCEND_RETURN_IF_ERROR(CheckKeys(map, where));
  for (const auto& entry : map) {
    const std::string key = entry.first.Scalar();
    ASCEND_ASSIGN_OR_RETURN(const bool known, ApplySetting(key, entry.second, config));
    if (!known) return Invalid(entry.first, absl::StrCat("unknown key ", where, ".", key));
  }
  return absl::OkStatus();
}

absl::StatusOr<DriverConfig> Read(const YAML::Node& root, const std::string& node_name) {
  ASCEND_RETURN_IF_ERROR(CheckKeys(root, "the file"));
  DriverConfig config;
  YAML::Node of_this_node;
  bool api_version = false, kind = false;
  for (const auto& entry : root) {
    const std::string key = entry.first.Scalar();
    const YAML::Node& value = entry.second;
    if (key == "apiVersion" || key == "kind") {
      const char* expected = key == "kind" ? kKind : kApiVersion;
      if (!value.IsScalar() || value.Scalar() != expected) {
        return Invalid(value, absl::StrCat(key, " must be ", expected));
      }
      (key == "kind" ? kind : api_version) = true;
      continue;
    }
    if (key == "nodes") {
      ASCEND_RETURN_IF_ERROR(CheckKeys(value, "nodes"));
      for (const auto& node : value) {
        DriverConfig ignored;  // a mistake in another node's part is a mistake here too
        ASCEND_RETURN_IF_ERROR(
            ApplySettings(node.second, absl::StrCat("nodes.", node.first.Scalar()), &ignored));
        if (node.first.Scalar() == node_name) of_this_node.reset(node.second);
      }
      continue;
    }
    ASCEND_ASSIGN_OR_RETURN(const bool known, ApplySetting(key, value, &config));
    if (!known) return Invalid(entry.first, absl::StrCat("unknown key ", key));
  }
  if (!api_version || !kind) {
    return absl::InvalidArgumentError(
        absl::StrCat("apiVersion: ", kApiVersion, " and kind: ", kKind, " are required"));
  }
  if (of_this_node.IsMap()) {
    ASCEND_RETURN_IF_ERROR(ApplySettings(of_this_node, absl::StrCat("nodes.", node_name), &config));
  }
  return config;
}

}  // namespace

absl::StatusOr<DriverConfig> ParseDriverConfig(absl::string_view yaml,
                                               const std::string& node_name) {
  try {
    return Read(YAML::Load(std::string(yaml)), node_name);
  } catch (const YAML::Exception& error) {  // yaml-cpp has no other way to report
    return absl::InvalidArgumentError(absl::StrCat("not valid YAML: ", error.what()));
  }
}

}  // namespace ascend::kubeletplugin
