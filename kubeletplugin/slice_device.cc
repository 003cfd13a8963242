#include "kubeletplugin/slice_device.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "vnpu/resources.h"

namespace ascend::kubeletplugin {
namespace {

using Attributes = std::map<std::string, kube::AttributeValue>;
using Capacity = std::map<std::string, std::string>;
using Chips = std::vector<const vnpu::Chip*>;

constexpr size_t kMaxAttributeString = 64;

// The API takes at most 64 bytes of valid UTF-8. Names of hardware are ASCII in practice: anything
// else becomes '?', so no cut can split a character.
std::string AttributeString(absl::string_view text) {
  std::string result(absl::StripAsciiWhitespace(text).substr(0, kMaxAttributeString));
  for (char& c : result) {
    if (!absl::ascii_isprint(c)) c = '?';
  }
  return result;
}

void SetString(Attributes* attributes, const char* name, absl::string_view value) {
  std::string text = AttributeString(value);
  if (!text.empty()) (*attributes)[name] = std::move(text);
}

// Canonical form: the API server prints 65536Mi as 64Gi, and a difference would look like an edit.
std::string MemoryQuantity(int64_t mebibytes) {
  if (mebibytes % 1024 == 0) return absl::StrCat(mebibytes / 1024, "Gi");
  return absl::StrCat(mebibytes, "Mi");
}

// Values of both dies if they agree, joined by '+' if not.
template <typename Get>
std::string Joined(const Chips& chips, Get get) {
  std::vector<std::string> values;
  for (const vnpu::Chip* chip : chips) {
    std::string value = get(*chip);
    if (value.empty()) return "";
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return absl::StrJoin(values, "+");
}

// What does not depend on how much of the chips the device is.
Attributes AttributesOf(const Chips& chips) {
  const vnpu::Chip& first = *chips.front();
  Attributes attributes;
  SetString(&attributes, "family", vnpu::FamilyName(first.family));
  SetString(&attributes, "model", first.model);
  SetString(&attributes, "serial", Joined(chips, [](const auto& c) { return c.serial; }));
  attributes["physicalID"] = int64_t{first.physical_id};
  attributes["cardID"] = int64_t{first.card_id};
  if (first.board_id != 0) attributes["boardID"] = int64_t{first.board_id};
  SetString(&attributes, "hccsGroup", first.hccs_group);
  SetString(&attributes, "module", first.module);
  if (first.super_pod_id) attributes["superPodID"] = *first.super_pod_id;
  if (first.super_pod_server) attributes["superPodServer"] = *first.super_pod_server;

  const bool same_numa = std::all_of(chips.begin(), chips.end(), [&](const auto* chip) {
    return chip->numa_node == first.numa_node;
  });
  if (same_numa && first.numa_node && *first.numa_node >= 0 && *first.numa_node <= 1023) {
    attributes["resource.kubernetes.io/numaNode"] = int64_t{*first.numa_node};
  }
  const bool same_root = std::all_of(chips.begin(), chips.end(), [&](const auto* chip) {
    return chip->pcie_root == first.pcie_root;
  });
  if (same_root) SetString(&attributes, "resource.kubernetes.io/pcieRoot", first.pcie_root);
  SetString(&attributes, "resource.kubernetes.io/pciBusID", first.pci_bus_id);
  return attributes;
}

Attributes VersionsOf(const vnpu::Inventory& inventory) {
  Attributes attributes;
  SetString(&attributes, "driverVersionString", inventory.driver_version);
  if (std::string version = NormalizeVersion(inventory.driver_version); !version.empty()) {
    attributes["driverVersion"] = kube::Version{std::move(version)};
  }
  SetString(&attributes, "firmwareVersion", inventory.firmware_version);
  return attributes;
}

Capacity CapacityOf(const Partition& partition) {
  Capacity capacity;
  for (const vnpu::Resource resource : vnpu::kResources) {
    const int64_t amount = partition.kind.amounts[resource];
    if (amount <= 0) continue;
    capacity[std::string(vnpu::ResourceName(resource))] =
        resource == vnpu::Resource::kMemory ? MemoryQuantity(amount) : absl::StrCat(amount);
  }
  return capacity;
}

Capacity CapacityOf(const Chips& chips) {
  int64_t memory = 0, aicore = 0, aicpu = 0;
  bool memory_known = true, aicore_known = true, aicpu_known = true;
  for (const vnpu::Chip* chip : chips) {
    memory += chip->memory_mib;
    aicore += chip->aicore_count;
    aicpu += chip->aicpu_count;
    memory_known = memory_known && chip->memory_mib > 0;
    aicore_known = aicore_known && chip->aicore_count > 0;
    aicpu_known = aicpu_known && chip->aicpu_count > 0;
  }
  Capacity capacity;
  if (memory_known) capacity["memory"] = MemoryQuantity(memory);
  if (aicore_known) capacity["aicore"] = absl::StrCat(aicore);
  if (aicpu_known) capacity["aicpu"] = absl::StrCat(aicpu);
  return capacity;
}

}  // namespace

std::string CounterSetName(int physical_id) { return absl::StrCat("npu-", physical_id); }

kube::CounterValues ToCounterValues(const vnpu::Counters& counters) {
  kube::CounterValues values;
  for (const auto& [name, value] : counters) {
    values[name] = name == vnpu::ResourceName(vnpu::Resource::kMemory) ? MemoryQuantity(value)
                                                                       : absl::StrCat(value);
  }
  return values;
}

kube::CounterSet ToCounterSet(int physical_id, const vnpu::Counters& counters) {
  return {.name = CounterSetName(physical_id), .counters = ToCounterValues(counters)};
}

std::string NormalizeVersion(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (!text.empty() && (text.front() == 'v' || text.front() == 'V')) text.remove_prefix(1);
  std::vector<std::string> numbers, rest;
  for (absl::string_view part : absl::StrSplit(text, absl::ByAnyChar(".-_+"))) {
    uint64_t number;
    if (rest.empty() && numbers.size() < 3 && !part.empty() &&
        std::all_of(part.begin(), part.end(), absl::ascii_isdigit) &&
        absl::SimpleAtoi(part, &number)) {
      numbers.push_back(absl::StrCat(number));  // no leading zeros
      continue;
    }
    std::string identifier;
    for (const char c : part) {
      if (!absl::ascii_isalnum(c)) return "";
      identifier.push_back(c);
    }
    if (identifier.empty()) return "";
    // A numeric pre-release identifier must fit into 64 bits for the API server, and have no
    // leading zeros either.
    if (std::all_of(identifier.begin(), identifier.end(), absl::ascii_isdigit)) {
      uint64_t value;
      if (!absl::SimpleAtoi(identifier, &value)) return "";
      identifier = absl::StrCat(value);
    }
    rest.push_back(std::move(identifier));
  }
  if (numbers.empty()) return "";
  while (numbers.size() < 3) numbers.push_back("0");
  std::string version = absl::StrJoin(numbers, ".");
  if (!rest.empty()) absl::StrAppend(&version, "-", absl::StrJoin(rest, "."));
  return version.size() <= kMaxAttributeString ? version : "";
}

SliceDeviceMaker::SliceDeviceMaker(const vnpu::Inventory& inventory)
    : versions_(VersionsOf(inventory)) {}

kube::SliceDevice SliceDeviceMaker::Make(const NpuDevice& device) {
  if (device.chips != chips_) {
    chips_ = device.chips;
    common_ = AttributesOf(chips_);
    common_.insert(versions_.begin(), versions_.end());
  }
  kube::SliceDevice result = {.name = device.name,
                              .attributes = common_,
                              .capacity = {},
                              .consumes_counters = device.consumes,
                              .taints = {}};
  Attributes& attributes = result.attributes;
  if (device.partition) {
    SetString(&attributes, "type", "vnpu");
    SetString(&attributes, "template", device.partition->kind.name);
    SetString(&attributes, "parentUUID", chips_.front()->uuid);
    result.capacity = CapacityOf(*device.partition);
    return result;
  }
  SetString(&attributes, "type", "npu");
  // Two die ids do not fit into 64 bytes.
  if (chips_.size() == 1) SetString(&attributes, "uuid", chips_.front()->uuid);
  result.capacity = CapacityOf(chips_);
  return result;
}

kube::SliceDevice ToSliceDevice(const NpuDevice& device, const vnpu::Inventory& inventory) {
  return SliceDeviceMaker(inventory).Make(device);
}

}  // namespace ascend::kubeletplugin
