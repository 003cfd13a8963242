#include "test/sim/slice_validation.h"

#include <algorithm>
#include <iterator>
#include <regex>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/core/status_macros.h"
#include "nlohmann/json.hpp"
#include "test/sim/quantity.h"

namespace ascend::sim {
namespace {

using nlohmann::json;

constexpr size_t kMaxDevices = 128;
constexpr size_t kMaxDevicesWithFeatures = 64;
constexpr size_t kMaxAttributesAndCapacities = 32;
constexpr size_t kMaxTaints = 16;
constexpr size_t kMaxCounterSets = 8;
constexpr size_t kMaxCounters = 32;
constexpr size_t kMaxConsumedSets = 2;
constexpr size_t kMaxBindingConditions = 4;
constexpr size_t kMaxAttributeText = 64;

// The shape of a slice. A string names a type (s string, i integer, b boolean, q quantity, * any),
// an array the type of all elements, and an object with the key "" that of all values.
const json& SliceShape() {
  static const auto* shape = new json(json::parse(R"({
    "apiVersion": "s", "kind": "s",
    "metadata": {"name": "s", "generateName": "s", "uid": "s", "resourceVersion": "s",
                 "generation": "i", "creationTimestamp": "s", "labels": {"": "s"},
                 "annotations": {"": "s"}, "finalizers": ["s"],
                 "ownerReferences": [{"apiVersion": "s", "kind": "s", "name": "s", "uid": "s",
                                      "controller": "b", "blockOwnerDeletion": "b"}]},
    "spec": {
      "driver": "s", "nodeName": "s", "allNodes": "b", "perDeviceNodeSelection": "b",
      "nodeSelector": "*",
      "pool": {"name": "s", "generation": "i", "resourceSliceCount": "i"},
      "sharedCounters": [{"name": "s", "counters": {"": {"value": "q"}}}],
      "devices": [{
        "name": "s",
        "attributes": {"": {"int": "i", "bool": "b", "string": "s", "version": "s"}},
        "capacity": {"": {"value": "q", "requestPolicy": "*"}},
        "consumesCounters": [{"counterSet": "s", "counters": {"": {"value": "q"}}}],
        "nodeName": "s", "allNodes": "b", "nodeSelector": "*",
        "taints": [{"key": "s", "value": "s", "effect": "s", "timeAdded": "s"}],
        "bindsToNode": "b", "bindingConditions": ["s"], "bindingFailureConditions": ["s"],
        "allowMultipleAllocations": "b"}]}})"));
  return *shape;
}

absl::Status Conform(const json& shape, const std::string& path, json* value) {
  const auto wrong = [&](absl::string_view type) {
    return absl::InvalidArgumentError(absl::StrCat("json: cannot unmarshal ", value->type_name(),
                                                   " into Go field ", path.empty() ? "." : path,
                                                   " of type ", type));
  };
  if (shape.is_string()) {
    switch (shape.get_ref<const std::string&>()[0]) {
      case 's':
        return value->is_string() ? absl::OkStatus() : wrong("string");
      case 'i':
        return value->is_number_integer() ? absl::OkStatus() : wrong("int64");
      case 'b':
        return value->is_boolean() ? absl::OkStatus() : wrong("bool");
      case 'q': {
        if (!value->is_string() && !value->is_number()) return wrong("Quantity");
        ASCEND_ASSIGN_OR_RETURN(
            *value,
            CanonicalQuantity(value->is_string() ? value->get<std::string>() : value->dump()),
            path);
        return absl::OkStatus();
      }
      default:
        return absl::OkStatus();
    }
  }
  if (shape.is_array()) {
    if (!value->is_array()) return wrong("slice");
    for (size_t i = 0; i < value->size(); ++i) {
      ASCEND_RETURN_IF_ERROR(Conform(shape[0], absl::StrCat(path, "[", i, "]"), &(*value)[i]));
    }
    return absl::OkStatus();
  }
  if (!value->is_object()) return wrong("struct");
  const bool is_map = shape.contains("");
  for (auto it = value->begin(); it != value->end();) {
    const bool known = is_map || shape.contains(it.key());
    if (!known || it->is_null()) {
      it = value->erase(it);
      continue;
    }
    ASCEND_RETURN_IF_ERROR(Conform(shape.at(is_map ? "" : it.key()),
                                   path.empty() ? it.key() : absl::StrCat(path, ".", it.key()),
                                   &*it));
    // Go's omitempty: an empty list, map or taint value is not stored. Map entries stay.
    const bool empty =
        !is_map && ((it->is_structured() && it->empty()) || (it.key() == "value" && *it == ""));
    it = empty ? value->erase(it) : std::next(it);
  }
  return absl::OkStatus();
}

bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; }

bool IsLabelName(absl::string_view text) {
  return !text.empty() && text.size() <= 63 && absl::ascii_isalnum(text.front()) &&
         absl::ascii_isalnum(text.back()) && absl::c_all_of(text, IsNameCharacter);
}

bool IsLabelKey(absl::string_view text) {
  const size_t slash = text.find('/');
  if (slash == absl::string_view::npos) return IsLabelName(text);
  return IsDnsSubdomain(text.substr(0, slash)) && IsLabelName(text.substr(slash + 1));
}

bool IsIdentifier(absl::string_view text) {
  return !text.empty() && text.size() <= 32 && !absl::ascii_isdigit(text[0]) &&
         absl::c_all_of(text, [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

bool IsSemver(const std::string& text) {
  static const auto* pattern = new std::regex(
      "(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)"
      "(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
      "(\\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
      "(\\+[0-9a-zA-Z-]+(\\.[0-9a-zA-Z-]+)*)?");
  return std::regex_match(text, *pattern);
}

// The member, or an empty object, which also stands for an empty list.
const json& Member(const json& object, const char* key) {
  static const auto* empty = new json(json::object());
  const auto it = object.find(key);
  return it == object.end() ? *empty : *it;
}
std::string Text(const json& object, const char* key) { return object.value(key, std::string()); }

class Validator {
 public:
  explicit Validator(const json& slice) : slice_(slice) {}

  std::vector<Cause> Run(const json* old) {
    const json& metadata = Member(slice_, "metadata");
    const std::string name = Text(metadata, "name");
    if (name.empty()) {
      Required("metadata.name", "name or generateName is required");
    } else if (!IsDnsSubdomain(name)) {
      Invalid("metadata.name", name, "must be a lowercase RFC 1123 subdomain");
    }
    const json& spec = Member(slice_, "spec");
    const std::string driver = Text(spec, "driver");
    if (driver.empty()) {
      Required("spec.driver", "");
    } else if (driver.size() > 63) {
      TooLong("spec.driver", 63);
    } else if (!IsDnsSubdomain(driver)) {
      Invalid("spec.driver", driver, "must be a lowercase RFC 1123 subdomain");
    }
    Pool(Member(spec, "pool"));
    NodeSelection(spec);
    Devices(spec);
    SharedCounters(spec);
    if (old != nullptr) Immutable(spec, Member(*old, "spec"));
    return std::move(causes_);
  }

 private:
  void Add(const char* reason, const std::string& field, std::string message) {
    causes_.push_back({reason, field, std::move(message)});
  }
  void Required(const std::string& field, absl::string_view detail) {
    Add("FieldValueRequired", field,
        absl::StrCat("Required value", detail.empty() ? "" : ": ", detail));
  }
  void Invalid(const std::string& field, const json& value, absl::string_view detail) {
    Add("FieldValueInvalid", field, absl::StrCat("Invalid value: ", value.dump(), ": ", detail));
  }
  void TooLong(const std::string& field, size_t limit) {
    Add("FieldValueTooLong", field,
        absl::StrCat("Too long: may not be more than ", limit, " bytes"));
  }
  void TooMany(const std::string& field, size_t have, size_t limit) {
    Add("FieldValueTooMany", field,
        absl::StrCat("Too many: ", have, ": must have at most ", limit, " items"));
  }
  void Duplicate(const std::string& field, const std::string& value) {
    Add("FieldValueDuplicate", field, absl::StrCat("Duplicate value: \"", value, "\""));
  }
  void DnsLabel(const std::string& field, const std::string& value) {
    if (value.empty()) {
      Required(field, "");
    } else if (!IsDnsLabel(value)) {
      Invalid(field, value, "must be a lowercase RFC 1123 label of at most 63 characters");
    }
  }

  void Pool(const json& pool) {
    const std::string name = Text(pool, "name");
    if (name.empty()) {
      Required("spec.pool.name", "");
    } else if (name.size() > 253) {
      TooLong("spec.pool.name", 253);
    } else {
      for (absl::string_view part : absl::StrSplit(name, '/')) {
        if (!IsDnsSubdomain(part)) {
          Invalid("spec.pool.name", std::string(part), "must be a lowercase RFC 1123 subdomain");
        }
      }
    }
    if (pool.value("resourceSliceCount", int64_t{0}) <= 0) {
      Invalid("spec.pool.resourceSliceCount", Member(pool, "resourceSliceCount"),
              "must be greater than zero");
    }
    if (pool.value("generation", int64_t{0}) < 0) {
      Invalid("spec.pool.generation", pool["generation"], "must be greater than or equal to zero");
    }
  }

  void NodeSelection(const json& spec) {
    const int set = spec.contains("nodeName") + spec.contains("nodeSelector") +
                    spec.value("allNodes", false) + spec.value("perDeviceNodeSelection", false);
    if (set == 0) {
      Required("spec",
               "exactly one of `nodeName`, `nodeSelector`, `allNodes`, "
               "`perDeviceNodeSelection` is required");
    } else if (set > 1) {
      Invalid("spec", nullptr,
              "exactly one of `nodeName`, `nodeSelector`, `allNodes`, "
              "`perDeviceNodeSelection` is required, but multiple fields are set");
    }
    const std::string node = Text(spec, "nodeName");
    if (!node.empty() && !IsDnsSubdomain(node)) {
      Invalid("spec.nodeName", node, "must be a lowercase RFC 1123 subdomain");
    }
  }

  void Devices(const json& spec) {
    const json& devices = Member(spec, "devices");
    const bool featured = absl::c_any_of(devices, [](const json& device) {
      return device.contains("taints") || device.contains("consumesCounters");
    });
    const size_t limit = featured ? kMaxDevicesWithFeatures : kMaxDevices;
    if (devices.size() > limit) TooMany("spec.devices", devices.size(), limit);
    if (!devices.empty() && spec.contains("sharedCounters")) {
      Invalid("spec", nullptr, "only one of `sharedCounters` or `devices` is allowed");
    }
    std::set<std::string> names;
    for (size_t i = 0; i < devices.size(); ++i) {
      const std::string field = absl::StrCat("spec.devices[", i, "]");
      const std::string name = Text(devices[i], "name");
      DnsLabel(field + ".name", name);
      if (!names.insert(name).second) Duplicate(field + ".name", name);
      Device(field, devices[i]);
    }
  }

  void Device(const std::string& field, const json& device) {
    const json& attributes = Member(device, "attributes");
    const json& capacity = Member(device, "capacity");
    if (attributes.size() + capacity.size() > kMaxAttributesAndCapacities) {
      Invalid(field, attributes.size() + capacity.size(),
              absl::StrCat("the total number of attributes and capacities must not exceed ",
                           kMaxAttributesAndCapacities));
    }
    for (const auto& [name, value] : attributes.items()) {
      const std::string path = absl::StrCat(field, ".attributes[", name, "]");
      QualifiedName(path, name);
      Attribute(path, value);
    }
    for (const auto& [name, value] : capacity.items()) {
      const std::string path = absl::StrCat(field, ".capacity[", name, "]");
      QualifiedName(path, name);
      if (!value.contains("value")) Required(path + ".value", "");
      if (value.contains("requestPolicy") && !device.value("allowMultipleAllocations", false)) {
        Add("FieldValueForbidden", path + ".requestPolicy",
            "Forbidden: allowMultipleAllocations must be true");
      }
    }
    ConsumesCounters(field + ".consumesCounters", Member(device, "consumesCounters"));
    Taints(field + ".taints", Member(device, "taints"));
    BindingConditions(field, device);
  }

  void QualifiedName(const std::string& field, const std::string& name) {
    std::string identifier = name;
    const size_t slash = name.find('/');
    if (slash != std::string::npos) {
      const std::string domain = name.substr(0, slash);
      identifier = name.substr(slash + 1);
      if (domain.size() > 63 || !IsDnsSubdomain(domain)) {
        Invalid(field, domain, "the domain must be a DNS subdomain of at most 63 characters");
      }
    }
    if (!IsIdentifier(identifier)) {
      Invalid(field, identifier, "the name must be a C identifier of at most 32 characters");
    }
  }

  void Attribute(const std::string& field, const json& value) {
    if (value.size() != 1) {
      if (value.empty()) {
        Required(field, "exactly one value must be specified");
      } else {
        Invalid(field, value, "exactly one value must be specified");
      }
      return;
    }
    for (const char* key : {"string", "version"}) {
      const std::string text = Text(value, key);
      if (text.size() > kMaxAttributeText) {
        TooLong(absl::StrCat(field, ".", key), kMaxAttributeText);
      } else if (value.contains("version") && *key == 'v' && !IsSemver(text)) {
        Invalid(field + ".version", text, "must be a string compatible with semver.org spec 2.0.0");
      }
    }
  }

  void Counters(const std::string& field, const json& counters) {
    if (counters.empty()) Required(field, "");
    if (counters.size() > kMaxCounters) TooMany(field, counters.size(), kMaxCounters);
    for (const auto& [name, value] : counters.items()) {
      DnsLabel(absl::StrCat(field, "[", name, "]"), name);
      if (!value.contains("value")) Required(absl::StrCat(field, "[", name, "].value"), "");
    }
  }

  void SharedCounters(const json& spec) {
    const json& sets = Member(spec, "sharedCounters");
    if (sets.size() > kMaxCounterSets) {
      TooMany("spec.sharedCounters", sets.size(), kMaxCounterSets);
    }
    std::set<std::string> names;
    for (size_t i = 0; i < sets.size(); ++i) {
      const std::string field = absl::StrCat("spec.sharedCounters[", i, "]");
      const std::string name = Text(sets[i], "name");
      DnsLabel(field + ".name", name);
      if (!names.insert(name).second) Duplicate(field + ".name", name);
      Counters(field + ".counters", Member(sets[i], "counters"));
    }
  }

  void ConsumesCounters(const std::string& field, const json& consumed) {
    if (consumed.size() > kMaxConsumedSets) TooMany(field, consumed.size(), kMaxConsumedSets);
    std::set<std::string> names;
    for (size_t i = 0; i < consumed.size(); ++i) {
      const std::string path = absl::StrCat(field, "[", i, "]");
      const std::string name = Text(consumed[i], "counterSet");
      DnsLabel(path + ".counterSet", name);
      if (!names.insert(name).second) Duplicate(path + ".counterSet", name);
      Counters(path + ".counters", Member(consumed[i], "counters"));
    }
  }

  void Taints(const std::string& field, const json& taints) {
    if (taints.size() > kMaxTaints) TooMany(field, taints.size(), kMaxTaints);
    for (size_t i = 0; i < taints.size(); ++i) {
      const std::string path = absl::StrCat(field, "[", i, "]");
      const std::string key = Text(taints[i], "key");
      if (key.empty()) {
        Required(path + ".key", "");
      } else if (!IsLabelKey(key)) {
        Invalid(path + ".key", key, "must be a label name");
      }
      const std::string value = Text(taints[i], "value");
      if (!value.empty() && !IsLabelName(value)) {
        Invalid(path + ".value", value, "must be a label value");
      }
      const std::string effect = Text(taints[i], "effect");
      if (effect.empty()) {
        Required(path + ".effect", "");
      } else if (effect != "None" && effect != "NoSchedule" && effect != "NoExecute") {
        Add("FieldValueNotSupported", path + ".effect",
            absl::StrCat("Unsupported value: \"", effect,
                         "\": supported values: \"NoExecute\", \"NoSchedule\", \"None\""));
      }
    }
  }

  void BindingConditions(const std::string& field, const json& device) {
    const json& good = Member(device, "bindingConditions");
    const json& bad = Member(device, "bindingFailureConditions");
    if (good.empty() != bad.empty()) {
      Invalid(field, nullptr,
              "bindingConditions and bindingFailureConditions are required together");
    }
    for (const char* key : {"bindingConditions", "bindingFailureConditions"}) {
      const json& list = Member(device, key);
      const std::string path = absl::StrCat(field, ".", key);
      if (list.size() > kMaxBindingConditions) {
        TooMany(path, list.size(), kMaxBindingConditions);
      }
      for (const json& name : list) {
        if (!IsLabelKey(name.get<std::string>())) Invalid(path, name, "must be a label name");
      }
    }
    for (const json& name : good) {
      if (absl::c_linear_search(bad, name)) {
        Invalid(field + ".bindingFailureConditions", name,
                "bindingFailureConditions must not overlap with bindingConditions");
      }
    }
  }

  void Immutable(const json& spec, const json& old) {
    const auto check = [&](const std::string& field, const json& now, const json& before) {
      if (now != before) Invalid(field, now, "field is immutable");
    };
    check("spec.driver", Member(spec, "driver"), Member(old, "driver"));
    check("spec.nodeName", Member(spec, "nodeName"), Member(old, "nodeName"));
    check("spec.pool.name", Member(Member(spec, "pool"), "name"),
          Member(Member(old, "pool"), "name"));
  }

  const json& slice_;
  std::vector<Cause> causes_;
};

}  // namespace

bool IsDnsLabel(absl::string_view text) {
  const auto is_alnum = [](char c) { return absl::ascii_isdigit(c) || absl::ascii_islower(c); };
  return !text.empty() && text.size() <= 63 && is_alnum(text.front()) && is_alnum(text.back()) &&
         absl::c_all_of(text, [&](char c) { return is_alnum(c) || c == '-'; });
}

bool IsDnsSubdomain(absl::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  const std::vector<absl::string_view> labels = absl::StrSplit(text, '.');
  // A label of a subdomain has no length limit of its own; long ones still are rare enough to be
  // treated alike.
  return absl::c_all_of(labels, IsDnsLabel);
}

absl::Status DecodeSlice(absl::string_view now, json* slice) {
  ASCEND_RETURN_IF_ERROR(Conform(SliceShape(), "", slice));
  if (!slice->contains("spec") || !(*slice)["spec"].contains("devices")) return absl::OkStatus();
  for (json& device : (*slice)["spec"]["devices"]) {
    if (!device.contains("taints")) continue;
    for (json& taint : device["taints"]) {
      if (!taint.contains("timeAdded")) taint["timeAdded"] = std::string(now);
    }
  }
  return absl::OkStatus();
}

void DropTaints(json* slice) {
  if (!(*slice)["spec"].contains("devices")) return;
  for (json& device : (*slice)["spec"]["devices"]) device.erase("taints");
}

void DropCounters(json* slice) {
  (*slice)["spec"].erase("sharedCounters");
  if (!(*slice)["spec"].contains("devices")) return;
  for (json& device : (*slice)["spec"]["devices"]) device.erase("consumesCounters");
}

std::vector<Cause> ValidateSlice(const json& slice, const json* old) {
  return Validator(slice).Run(old);
}

}  // namespace ascend::sim
