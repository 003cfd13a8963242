#include "kubeletplugin/slices/limits.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/core/status_macros.h"
#include "cdi/text.h"

namespace ascend::kubeletplugin {
namespace {

bool IsAlnumLower(char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); }

bool IsLabelText(absl::string_view text) {
  return !text.empty() && IsAlnumLower(text.front()) && IsAlnumLower(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return IsAlnumLower(c) || c == '-'; });
}

bool IsDnsLabel(absl::string_view text) { return text.size() <= 63 && IsLabelText(text); }

// As Kubernetes sees it: only the whole has a limit, its labels may be longer than 63.
bool IsDnsSubdomain(absl::string_view text, size_t limit) {
  if (text.empty() || text.size() > limit) return false;
  for (const absl::string_view label : absl::StrSplit(text, '.')) {
    if (!IsLabelText(label)) return false;
  }
  return true;
}

bool IsIdentifier(absl::string_view text) {
  if (text.empty() || text.size() > kMaxIdentifier) return false;
  if (!absl::ascii_isalpha(text.front()) && text.front() != '_') return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

// "name" or "domain/name"
bool IsQualifiedName(absl::string_view text) {
  const size_t slash = text.find('/');
  if (slash == absl::string_view::npos) return IsIdentifier(text);
  return IsDnsSubdomain(text.substr(0, slash), kMaxDomain) && IsIdentifier(text.substr(slash + 1));
}

bool IsLabelValue(absl::string_view text) {
  if (text.empty()) return true;
  return text.size() <= 63 && absl::ascii_isalnum(text.front()) &&
         absl::ascii_isalnum(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
         });
}

bool IsLabelKey(absl::string_view text) {
  const size_t slash = text.find('/');
  if (slash == absl::string_view::npos) return !text.empty() && IsLabelValue(text);
  return IsDnsSubdomain(text.substr(0, slash), 253) && slash + 1 < text.size() &&
         IsLabelValue(text.substr(slash + 1));
}

// At most 18 of them.
bool IsDigits(absl::string_view text) {
  return !text.empty() && text.size() <= 18 &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

bool IsUnit(absl::string_view text) {
  if (text.size() == 2) return text[1] == 'i' && absl::StrContains("KMGTPE", text[0]);
  return text.size() == 1 && absl::StrContains("mkMGTPE", text[0]);
}

// A number with an optional unit, the forms this driver has a use for: "20", "64Gi", "1.5k".
bool IsQuantity(absl::string_view text) {
  const size_t unit = text.find_first_not_of("0123456789.");
  if (unit != absl::string_view::npos && !IsUnit(text.substr(unit))) return false;
  const absl::string_view number = text.substr(0, unit);
  const size_t point = number.find('.');
  if (point == absl::string_view::npos) return IsDigits(number);
  return IsDigits(number.substr(0, point)) && IsDigits(number.substr(point + 1));
}

absl::Status Invalid(const kube::SliceDevice& device, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("device ", device.name, ": ", what));
}

bool IsNumericIdentifier(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         (text.size() == 1 || text.front() != '0');
}

bool IsVersionIdentifier(absl::string_view text, bool numbers_without_leading_zero) {
  if (text.empty()) return false;
  if (!std::all_of(text.begin(), text.end(),
                   [](char c) { return absl::ascii_isalnum(c) || c == '-'; })) {
    return false;
  }
  const bool number = std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  return !number || !numbers_without_leading_zero || IsNumericIdentifier(text);
}

}  // namespace

bool IsStrictSemver(absl::string_view text) {
  const auto identifiers_ok = [](absl::string_view list, bool strict) {
    const std::vector<absl::string_view> parts = absl::StrSplit(list, '.');
    return std::all_of(parts.begin(), parts.end(),
                       [&](absl::string_view part) { return IsVersionIdentifier(part, strict); });
  };
  if (const size_t plus = text.find('+'); plus != absl::string_view::npos) {
    if (!identifiers_ok(text.substr(plus + 1), false)) return false;
    text = text.substr(0, plus);
  }
  if (const size_t dash = text.find('-'); dash != absl::string_view::npos) {
    if (!identifiers_ok(text.substr(dash + 1), true)) return false;
    text = text.substr(0, dash);
  }
  const std::vector<absl::string_view> numbers = absl::StrSplit(text, '.');
  return numbers.size() == 3 && std::all_of(numbers.begin(), numbers.end(), IsNumericIdentifier);
}

absl::Status CheckCounterSet(const kube::CounterSet& set) {
  if (!IsDnsLabel(set.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("counter set name \"", set.name, "\" is no DNS label"));
  }
  if (set.counters.empty() || set.counters.size() > kMaxCountersPerSet) {
    return absl::InvalidArgumentError(absl::StrCat("counter set ", set.name, " needs 1 to ",
                                                   kMaxCountersPerSet, " counters, it has ",
                                                   set.counters.size()));
  }
  for (const auto& [name, quantity] : set.counters) {
    if (!IsDnsLabel(name) || !IsQuantity(quantity)) {
      return absl::InvalidArgumentError(absl::StrCat("counter set ", set.name, ": counter ", name,
                                                     " = \"", quantity, "\" is not acceptable"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDevice(const kube::SliceDevice& device) {
  if (!IsDnsLabel(device.name)) return Invalid(device, "the name is no DNS label");
  if (device.attributes.size() + device.capacity.size() > kMaxAttributesAndCapacities) {
    return Invalid(device, absl::StrCat("more than ", kMaxAttributesAndCapacities,
                                        " attributes and capacities"));
  }
  for (const auto& [name, value] : device.attributes) {
    if (!IsQualifiedName(name)) {
      return Invalid(device, absl::StrCat("attribute name \"", name, "\" is not acceptable"));
    }
    const auto* text = std::get_if<std::string>(&value);
    // Nothing else survives the way to the server and back.
    if (text != nullptr && !cdi::IsValidUtf8(*text)) {
      return Invalid(device, absl::StrCat("attribute ", name, " is not UTF-8"));
    }
    if (text != nullptr && text->size() > kMaxAttributeString) {
      return Invalid(device, absl::StrCat("attribute ", name, " is longer than ",
                                          kMaxAttributeString, " bytes"));
    }
    if (const auto* version = std::get_if<kube::Version>(&value);
        version != nullptr &&
        (version->value.size() > kMaxAttributeString || !IsStrictSemver(version->value))) {
      return Invalid(device, absl::StrCat("attribute ", name, " \"", version->value,
                                          "\" is no semantic version of at most ",
                                          kMaxAttributeString, " bytes"));
    }
  }
  for (const auto& [name, quantity] : device.capacity) {
    if (!IsQualifiedName(name)) {
      return Invalid(device, absl::StrCat("capacity name \"", name, "\" is not acceptable"));
    }
    if (!IsQuantity(quantity)) {
      return Invalid(device, absl::StrCat("capacity ", name, " \"", quantity, "\" is no quantity"));
    }
  }
  if (device.consumes_counters.size() > kMaxConsumedSets) {
    return Invalid(device,
                   absl::StrCat("it consumes more than ", kMaxConsumedSets, " counter sets"));
  }
  for (const kube::CounterSet& set : device.consumes_counters) {
    if (absl::Status status = CheckCounterSet(set); !status.ok()) {
      return Invalid(device, status.message());
    }
  }
  if (device.taints.size() > kMaxTaints) {
    return Invalid(device, absl::StrCat("more than ", kMaxTaints, " taints"));
  }
  for (const kube::DeviceTaint& taint : device.taints) {
    if (!IsLabelKey(taint.key) || !IsLabelValue(taint.value)) {
      return Invalid(device, absl::StrCat("taint ", taint.key, "=", taint.value,
                                          " is no label key and value"));
    }
    if (taint.effect != "None" && taint.effect != "NoSchedule" && taint.effect != "NoExecute") {
      return Invalid(device, absl::StrCat("taint effect \"", taint.effect, "\" is unknown"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSlice(const kube::ResourceSlice& slice) {
  if (!IsDnsSubdomain(slice.driver, kMaxDriverName)) {
    return absl::InvalidArgumentError(absl::StrCat("driver name \"", slice.driver,
                                                   "\" is no DNS subdomain of at most ",
                                                   kMaxDriverName, " characters"));
  }
  for (const auto& [what, name] :
       {std::pair<absl::string_view, const std::string&>("slice name", slice.name),
        {"node name", slice.node_name}}) {
    if (!IsDnsSubdomain(name, kMaxObjectName)) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, " \"", name, "\" is no DNS subdomain of at most ", kMaxObjectName, " characters"));
    }
  }
  const std::vector<absl::string_view> pool_parts = absl::StrSplit(slice.pool_name, '/');
  if (slice.pool_name.size() > kMaxObjectName ||
      !std::all_of(pool_parts.begin(), pool_parts.end(),
                   [](absl::string_view part) { return IsDnsSubdomain(part, kMaxObjectName); })) {
    return absl::InvalidArgumentError(
        absl::StrCat("pool name \"", slice.pool_name, "\" is not acceptable"));
  }
  if (slice.devices.size() > kMaxDevicesPerSlice) {
    return absl::InvalidArgumentError(
        absl::StrCat("slice ", slice.name, " has more than ", kMaxDevicesPerSlice, " devices"));
  }
  if (!slice.shared_counters.empty() && !slice.devices.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("slice ", slice.name, " has both devices and counter sets"));
  }
  if (slice.shared_counters.size() > kMaxCounterSetsPerSlice) {
    return absl::InvalidArgumentError(absl::StrCat("slice ", slice.name, " has more than ",
                                                   kMaxCounterSetsPerSlice, " counter sets"));
  }
  std::set<std::string> names;
  for (const kube::CounterSet& set : slice.shared_counters) {
    ASCEND_RETURN_IF_ERROR(CheckCounterSet(set));
    if (!names.insert(set.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("counter set ", set.name, " appears twice in slice ", slice.name));
    }
  }
  for (const kube::SliceDevice& device : slice.devices) {
    ASCEND_RETURN_IF_ERROR(CheckDevice(device));
    if (!names.insert(device.name).second) return Invalid(device, "the name is used twice");
  }
  return absl::OkStatus();
}

}  // namespace ascend::kubeletplugin
