#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/claims/commands.h"
#include "nlohmann/json.hpp"

namespace ascend::cli {
namespace {

using Json = nlohmann::ordered_json;
using kubeletplugin::ClaimRecord;
using kubeletplugin::RecordedChip;
using kubeletplugin::RecordedDevice;
using kubeletplugin::UnreadableRecord;

Json CdiFileToJson(const NodeFiles& files, const std::string& uid) {
  Json json = {{"path", files.CdiPath(uid)}};
  const auto file = files.cdi_files.find(uid);
  json["present"] = file != files.cdi_files.end();
  if (file == files.cdi_files.end()) return json;
  if (!file->second.spec.ok()) {
    json["error"] = std::string(file->second.spec.status().message());
    return json;
  }
  json["kind"] = file->second.spec->kind;
  json["devices"] = Json::array();
  for (const cdi::Device& device : file->second.spec->devices) {
    json["devices"].push_back(device.name);
  }
  return json;
}

std::string StateName(const ClaimRecord& record) {
  return std::string(kubeletplugin::ClaimStateName(record.state));
}

Json ToJson(const NodeFiles& files, const ClaimRecord& record) {
  Json devices = Json::array();
  for (const RecordedDevice& device : record.devices) {
    Json chips = Json::array();
    for (const RecordedChip& chip : device.chips) {
      chips.push_back({{"physicalID", chip.physical_id},
                       {"node", absl::StrCat("/dev/davinci", chip.node_number)},
                       {"uuid", chip.uuid},
                       {"pciBusID", chip.pci_bus_id},
                       {"roceAddress", chip.roce_address}});
    }
    Json vnpu;
    if (device.vnpu) {
      vnpu = {{"template", device.vnpu->template_name},
              {"id", device.vnpu->id},
              {"node", absl::StrCat("/dev/vdavinci", device.vnpu->id)},
              {"managed", device.vnpu->managed}};
    }
    devices.push_back({{"pool", device.pool},
                       {"device", device.device},
                       {"shareID", device.share_id},
                       {"adminAccess", device.admin_access},
                       {"requests", device.requests},
                       {"cdiDevice", device.cdi_device},
                       {"vnpu", std::move(vnpu)},
                       {"chips", std::move(chips)}});
  }
  return {{"namespace", record.claim_namespace},
          {"name", record.claim_name},
          {"uid", record.claim_uid},
          {"state", StateName(record)},
          {"record", files.RecordPath(record.claim_uid)},
          {"bootID", record.boot_id},
          {"thisBoot", record.boot_id == files.boot_id},
          {"cdiFile", CdiFileToJson(files, record.claim_uid)},
          {"devices", std::move(devices)}};
}

void Line(const Output& out, absl::string_view name, const std::string& value) {
  out.text << name << ": " << (value.empty() ? "-" : Printable(value)) << "\n";
}

std::string CdiState(const NodeFiles& files, const std::string& uid) {
  const auto file = files.cdi_files.find(uid);
  if (file == files.cdi_files.end()) return absl::StrCat(files.CdiPath(uid), " (missing)");
  if (!file->second.spec.ok()) {
    return absl::StrCat(file->second.path, " (", file->second.spec.status().message(), ")");
  }
  return file->second.path;
}

void Print(const NodeFiles& files, const ClaimRecord& record, const Output& out) {
  Line(out, "Claim", record.claim());
  Line(out, "UID", record.claim_uid);
  Line(out, "State", StateName(record));
  Line(out, "Record", files.RecordPath(record.claim_uid));
  Line(out, "Boot",
       absl::StrCat(record.boot_id, files.boot_id.empty()             ? ""
                                    : record.boot_id == files.boot_id ? " (this boot)"
                                                                      : " (another boot)"));
  Line(out, "CDI file", CdiState(files, record.claim_uid));
  for (const RecordedDevice& device : record.devices) {
    out.text << "\n";
    Line(out, "Device", absl::StrCat(device.pool, "/", device.device));
    Line(out, "  Requests", absl::StrJoin(device.requests, ", "));
    if (!device.share_id.empty()) Line(out, "  Share", device.share_id);
    if (device.admin_access) Line(out, "  Admin access", "yes");
    Line(out, "  CDI device", device.cdi_device);
    if (device.vnpu) {
      Line(out, "  vNPU",
           device.vnpu->id < 0
               ? absl::StrCat(device.vnpu->template_name, " (not created yet)")
               : absl::StrCat(device.vnpu->template_name, " (/dev/vdavinci", device.vnpu->id, ")"));
    }
    for (const RecordedChip& chip : device.chips) {
      Line(out, "  Chip", absl::StrCat(chip.physical_id, " (/dev/davinci", chip.node_number, ")"));
      Line(out, "    UUID", chip.uuid);
      Line(out, "    PCI bus", chip.pci_bus_id);
      if (!chip.roce_address.empty()) Line(out, "    RoCE address", chip.roce_address);
    }
  }
}

int ShowUnreadable(const NodeFiles& files, const UnreadableRecord& bad, const Output& out) {
  if (out.json) {
    PrintJson({{"uid", bad.claim_uid},
               {"record", files.RecordPath(bad.claim_uid)},
               {"error", std::string(bad.error.message())},
               {"cdiFile", CdiFileToJson(files, bad.claim_uid)}},
              out);
  } else {
    Line(out, "UID", bad.claim_uid);
    Line(out, "Record", files.RecordPath(bad.claim_uid));
    Line(out, "Unreadable", std::string(bad.error.message()));
    Line(out, "CDI file", CdiState(files, bad.claim_uid));
    const auto file = files.cdi_files.find(bad.claim_uid);
    if (file != files.cdi_files.end() && file->second.spec.ok()) {
      for (const cdi::Device& device : file->second.spec->devices) {
        Line(out, "  CDI device", device.name);
      }
    }
  }
  return kExitFindings;
}

}  // namespace

int ShowClaim(const NodeFiles& files, const std::string& claim, const Output& out) {
  std::vector<std::shared_ptr<const ClaimRecord>> found;
  for (const auto& record : files.records.records) {
    if (record->claim_uid == claim || record->claim() == claim || record->claim_name == claim) {
      found.push_back(record);
    }
  }
  for (const UnreadableRecord& bad : files.records.unreadable) {
    if (bad.claim_uid == claim) return ShowUnreadable(files, bad, out);
  }
  if (found.size() > 1) {
    Complain(absl::InvalidArgumentError(absl::StrCat(
                 "several claims are called \"", claim, "\", give the namespace or the UID: ",
                 absl::StrJoin(found, ", ",
                               [](std::string* text, const auto& record) {
                                 absl::StrAppend(text, record->claim(), " (", record->claim_uid,
                                                 ")");
                               }))),
             out);
    return kExitUsage;
  }
  if (found.empty()) {
    Complain(absl::NotFoundError(absl::StrCat("claim \"", claim, "\" has no record in ",
                                              files.claims_directory,
                                              ": it is not prepared on this node")),
             out);
    return kExitCannotRead;
  }
  if (out.json) {
    PrintJson(ToJson(files, *found[0]), out);
  } else {
    Print(files, *found[0], out);
  }
  return kExitOk;
}

}  // namespace ascend::cli
