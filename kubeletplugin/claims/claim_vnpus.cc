#include "kubeletplugin/claims/claim_vnpus.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/status_macros.h"
#include "base/runtime/clock.h"
#include "base/runtime/logging.h"
#include "kubeletplugin/claims/prepare_error.h"
#include "vnpu/vnpu_ids.h"

namespace ascend::kubeletplugin {
namespace {

class Timer {
 public:
  explicit Timer(absl::Duration timeout) : end_(Clock::Real().Monotonic() + timeout) {}
  absl::Duration left() const {
    return std::max(end_ - Clock::Real().Monotonic(), absl::ZeroDuration());
  }

 private:
  const absl::Duration end_;
};

int ChipOf(const RecordedDevice& device) {
  return device.chips.empty() ? -1 : device.chips.front().physical_id;
}

std::string Name(const RecordedDevice& device) {
  return absl::StrCat("vNPU ", device.vnpu->template_name, " of chip ", ChipOf(device));
}

bool OnSameChip(const RecordedDevice& one, const RecordedDevice& other) {
  return ChipOf(one) == ChipOf(other);
}

// Calls `visit(record, device)` for every partition of every record that lies on this chip.
template <typename Visit>
void ForEachVnpu(const RecordStore::Contents& contents, const RecordedDevice& on_chip_of,
                 Visit visit) {
  for (const auto& record : contents.records) {
    for (const RecordedDevice& device : record->devices) {
      if (device.vnpu && OnSameChip(device, on_chip_of)) visit(*record, device);
    }
  }
}

bool SameTemplate(const RecordedDevice& device, const vnpu::Vnpu& vnpu) {
  // A library that does not tell the template has only the id.
  return vnpu.template_name.empty() || vnpu.template_name == device.vnpu->template_name;
}

// Whether a vNPU of ours got another id than was asked for.
bool LibraryChoosesIds(const RecordStore::Contents& contents, const std::string& boot_id) {
  for (const auto& record : contents.records) {
    if (record->boot_id != boot_id) continue;
    for (const RecordedDevice& device : record->devices) {
      if (device.vnpu && device.vnpu->id >= 0 && device.vnpu->wanted_id >= 0) return true;
    }
  }
  return false;
}

std::string Ids(const std::vector<vnpu::Vnpu>& vnpus) {
  return absl::StrJoin(vnpus, ", ",
                       [](std::string* out, const auto& vnpu) { absl::StrAppend(out, vnpu.id); });
}

void SetFound(const vnpu::Vnpu& found, RecordedVnpu* vnpu) {
  vnpu->id = found.id;
  vnpu->vgroup = found.vgroup;
  vnpu->begun = false;
  // One that differs shows that the library chooses ids itself.
  if (vnpu->wanted_id == vnpu->id) vnpu->wanted_id = -1;
  vnpu->ids_before.clear();
}

// The intent names the id that is asked for, the lowest that is free, and what was there before.
void SetIntent(const std::map<int, std::vector<vnpu::Vnpu>>& listings, RecordedDevice* device,
               const std::vector<RecordedDevice>& all) {
  RecordedVnpu& vnpu = *device->vnpu;
  vnpu.id = vnpu.vgroup = vnpu.wanted_id = -1;
  vnpu.begun = true;
  vnpu.ids_before.clear();
  std::set<int> used;
  if (const auto listed = listings.find(ChipOf(*device)); listed != listings.end()) {
    for (const vnpu::Vnpu& other : listed->second) vnpu.ids_before.push_back(other.id);
    used.insert(vnpu.ids_before.begin(), vnpu.ids_before.end());
  }
  for (const RecordedDevice& other : all) {
    if (other.vnpu) used.insert(other.vnpu->wanted_id);
  }
  const int first = vnpu::FirstVnpuId(ChipOf(*device));
  for (int id = first; id < first + vnpu::kMaxVnpusPerChip && vnpu.wanted_id < 0; ++id) {
    if (used.count(id) == 0) vnpu.wanted_id = id;
  }
}

// Where a partition that may share a vGroup has to go: to the one that shares its group in our
// account, else to a group of its own; so both accounts stay the same whatever is released.
std::optional<int> WantedVgroup(const ClaimRecord& record, size_t index,
                                const std::vector<vnpu::Vnpu>& listed,
                                const RecordStore::Contents& contents, const std::string& boot_id) {
  const RecordedDevice& device = record.devices[index];
  if (device.vnpu->vgroups.size() != 1) return std::nullopt;
  std::optional<int> shared;
  const auto look = [&](const RecordedDevice& other) {
    if (other.vnpu && other.device != device.device && OnSameChip(other, device) &&
        other.vnpu->id >= 0 && other.vnpu->vgroup >= 0 &&
        other.vnpu->vgroups == device.vnpu->vgroups) {
      shared = other.vnpu->vgroup;
    }
  };
  for (const auto& other : contents.records) {
    if (other->boot_id != boot_id || other->claim_uid == record.claim_uid) continue;
    for (const RecordedDevice& theirs : other->devices) look(theirs);
  }
  for (const RecordedDevice& own : record.devices) look(own);
  if (shared) return shared;
  for (int group = 0; group < vnpu::kMaxVGroups; ++group) {
    if (std::none_of(listed.begin(), listed.end(),
                     [&](const auto& vnpu) { return vnpu.vgroup == group; })) {
      return group;
    }
  }
  return std::nullopt;
}

}  // namespace

ClaimVnpus::ClaimVnpus(std::string boot_id, RecordStore& records, VnpuCalls calls)
    : boot_id_(std::move(boot_id)), records_(records), calls_(std::move(calls)) {}

absl::StatusOr<std::optional<vnpu::Vnpu>> ClaimVnpus::Locate(
    const ClaimRecord& record, size_t index, const std::vector<vnpu::Vnpu>& listed,
    const RecordStore::Contents& contents, bool recovery, const Found& found) const {
  const RecordedDevice& device = record.devices[index];
  const RecordedVnpu& vnpu = *device.vnpu;
  const bool this_boot = record.boot_id == boot_id_;
  if (this_boot && vnpu.id >= 0) {
    for (const vnpu::Vnpu& candidate : listed) {
      if (candidate.id == vnpu.id && SameTemplate(device, candidate)) return candidate;
    }
    return std::nullopt;
  }
  // Without an intent on the disk nothing was made.
  if (this_boot ? !vnpu.begun : !recovery) return std::nullopt;

  // How many vNPUs without a known id are ours: of this record's intents, or of all claims of
  // former boots; and which ids are somebody's for sure.
  size_t ours = 0;
  std::set<int> owned;
  const auto alike = [&](const RecordedDevice& other) {
    return other.vnpu->managed && other.vnpu->template_name == vnpu.template_name;
  };
  ForEachVnpu(contents, device, [&](const ClaimRecord& other, const RecordedDevice& theirs) {
    if (other.claim_uid == record.claim_uid) return;
    if (other.boot_id == boot_id_) {
      if (theirs.vnpu->id >= 0) owned.insert(theirs.vnpu->id);
    } else if (!this_boot && alike(theirs)) {
      ++ours;
    }
  });
  for (size_t i = 0; i < record.devices.size(); ++i) {
    const RecordedDevice& own = record.devices[i];
    if (!own.vnpu || !OnSameChip(own, device)) continue;
    if (const auto known = found.find(i); known != found.end()) {
      owned.insert(known->second.id);
    } else if (this_boot && own.vnpu->id >= 0) {
      owned.insert(own.vnpu->id);
    } else if (alike(own)) {
      ++ours;
    }
  }
  std::vector<vnpu::Vnpu> candidates;
  const std::vector<int>& before = vnpu.ids_before;
  for (const vnpu::Vnpu& candidate : listed) {
    if (owned.count(candidate.id) != 0 || !SameTemplate(device, candidate)) continue;
    if (this_boot && std::find(before.begin(), before.end(), candidate.id) != before.end()) {
      continue;
    }
    // It may be ours, or not: a guess would leave it, or destroy somebody else's.
    if (candidate.template_name.empty()) {
      return absl::UnavailableError(absl::StrCat("the library does not tell the template of vNPU ",
                                                 candidate.id, " on chip ", ChipOf(device)));
    }
    if (this_boot && candidate.id == vnpu.wanted_id) return candidate;
    candidates.push_back(candidate);
  }
  if (candidates.empty()) return std::nullopt;
  // Somebody else's, made at the same time: ours would have the id that was asked for.
  if (this_boot && vnpu.wanted_id >= 0 && !LibraryChoosesIds(contents, boot_id_)) {
    return std::nullopt;
  }
  if (candidates.size() <= ours) return candidates.front();
  LogWarning("cannot tell which vNPU is the claim's, so none is touched",
             {{"claim", record.claim()},
              {"claimUID", record.claim_uid},
              {"chip", ChipOf(device)},
              {"template", vnpu.template_name},
              {"vnpus", Ids(candidates)}});
  return std::nullopt;
}

absl::Status ClaimVnpus::Provide(ClaimRecord* record, bool recovery, absl::Duration timeout,
                                 bool* written) {
  const Timer timer(timeout);
  const bool verified = record->state == ClaimState::kCompleted && record->boot_id == boot_id_;
  ASCEND_ASSIGN_OR_RETURN(const RecordStore::Contents contents, records_.ReadAll());
  std::map<int, std::vector<vnpu::Vnpu>> listings;  // by chip
  Found found;
  std::vector<size_t> missing;
  for (size_t i = 0; i < record->devices.size(); ++i) {
    const RecordedDevice& device = record->devices[i];
    if (!device.vnpu) continue;
    const int chip = ChipOf(device);
    if (listings.count(chip) == 0) {
      absl::StatusOr<std::vector<vnpu::Vnpu>> listed = calls_.list(chip, timer.left());
      if (!listed.ok()) {
        // What was seen when it was made stays good while the agent is away; its node is checked.
        if (verified && device.vnpu->id >= 0) continue;
        return Annotate(listed.status(),
                        absl::StrCat("the vNPUs of chip ", chip, " cannot be listed"));
      }
      listings[chip] = *std::move(listed);
    }
    const std::vector<vnpu::Vnpu>& listed = listings[chip];
    if (!device.vnpu->managed) {
      const bool there = std::any_of(listed.begin(), listed.end(), [&](const auto& vnpu) {
        return vnpu.id == device.vnpu->id && SameTemplate(device, vnpu);
      });
      if (there) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "vNPU ", device.vnpu->id, " (", device.vnpu->template_name, ") of chip ", chip,
          " is gone: an administrator destroyed it; delete the pod to get another one"));
    }
    ASCEND_ASSIGN_OR_RETURN(const std::optional<vnpu::Vnpu> located,
                            Locate(*record, i, listed, contents, recovery, found));
    if (located) {
      found[i] = *located;
      continue;
    }
    if (verified && device.vnpu->id >= 0) {
      LogWarning("the vNPU of a prepared claim is gone, it is made anew",
                 {{"claim", record->claim()},
                  {"claimUID", record->claim_uid},
                  {"device", device.device},
                  {"vnpu", device.vnpu->id}});
    }
    missing.push_back(i);
  }

  for (const auto& [i, vnpu] : found) SetFound(vnpu, &*record->devices[i].vnpu);
  record->boot_id = boot_id_;
  if (missing.empty()) return absl::OkStatus();
  for (const size_t i : missing) SetIntent(listings, &record->devices[i], record->devices);
  *written = true;
  ASCEND_RETURN_IF_ERROR(WithReason(records_.Write(*record), PrepareError::kRecordWrite))
      .With("the claim record cannot be written; check that ", records_.directory(),
            " is writable and has room");
  for (const size_t i : missing) {
    RecordedDevice& device = record->devices[i];
    agent::VnpuRequest request = {.physical_id = ChipOf(device),
                                  .uuid = device.chips.front().uuid,
                                  .template_name = device.vnpu->template_name};
    if (device.vnpu->wanted_id >= 0) request.id = device.vnpu->wanted_id;
    request.vgroup = WantedVgroup(*record, i, listings[ChipOf(device)], contents, boot_id_);
    absl::StatusOr<vnpu::Vnpu> answer = calls_.create(request, timer.left());
    // An agent that is away, or too slow, has reasons of its own.
    if (!absl::IsUnavailable(answer.status()) && !absl::IsDeadlineExceeded(answer.status())) {
      answer = WithReason(std::move(answer), PrepareError::kVnpu);
      // The agent knows that nothing is left of it: what is found there later is somebody else's.
      if (!answer.ok()) device.vnpu->begun = false;
    }
    ASCEND_ASSIGN_OR_RETURN(const vnpu::Vnpu made, std::move(answer), Name(device),
                            " cannot be created");
    SetFound(made, &*device.vnpu);
    listings[ChipOf(device)].push_back(made);
    LogInfo("created a vNPU", {{"claim", record->claim()},
                               {"claimUID", record->claim_uid},
                               {"device", device.device},
                               {"vnpu", made.id}});
  }
  return absl::OkStatus();
}

absl::Status ClaimVnpus::Withdraw(const ClaimRecord& record, bool recovery,
                                  absl::Duration timeout) {
  if (record.boot_id != boot_id_ && !recovery) return absl::OkStatus();  // gone with that boot
  const Timer timer(timeout);
  Found found;
  for (size_t i = 0; i < record.devices.size(); ++i) {
    const RecordedDevice& device = record.devices[i];
    if (!device.vnpu || !device.vnpu->managed) continue;
    const int chip = ChipOf(device);
    ASCEND_ASSIGN_OR_RETURN(const std::vector<vnpu::Vnpu> listed, calls_.list(chip, timer.left()),
                            "the vNPUs of chip ", chip, " cannot be listed");
    ASCEND_ASSIGN_OR_RETURN(const RecordStore::Contents contents, records_.ReadAll());
    ASCEND_ASSIGN_OR_RETURN(const std::optional<vnpu::Vnpu> located,
                            Locate(record, i, listed, contents, recovery, found));
    if (!located) continue;
    found[i] = *located;
    ASCEND_RETURN_IF_ERROR(calls_.destroy({.physical_id = chip,
                                           .uuid = device.chips.front().uuid,
                                           .id = located->id,
                                           .template_name = device.vnpu->template_name},
                                          timer.left()))
        .With("vNPU ", located->id, " (", device.vnpu->template_name, ") of chip ", chip,
              " cannot be destroyed; it is tried again");
    LogInfo("destroyed a vNPU", {{"claim", record.claim()},
                                 {"claimUID", record.claim_uid},
                                 {"device", device.device},
                                 {"vnpu", located->id}});
  }
  return absl::OkStatus();
}

}  // namespace ascend::kubeletplugin
