#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/claims/commands.h"
#include "nlohmann/json.hpp"

namespace ascend::cli {
namespace {

using kubeletplugin::ClaimRecord;
using kubeletplugin::RecordedDevice;
using kubeletplugin::UnreadableRecord;

std::string Requests(const ClaimRecord& record) {
  std::vector<std::string> requests;
  std::set<std::string> seen;
  for (const RecordedDevice& device : record.devices) {
    for (const std::string& request : device.requests) {
      if (seen.insert(request).second) requests.push_back(request);
    }
  }
  return absl::StrJoin(requests, ",");
}

std::string Boot(const NodeFiles& files, const ClaimRecord& record) {
  if (files.boot_id.empty()) return "unknown";
  return record.boot_id == files.boot_id ? "this" : "other";
}

std::string State(const NodeFiles& files, const ClaimRecord& record) {
  if (Boot(files, record) == "other") return "other boot";
  return files.cdi_files.count(record.claim_uid) == 0 ? "CDI file missing" : "ok";
}

std::string WithheldDevices(const std::set<int>& chips) {
  if (chips.empty()) return "any free chip";
  return absl::StrCat(chips.size() == 1 ? "chip " : "chips ", absl::StrJoin(chips, ","));
}

}  // namespace

int ListClaims(const NodeFiles& files, const Output& out) {
  if (out.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const auto& record : files.records.records) {
      nlohmann::ordered_json devices = nlohmann::ordered_json::array();
      for (const RecordedDevice& device : record->devices) {
        devices.push_back({{"pool", device.pool},
                           {"device", device.device},
                           {"shareID", device.share_id},
                           {"requests", device.requests}});
      }
      list.push_back({{"namespace", record->claim_namespace},
                      {"name", record->claim_name},
                      {"uid", record->claim_uid},
                      {"devices", std::move(devices)},
                      {"boot", Boot(files, *record)},
                      {"state", State(files, *record)}});
    }
    for (const UnreadableRecord& bad : files.records.unreadable) {
      const std::set<int>& chips = files.withheld.at(bad.claim_uid);
      list.push_back({{"uid", bad.claim_uid},
                      {"withheld", {{"chips", chips}, {"anyFreeChip", chips.empty()}}},
                      {"state", "unreadable"},
                      {"error", std::string(bad.error.message())}});
    }
    PrintJson(list, out);
    return kExitOk;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& record : files.records.records) {
    rows.push_back({record->claim(), record->claim_uid, DevicesOf(*record), Requests(*record),
                    Boot(files, *record), State(files, *record)});
  }
  for (const UnreadableRecord& bad : files.records.unreadable) {
    rows.push_back({"", bad.claim_uid, WithheldDevices(files.withheld.at(bad.claim_uid)), "", "",
                    "unreadable"});
  }
  if (rows.empty()) {
    out.text << "No claim is prepared on this node.\n";
    return kExitOk;
  }
  PrintTable({"CLAIM", "UID", "DEVICES", "REQUESTS", "BOOT", "STATE"}, rows, out);
  return kExitOk;
}

}  // namespace ascend::cli
