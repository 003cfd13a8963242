#include "kubeletplugin/config.h"

#include <yaml-cpp/yaml.h>

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

// One of the names, by its position.
template <typename T>
absl::StatusOr<T> Choice(const YAML::Node& node, const std::string& key,
                         const std::vector<std::pair<std::string, T>>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) {
    if (node.IsScalar() && node.Scalar() == name) return value;
    names.push_back(name);
  }
  return Invalid(node, absl::StrCat(key, " must be ", absl::StrJoin(names, " or ")));
}

absl::StatusOr<bool> ApplyVnpuSetting(const std::string& key, const YAML::Node& value,
                                      DriverConfig* config) {
  DeviceOptions& devices = config->devices;
  if (key == "vnpuMode") {
    ASCEND_ASSIGN_OR_RETURN(devices.vnpu_mode, Choice<VnpuMode>(value, key,
                                                                {{"off", VnpuMode::kOff},
                                                                 {"static", VnpuMode::kStatic},
                                                                 {"dynamic", VnpuMode::kDynamic}}));
    return true;
  }
  if (key == "a3Unit") {
    ASCEND_ASSIGN_OR_RETURN(
        devices.a3_unit,
        Choice<A3Unit>(value, key, {{"module", A3Unit::kModule}, {"die", A3Unit::kDie}}));
    return true;
  }
  if (key == "vnpuTemplates") {
    if (!value.IsSequence()) return Invalid(value, "vnpuTemplates must be a list of names");
    devices.vnpu_templates.emplace();
    for (const YAML::Node& item : value) {
      ASCEND_ASSIGN_OR_RETURN(std::string name,
                              Value<std::string>(item, "vnpuTemplates[]", "a template's name"));
      devices.vnpu_templates->insert(std::move(name));
    }
    return true;
  }
  if (key == "vnpuOnA3") {
    ASCEND_ASSIGN_OR_RETURN(devices.vnpus_on_a3, Value<bool>(value, key, "true or false"));
    return true;
  }
  if (key == "vnpuChangeNodeModes") {
    ASCEND_ASSIGN_OR_RETURN(config->vnpu_change_node_modes,
                            Value<bool>(value, key, "true or false"));
    return true;
  }
  if (key == "vnpuCatalog") {
    absl::StatusOr<vnpu::Catalog> catalog = vnpu::Catalog::WithOverrides(YAML::Dump(value));
    // The lines that it names count from the beginning of the list.
    if (!catalog.ok()) {
      return Invalid(value, absl::StrCat("vnpuCatalog: ", catalog.status().message()));
    }
    devices.catalog = std::make_shared<const vnpu::Catalog>(*std::move(catalog));
    return true;
  }
  return false;
}

absl::Status ApplyHealth(const YAML::Node& map, DriverConfig* config) {
  ASCEND_RETURN_IF_ERROR(CheckKeys(map, "health"));
  vnpu::FaultTable faults = vnpu::FaultTable::BuiltIn();
  // First the table, whatever the order: who may be evicted is said on top of it.
  if (const YAML::Node table = map["faultTable"]; table.IsDefined()) {
    absl::StatusOr<vnpu::FaultTable> changed = vnpu::FaultTable::WithOverrides(YAML::Dump(table));
    // The lines that it names count from the beginning of the mapping.
    if (!changed.ok()) {
      return Invalid(table, absl::StrCat("health.faultTable: ", changed.status().message()));
    }
    faults = *std::move(changed);
  }
  config->reset_idle_chips = false;
  for (const auto& entry : map) {
    const std::string key = entry.first.Scalar();
    const YAML::Node& value = entry.second;
    if (key == "faultTable") continue;
    if (key == "reset") {
      ASCEND_ASSIGN_OR_RETURN(
          config->reset_idle_chips,
          Choice<bool>(value, "health.reset", {{"off", false}, {"idle", true}}));
      continue;
    }
    if (key != "evictOn") return Invalid(entry.first, absl::StrCat("unknown key health.", key));
    if (!value.IsSequence()) return Invalid(value, "health.evictOn must be a list of levels");
    for (const YAML::Node& item : value) {
      ASCEND_ASSIGN_OR_RETURN(const std::string level,
                              Value<std::string>(item, "health.evictOn[]", "a level's name"));
      if (absl::Status status = faults.EvictOn(level); !status.ok()) {
        return Invalid(item, absl::StrCat("health.evictOn: ", status.message()));
      }
    }
  }
  config->faults = std::move(faults);
  return absl::OkStatus();
}

// True if `key` is one of the settings, false if it is none.
absl::StatusOr<bool> ApplySetting(const std::string& key, const YAML::Node& value,
                                  DriverConfig* config) {
  if (key == "excludedChips") {
    if (!value.IsSequence()) return Invalid(value, "excludedChips must be a list of physical ids");
    config->devices.excluded_chips.clear();
    for (const YAML::Node& item : value) {
      ASCEND_ASSIGN_OR_RETURN(const int id, Value<int>(item, "excludedChips[]", "a physical id"));
      if (id < 0) return Invalid(item, "excludedChips[] must not be negative");
      config->devices.excluded_chips.insert(id);
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
  if (key == "health") {
    ASCEND_RETURN_IF_ERROR(ApplyHealth(value, config));
    return true;
  }
  return ApplyVnpuSetting(key, value, config);
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

// A name that no product has would silently offer less than was meant.
absl::Status CheckTemplates(const DeviceOptions& devices) {
  if (!devices.vnpu_templates) return absl::OkStatus();
  const vnpu::Catalog& catalog =
      devices.catalog != nullptr ? *devices.catalog : vnpu::Catalog::BuiltIn();
  for (const std::string& name : *devices.vnpu_templates) {
    bool known = false;
    for (const vnpu::Product& product : catalog.products()) {
      for (const vnpu::Template& kind : product.templates) known = known || kind.name == name;
    }
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat("vnpuTemplates: ", name, " is a template of no product"));
    }
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
  ASCEND_RETURN_IF_ERROR(CheckTemplates(config.devices));
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
