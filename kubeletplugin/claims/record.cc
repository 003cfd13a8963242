#include "kubeletplugin/claims/record.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "nlohmann/json.hpp"

namespace ascend::kubeletplugin {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::string_view kChecksumPrefix = "crc32c:";

std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    table[i] = crc;
  }
  return table;
}

// Reads members of one JSON object; the first thing that is not as it should be makes the error.
class Reader {
 public:
  Reader(const nlohmann::json& object, std::string where)
      : object_(object), where_(std::move(where)) {
    if (!object_.is_object()) Fail("", "is no object");
  }

  std::string String(const char* name, bool required = false) {
    const nlohmann::json* value = Find(name, required);
    if (value == nullptr) return "";
    if (!value->is_string()) return Fail(name, "is no string"), "";
    return value->get<std::string>();
  }
  int Int(const char* name, bool required = true) {
    const nlohmann::json* value = Find(name, required);
    if (value == nullptr) return -1;
    if (!value->is_number_integer()) return Fail(name, "is no integer"), -1;
    return value->get<int>();
  }
  bool Bool(const char* name) {
    const nlohmann::json* value = Find(name, false);
    if (value == nullptr) return false;
    if (!value->is_boolean()) return Fail(name, "is no boolean"), false;
    return value->get<bool>();
  }
  std::vector<std::string> Strings(const char* name) {
    std::vector<std::string> strings;
    for (const nlohmann::json& value : Array(name)) {
      if (!value.is_string()) return Fail(name, "is no list of strings"), strings;
      strings.push_back(value.get<std::string>());
    }
    return strings;
  }
  std::vector<int> Ints(const char* name) {
    std::vector<int> numbers;
    for (const nlohmann::json& value : Array(name)) {
      if (!value.is_number_integer()) return Fail(name, "is no list of integers"), numbers;
      numbers.push_back(value.get<int>());
    }
    return numbers;
  }
  std::map<std::string, std::string> StringMap(const char* name) {
    std::map<std::string, std::string> map;
    const nlohmann::json* value = Find(name, false);
    if (value == nullptr) return map;
    if (!value->is_object()) return Fail(name, "is no object"), map;
    for (const auto& [key, text] : value->items()) {
      if (!text.is_string()) return Fail(name, "has a value that is no string"), map;
      map[key] = text.get<std::string>();
    }
    return map;
  }
  const nlohmann::json& Array(const char* name) {
    static const nlohmann::json kEmpty = nlohmann::json::array();
    const nlohmann::json* value = Find(name, false);
    if (value == nullptr) return kEmpty;
    if (!value->is_array()) return Fail(name, "is no array"), kEmpty;
    return *value;
  }
  const nlohmann::json& Object(const char* name) {
    static const nlohmann::json kEmpty = nlohmann::json::object();
    const nlohmann::json* value = Find(name, true);
    if (value == nullptr) return kEmpty;
    if (!value->is_object()) return Fail(name, "is no object"), kEmpty;
    return *value;
  }
  void Fail(const char* name, absl::string_view what) {
    if (status_.ok()) {
      status_ = absl::DataLossError(absl::StrCat("record member ", where_, name, " ", what));
    }
  }
  const absl::Status& status() const { return status_; }

 private:
  const nlohmann::json* Find(const char* name, bool required) {
    if (!object_.is_object()) return nullptr;
    const auto it = object_.find(name);
    if (it != object_.end()) return &*it;
    if (required) Fail(name, "is missing");
    return nullptr;
  }

  const nlohmann::json& object_;
  const std::string where_;
  absl::Status status_;
};

Json ToJson(const RecordedChip& chip) {
  Json json = {{"physicalID", chip.physical_id},
               {"nodeNumber", chip.node_number},
               {"family", std::string(vnpu::FamilyName(chip.family))}};
  if (!chip.uuid.empty()) json["uuid"] = chip.uuid;
  if (!chip.pci_bus_id.empty()) json["pciBusID"] = chip.pci_bus_id;
  if (!chip.roce_address.empty()) json["roceAddress"] = chip.roce_address;
  return json;
}

Json ToJson(const RecordedVnpu& vnpu) {
  Json json = {{"template", vnpu.template_name}, {"index", vnpu.index}};
  if (!vnpu.vgroups.empty()) json["vgroups"] = vnpu.vgroups;
  json["managed"] = vnpu.managed;
  if (vnpu.id >= 0) json["id"] = vnpu.id;
  if (vnpu.vgroup >= 0) json["vgroup"] = vnpu.vgroup;
  if (vnpu.begun) json["begun"] = true;
  if (vnpu.wanted_id >= 0) json["wantedID"] = vnpu.wanted_id;
  if (!vnpu.ids_before.empty()) json["idsBefore"] = vnpu.ids_before;
  return json;
}

Json ToJson(const RecordedDevice& device) {
  Json json = {{"requests", device.requests}, {"pool", device.pool}, {"device", device.device}};
  if (!device.share_id.empty()) json["shareID"] = device.share_id;
  if (!device.consumed_capacity.empty()) json["consumedCapacity"] = device.consumed_capacity;
  if (device.admin_access) json["adminAccess"] = true;
  if (!device.subrequests.empty()) json["subrequests"] = device.subrequests;
  if (device.shared_use_expected) json["sharedUseExpected"] = true;
  json["cdiDevice"] = device.cdi_device;
  json["chips"] = Json::array();
  for (const RecordedChip& chip : device.chips) json["chips"].push_back(ToJson(chip));
  if (device.vnpu) json["vnpu"] = ToJson(*device.vnpu);
  json["published"] = kube::ToJson(device.published);
  return json;
}

absl::StatusOr<RecordedChip> ParseChip(const nlohmann::json& json) {
  Reader reader(json, "devices[].chips[].");
  RecordedChip chip;
  chip.physical_id = reader.Int("physicalID");
  chip.node_number = reader.Int("nodeNumber");
  chip.family = vnpu::FamilyFromName(reader.String("family"));
  chip.uuid = reader.String("uuid");
  chip.pci_bus_id = reader.String("pciBusID");
  chip.roce_address = reader.String("roceAddress");
  ASCEND_RETURN_IF_ERROR(reader.status());
  return chip;
}

absl::StatusOr<RecordedVnpu> ParseVnpu(const nlohmann::json& json) {
  Reader reader(json, "devices[].vnpu.");
  RecordedVnpu vnpu;
  vnpu.template_name = reader.String("template", true);
  vnpu.index = reader.Int("index");
  vnpu.vgroups = reader.Ints("vgroups");
  vnpu.managed = reader.Bool("managed");
  vnpu.id = reader.Int("id", false);
  vnpu.vgroup = reader.Int("vgroup", false);
  vnpu.begun = reader.Bool("begun");
  vnpu.wanted_id = reader.Int("wantedID", false);
  vnpu.ids_before = reader.Ints("idsBefore");
  ASCEND_RETURN_IF_ERROR(reader.status());
  return vnpu;
}

absl::StatusOr<RecordedDevice> ParseDevice(const nlohmann::json& json) {
  Reader reader(json, "devices[].");
  RecordedDevice device;
  device.requests = reader.Strings("requests");
  device.pool = reader.String("pool", true);
  device.device = reader.String("device", true);
  device.share_id = reader.String("shareID");
  device.consumed_capacity = reader.StringMap("consumedCapacity");
  device.admin_access = reader.Bool("adminAccess");
  device.subrequests = reader.Strings("subrequests");
  device.shared_use_expected = reader.Bool("sharedUseExpected");
  device.cdi_device = reader.String("cdiDevice", true);
  for (const nlohmann::json& chip : reader.Array("chips")) {
    ASCEND_ASSIGN_OR_RETURN(RecordedChip parsed, ParseChip(chip));
    device.chips.push_back(std::move(parsed));
  }
  if (json.is_object() && json.contains("vnpu")) {
    ASCEND_ASSIGN_OR_RETURN(device.vnpu, ParseVnpu(json["vnpu"]));
  }
  const nlohmann::json& published = reader.Object("published");
  ASCEND_RETURN_IF_ERROR(reader.status());
  absl::StatusOr<kube::SliceDevice> slice_device = kube::ParseSliceDevice(published);
  if (!slice_device.ok()) return absl::DataLossError(slice_device.status().message());
  device.published = *std::move(slice_device);
  return device;
}

// The document as this version knows it.
Json ToJson(const ClaimRecord& record) {
  Json claim = {{"namespace", record.claim_namespace},
                {"name", record.claim_name},
                {"uid", record.claim_uid}};
  if (!record.pod_claim_name.empty()) claim["podClaimName"] = record.pod_claim_name;
  Json json = {{"formatVersion", kRecordFormatVersion},
               {"state", std::string(ClaimStateName(record.state))},
               {"claim", std::move(claim)}};
  if (!record.prepared_at.empty()) json["preparedAt"] = record.prepared_at;
  json["bootID"] = record.boot_id;
  json["devices"] = Json::array();
  for (const RecordedDevice& device : record.devices) json["devices"].push_back(ToJson(device));
  return json;
}

// What `stored` has and `known` has not, in the shape of `stored`; null = nothing.
Json UnknownMembers(const nlohmann::json& stored, const Json& known) {
  Json unknown;
  if (stored.is_object() && known.is_object()) {
    for (const auto& [name, value] : stored.items()) {
      const auto found = known.find(name);
      Json rest = found == known.end() ? Json(value) : UnknownMembers(value, *found);
      if (found == known.end() || !rest.is_null()) unknown[name] = std::move(rest);
    }
  } else if (stored.is_array() && known.is_array() && stored.size() == known.size()) {
    Json rests = Json::array();
    bool any = false;
    for (size_t i = 0; i < stored.size(); ++i) {
      rests.push_back(UnknownMembers(stored[i], known[i]));
      any = any || !rests.back().is_null();
    }
    if (any) unknown = std::move(rests);
  }
  return unknown;
}

void AddMembers(const Json& unknown, Json* json) {
  if (unknown.is_object() && json->is_object()) {
    for (const auto& [name, value] : unknown.items()) {
      const auto known = json->find(name);
      if (known == json->end()) {
        (*json)[name] = value;
      } else {
        AddMembers(value, &*known);
      }
    }
  } else if (unknown.is_array() && json->is_array() && unknown.size() == json->size()) {
    for (size_t i = 0; i < unknown.size(); ++i) AddMembers(unknown[i], &(*json)[i]);
  }
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The record's first line, if it is what was once written.
absl::StatusOr<absl::string_view> CheckedLine(absl::string_view bytes) {
  const size_t end = bytes.find('\n');
  if (end == absl::string_view::npos) return absl::DataLossError("record is cut: no line end");
  const absl::string_view line = bytes.substr(0, end);
  const std::string checksum =
      absl::StrCat(kChecksumPrefix, absl::Hex(Crc32c(line), absl::kZeroPad8), "\n");
  if (bytes.substr(end + 1) != checksum) {
    return absl::DataLossError("record is damaged: its checksum line does not fit its content");
  }
  return line;
}

}  // namespace

uint32_t Crc32c(absl::string_view bytes) {
  static const std::array<uint32_t, 256> table = MakeCrcTable();
  uint32_t crc = 0xffffffffu;
  for (const char c : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return crc ^ 0xffffffffu;
}

std::string ClaimRecord::claim() const { return absl::StrCat(claim_namespace, "/", claim_name); }

absl::string_view ClaimStateName(ClaimState state) {
  switch (state) {
    case ClaimState::kStarted:
      return "Started";
    case ClaimState::kCompleted:
      break;
    case ClaimState::kReleased:
      return "Released";
  }
  return "Completed";
}

bool ClaimRecord::has_managed_vnpus() const {
  return std::any_of(devices.begin(), devices.end(), [](const RecordedDevice& device) {
    return device.vnpu.has_value() && device.vnpu->managed;
  });
}

std::string SerializeRecord(const ClaimRecord& record) {
  Json json = ToJson(record);
  if (!record.unknown_members.empty()) {
    AddMembers(Json::parse(record.unknown_members, nullptr, false), &json);
  }
  const std::string line = Dump(json);
  return absl::StrCat(line, "\n", kChecksumPrefix, absl::Hex(Crc32c(line), absl::kZeroPad8), "\n");
}

std::vector<std::string> SalvageDeviceNames(absl::string_view bytes) {
  std::vector<std::string> names;
  const absl::StatusOr<absl::string_view> line = CheckedLine(bytes);
  if (!line.ok()) return names;
  const nlohmann::json json = nlohmann::json::parse(line->begin(), line->end(), nullptr, false);
  const auto devices = json.find("devices");
  if (!json.is_object() || devices == json.end() || !devices->is_array()) return names;
  for (const nlohmann::json& device : *devices) {
    if (!device.is_object() || !device.contains("device") || !device["device"].is_string()) {
      return {};  // half an answer is none
    }
    names.push_back(device["device"].get<std::string>());
  }
  return names;
}

absl::StatusOr<ClaimRecord> ParseRecord(absl::string_view bytes) {
  ASCEND_ASSIGN_OR_RETURN(const absl::string_view line, CheckedLine(bytes));
  const nlohmann::json json = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
  if (json.is_discarded()) return absl::DataLossError("record is no JSON");

  Reader reader(json, "");
  const int version = reader.Int("formatVersion");
  const std::string state = reader.String("state", true);
  ClaimRecord record;
  record.boot_id = reader.String("bootID", true);
  record.prepared_at = reader.String("preparedAt");
  const nlohmann::json& claim_json = reader.Object("claim");
  const nlohmann::json& devices = reader.Array("devices");
  ASCEND_RETURN_IF_ERROR(reader.status());
  bool readable = version == kRecordFormatVersion;
  if (state == ClaimStateName(ClaimState::kStarted)) {
    record.state = ClaimState::kStarted;
  } else if (state == ClaimStateName(ClaimState::kReleased)) {
    record.state = ClaimState::kReleased;
  } else {
    readable = readable && state == ClaimStateName(ClaimState::kCompleted);
  }
  if (!readable) {
    return absl::UnimplementedError(
        absl::StrCat("record has format version ", version, ", state ", state,
                     ": a newer driver wrote it, run that version or a newer one"));
  }
  Reader claim(claim_json, "claim.");
  record.claim_namespace = claim.String("namespace", true);
  record.claim_name = claim.String("name", true);
  record.claim_uid = claim.String("uid", true);
  record.pod_claim_name = claim.String("podClaimName");
  ASCEND_RETURN_IF_ERROR(claim.status());
  for (const nlohmann::json& device : devices) {
    ASCEND_ASSIGN_OR_RETURN(RecordedDevice parsed, ParseDevice(device));
    record.devices.push_back(std::move(parsed));
  }
  // Our own records are the same text again, and that is nearly all of them.
  if (const Json known = ToJson(record); Dump(known) != line) {
    if (const Json unknown = UnknownMembers(json, known); !unknown.is_null()) {
      record.unknown_members = Dump(unknown);
    }
  }
  return record;
}

}  // namespace ascend::kubeletplugin
