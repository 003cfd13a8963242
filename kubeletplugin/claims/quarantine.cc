#include "kubeletplugin/claims/quarantine.h"

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/core/file.h"
#include "cdi/json.h"
#include "kubeletplugin/claims/injection.h"
#include "kubeletplugin/devices.h"

namespace ascend::kubeletplugin {
namespace {

// Empty = cannot be told.
std::set<int> ChipsOfDeviceNames(const std::vector<std::string>& names) {
  std::set<int> chips;
  for (const std::string& name : names) {
    const std::vector<int> ids = PhysicalIdsOf(name);
    if (ids.empty()) return {};  // one that is unknown makes the rest a guess
    chips.insert(ids.begin(), ids.end());
  }
  return chips;
}

std::set<int> ChipsOfCdiFile(const std::string& claim_uid, const Paths& paths) {
  const absl::StatusOr<std::string> text =
      ReadFile(JoinPath(paths.cdi_root(), paths.cdi_file(claim_uid)));
  if (!text.ok()) return {};
  const absl::StatusOr<cdi::Spec> spec = cdi::ReadJson(*text);
  return spec.ok() ? InjectedChips(*spec) : std::set<int>();
}

}  // namespace

const UnreadableRecord* Quarantine::Find(int physical_id, const std::string& claim_uid,
                                         bool held) const {
  if (const auto found = chips.find(physical_id);
      found != chips.end() && found->second.claim_uid != claim_uid) {
    return &found->second;
  }
  if (held) return nullptr;
  for (const UnreadableRecord& record : unknown) {
    if (record.claim_uid != claim_uid) return &record;
  }
  return nullptr;
}

std::set<int> ChipsOf(const UnreadableRecord& record, const Paths& paths) {
  std::set<int> chips = ChipsOfDeviceNames(record.devices);
  return chips.empty() ? ChipsOfCdiFile(record.claim_uid, paths) : chips;
}

Quarantine FindQuarantine(const std::vector<UnreadableRecord>& unreadable, const Paths& paths) {
  Quarantine quarantine;
  for (const UnreadableRecord& record : unreadable) {
    const std::set<int> chips = ChipsOf(record, paths);
    if (chips.empty()) quarantine.unknown.push_back(record);
    for (const int id : chips) quarantine.chips.emplace(id, record);
  }
  return quarantine;
}

}  // namespace ascend::kubeletplugin
