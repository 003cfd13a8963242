#include "kubeletplugin/devices.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace ascend::kubeletplugin {
namespace {

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

void SetString(kube::SliceDevice* device, const char* name, absl::string_view value) {
  std::string text = AttributeString(value);
  if (!text.empty()) device->attributes[name] = std::move(text);
}

// Canonical form: the API server prints 65536Mi as 64Gi, and a difference would look like an edit.
std::string MemoryQuantity(int64_t mebibytes) {
  if (mebibytes % 1024 == 0) return absl::StrCat(mebibytes / 1024, "Gi");
  return absl::StrCat(mebibytes, "Mi");
}

// Values of both dies if they agree, joined by '+' if not.
template <typename Get>
std::string Joined(const std::vector<vnpu::Chip>& chips, Get get) {
  std::vector<std::string> values;
  for (const vnpu::Chip& chip : chips) {
    std::string value = get(chip);
    if (value.empty()) return "";
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return absl::StrJoin(values, "+");
}

bool IsUnionModule(const vnpu::Chip& chip, const vnpu::Inventory& inventory) {
  // A library too old to tell the policy runs in union mode, the product's default.
  return chip.family == vnpu::Family::kA3 &&
         inventory.multi_die_policy != vnpu::MultiDiePolicy::kIndependent;
}

}  // namespace

std::string DeviceName(const std::vector<vnpu::Chip>& chips) {
  return absl::StrCat("npu-", absl::StrJoin(chips, "-", [](std::string* out, const auto& chip) {
                        absl::StrAppend(out, chip.physical_id);
                      }));
}

std::vector<int> PhysicalIdsOf(absl::string_view device_name) {
  if (!absl::ConsumePrefix(&device_name, "npu-")) return {};
  std::vector<int> ids;
  for (absl::string_view part : absl::StrSplit(device_name, '-')) {
    int id = 0;
    if (!absl::SimpleAtoi(part, &id) || id < 0) return {};
    ids.push_back(id);
  }
  return ids;
}

std::vector<NpuDevice> DevicesOf(const vnpu::Inventory& inventory, const DeviceOptions& options) {
  std::map<int, const vnpu::Chip*> offered;
  for (const vnpu::Chip& chip : inventory.chips) {
    if (options.excluded_chips.count(chip.physical_id) == 0) offered[chip.physical_id] = &chip;
  }
  std::vector<NpuDevice> devices;
  for (const auto& [physical_id, chip] : offered) {
    NpuDevice device;
    device.chips.push_back(*chip);
    if (IsUnionModule(*chip, inventory)) {
      if (!chip->module_peer_physical_id.has_value()) continue;
      const auto peer = offered.find(*chip->module_peer_physical_id);
      if (peer == offered.end()) continue;
      if (peer->first < physical_id) continue;  // made with the lower die
      device.chips.push_back(*peer->second);
    }
    device.name = DeviceName(device.chips);
    devices.push_back(std::move(device));
  }
  return devices;
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

kube::SliceDevice ToSliceDevice(const NpuDevice& device, const vnpu::Inventory& inventory) {
  const std::vector<vnpu::Chip>& chips = device.chips;
  const vnpu::Chip& first = chips.front();
  kube::SliceDevice result;
  result.name = device.name;

  SetString(&result, "type", "npu");
  SetString(&result, "family", vnpu::FamilyName(first.family));
  SetString(&result, "model", first.model);
  SetString(&result, "uuid",
            chips.size() == 1 ? first.uuid : "");  // two die ids do not fit into 64 bytes
  SetString(&result, "serial", Joined(chips, [](const auto& c) { return c.serial; }));
  result.attributes["physicalID"] = int64_t{first.physical_id};
  result.attributes["cardID"] = int64_t{first.card_id};
  if (first.board_id != 0) result.attributes["boardID"] = int64_t{first.board_id};
  SetString(&result, "hccsGroup", first.hccs_group);
  SetString(&result, "module", first.module);
  if (first.super_pod_id) result.attributes["superPodID"] = *first.super_pod_id;
  if (first.super_pod_server) result.attributes["superPodServer"] = *first.super_pod_server;

  SetString(&result, "driverVersionString", inventory.driver_version);
  if (std::string version = NormalizeVersion(inventory.driver_version); !version.empty()) {
    result.attributes["driverVersion"] = kube::Version{std::move(version)};
  }
  SetString(&result, "firmwareVersion", inventory.firmware_version);

  const bool same_numa = std::all_of(chips.begin(), chips.end(), [&](const auto& chip) {
    return chip.numa_node == first.numa_node;
  });
  if (same_numa && first.numa_node && *first.numa_node >= 0 && *first.numa_node <= 1023) {
    result.attributes["resource.kubernetes.io/numaNode"] = int64_t{*first.numa_node};
  }
  const bool same_root = std::all_of(chips.begin(), chips.end(), [&](const auto& chip) {
    return chip.pcie_root == first.pcie_root;
  });
  if (same_root) SetString(&result, "resource.kubernetes.io/pcieRoot", first.pcie_root);
  SetString(&result, "resource.kubernetes.io/pciBusID", first.pci_bus_id);

  int64_t memory = 0, aicore = 0, aicpu = 0;
  bool memory_known = true, aicore_known = true, aicpu_known = true;
  for (const vnpu::Chip& chip : chips) {
    memory += chip.memory_mib;
    aicore += chip.aicore_count;
    aicpu += chip.aicpu_count;
    memory_known = memory_known && chip.memory_mib > 0;
    aicore_known = aicore_known && chip.aicore_count > 0;
    aicpu_known = aicpu_known && chip.aicpu_count > 0;
  }
  if (memory_known) result.capacity["memory"] = MemoryQuantity(memory);
  if (aicore_known) result.capacity["aicore"] = absl::StrCat(aicore);
  if (aicpu_known) result.capacity["aicpu"] = absl::StrCat(aicpu);
  return result;
}

}  // namespace ascend::kubeletplugin
