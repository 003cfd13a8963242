#include "test/soak/claims_model.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "test/soak/claims_node.h"

namespace ascend::soak {
namespace {

using kubeletplugin::ClaimReference;
using kubeletplugin::PreparedDevice;

using Key = std::tuple<int, std::string, std::string, bool>;  // in the order of an answer

Key KeyOf(const kube::DeviceResult& result) {
  return {ChipOf(result.device), result.device, result.share_id, result.admin_access};
}

// Results of one device under several requests are one device with all requests.
std::map<Key, std::vector<std::string>> Grouped(const std::vector<kube::DeviceResult>& results) {
  std::map<Key, std::vector<std::string>> groups;
  for (const kube::DeviceResult& result : results) {
    const std::string request = result.request.substr(0, result.request.find('/'));
    std::vector<std::string>& requests = groups[KeyOf(result)];
    if (std::find(requests.begin(), requests.end(), request) == requests.end()) {
      requests.push_back(request);
    }
  }
  return groups;
}

Refusal Precondition(std::string text) {
  return {absl::StatusCode::kFailedPrecondition, std::move(text)};
}

}  // namespace

int ChipOf(const std::string& device) {
  absl::string_view number = device;
  int chip = -1;
  return absl::ConsumePrefix(&number, "npu-") && absl::SimpleAtoi(number, &chip) ? chip : -1;
}

bool Conflict(const kube::DeviceResult& a, const kube::DeviceResult& b) {
  const bool both_shares = !a.share_id.empty() && !b.share_id.empty();
  return !a.admin_access && !b.admin_access && !both_shares && a.device == b.device;
}

ClaimsModel::ClaimsModel(int chip_count) {
  for (int chip = 0; chip < chip_count; ++chip) {
    chips.push_back({.uuid = absl::StrCat("uuid-", chip)});
  }
}

std::vector<kube::DeviceResult> ClaimsModel::Ours(const kube::ResourceClaim& claim) {
  std::vector<kube::DeviceResult> ours;
  for (const kube::DeviceResult& result : claim.allocation->results) {
    if (result.driver == kDriver) ours.push_back(result);
  }
  return ours;
}

std::vector<PreparedDevice> ClaimsModel::Answer(const std::string& uid,
                                                const std::vector<kube::DeviceResult>& results) {
  std::vector<PreparedDevice> answer;
  for (const auto& [key, requests] : Grouped(results)) {
    const auto& [chip, device, share_id, admin] = key;
    std::string id = absl::StrCat("k8s.", kDriver, "/claim=", uid, "-", device);
    if (!share_id.empty()) absl::StrAppend(&id, "-", share_id.substr(0, 8));
    answer.push_back({.requests = requests,
                      .pool = kNode,
                      .device = device,
                      .share_id = share_id,
                      .cdi_device_ids = {id}});
  }
  return answer;
}

void ClaimsModel::AddHolders(const std::string& uid, const std::vector<kube::DeviceResult>& results,
                             std::vector<Refusal>* refusals) const {
  for (const auto& [holder_uid, holder] : prepared) {
    if (holder_uid == uid) continue;
    const bool holds = std::any_of(results.begin(), results.end(), [&](const auto& wanted) {
      return std::any_of(holder.results.begin(), holder.results.end(),
                         [&](const auto& held) { return Conflict(wanted, held); });
    });
    if (holds) {
      refusals->push_back(
          Precondition(absl::StrCat("still prepared for claim ", holder.reference.namespace_name,
                                    "/", holder.reference.name, " (UID ", holder_uid, ")")));
    }
  }
}

void ClaimsModel::AddHardware(const std::vector<kube::DeviceResult>& results,
                              const PreparedModelClaim* known,
                              std::vector<Refusal>* refusals) const {
  for (const kube::DeviceResult& result : results) {
    const int id = ChipOf(result.device);
    const ModelChip& chip = chips[static_cast<size_t>(id)];
    // What a claim was given stays true while its chip is away.
    if (!chip.listed && (known == nullptr || known->uuids.count(id) == 0)) {
      refusals->push_back(Precondition(absl::StrCat(result.device, " is not on this node")));
    }
    if (!chip.node) {
      refusals->push_back(Precondition(absl::StrCat("/dev/davinci", id, " is missing")));
    }
    if (known == nullptr || !chip.listed) continue;
    const auto uuid = known->uuids.find(id);
    if (uuid != known->uuids.end() && uuid->second != chip.uuid) {
      refusals->push_back(Precondition("other hardware now"));
    }
  }
}

Outcome ClaimsModel::ExpectPrepare(const ClaimReference& reference,
                                   const std::optional<kube::ResourceClaim>& claim) const {
  Outcome outcome;
  if (!claim) {
    outcome.refusals = {{absl::StatusCode::kNotFound, reference.name}};
    return outcome;
  }
  if (claim->uid != reference.uid) {
    outcome.refusals = {Precondition(
        absl::StrCat("asks for UID ", reference.uid, ", the API server has UID ", claim->uid))};
    return outcome;
  }
  if (!claim->allocation) {
    outcome.refusals = {Precondition("not allocated")};
    return outcome;
  }
  const std::vector<kube::DeviceResult> results = Ours(*claim);
  outcome.answer = Answer(reference.uid, results);
  const auto known = prepared.find(reference.uid);
  const PreparedModelClaim* record = known == prepared.end() ? nullptr : &known->second;
  AddHolders(reference.uid, results, &outcome.refusals);
  AddHardware(results, record, &outcome.refusals);
  if (record != nullptr && Grouped(record->results) != Grouped(results)) {
    outcome.refusals.push_back(Precondition("still prepared with another allocation"));
  }
  return outcome;
}

void ClaimsModel::Prepare(const ClaimReference& reference, const kube::ResourceClaim& claim) {
  const auto [entry, inserted] = prepared.try_emplace(reference.uid);
  if (!inserted) return;
  entry->second.reference = reference;
  entry->second.results = Ours(claim);
  for (const kube::DeviceResult& result : entry->second.results) {
    const int chip = ChipOf(result.device);
    entry->second.uuids[chip] = chips[static_cast<size_t>(chip)].uuid;
  }
}

bool ClaimsModel::CanRestore(const PreparedModelClaim& claim) const {
  std::vector<Refusal> refusals;
  AddHardware(claim.results, &claim, &refusals);
  return refusals.empty();
}

}  // namespace ascend::soak
