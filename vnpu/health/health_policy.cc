#include "vnpu/health/health_policy.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "base/core/strings.h"
#include "vnpu/health/chip_judge.h"
#include "vnpu/health/chip_memory.h"

namespace ascend::vnpu {
namespace {

constexpr size_t kMaxReason = 200;

// What is saved has microseconds; what is compared with it must not have more.
absl::Time ToMicros(absl::Time time) { return absl::FromUnixMicros(absl::ToUnixMicros(time)); }

void Clamp(absl::Time now, absl::Time* time) { *time = std::min(*time, now); }
void Clamp(absl::Time now, std::optional<absl::Time>* time) {
  if (time->has_value()) Clamp(now, &**time);
}

// After the clock was set back: nothing happened in the future.
void ClampTimes(const FaultTable& table, absl::Time now, ChipMemory* chip) {
  Clamp(now, &chip->last_seen);
  Clamp(now, &chip->network_down_since);
  Clamp(now, &chip->recovered_at);
  Clamp(now, &chip->since);
  if (chip->isolated.has_value()) Clamp(now, &chip->isolated->since);
  for (auto& [key, cause] : chip->causes) {
    Clamp(now, &cause.since);
    cause.until.reset();  // the quiet time begins again
  }
  for (auto& [code, state] : chip->codes) {
    Clamp(now, &state.active_since);
    Clamp(now, &state.isolated_since);
    for (absl::Time& time : state.times) Clamp(now, &time);
    const FrequencyRule* const rule = table.FrequencyOf(code);
    Clamp(now + (rule == nullptr ? absl::ZeroDuration() : rule->release), &state.isolated_until);
  }
}

std::string LibraryProblem(const Inventory& inventory) {
  return absl::StrCat(
      "the library is ", LibraryStateName(inventory.library),
      inventory.library_message.empty() ? "" : absl::StrCat(" (", inventory.library_message, ")"));
}

}  // namespace

class HealthPolicy::Impl {
 public:
  Impl(FaultTable table, std::string boot_id)
      : table_(std::move(table)), boot_id_(std::move(boot_id)) {}

  bool Update(const Inventory* inventory, bool agent_known, absl::Time time);
  const std::map<int, Verdict>& verdicts() const { return verdicts_; }
  absl::Time next_change() const { return next_change_; }
  absl::Status Isolate(absl::string_view uuid, absl::string_view reason, absl::Time now);
  absl::Status Release(absl::string_view uuid, absl::Time now);
  std::string Save() const { return MemoryToJson(boot_id_, chips_); }
  absl::Status Restore(absl::string_view json);

 private:
  bool Again(absl::Time now) {
    return Update(inventory_.has_value() ? &*inventory_ : nullptr, agent_known_, now);
  }
  absl::StatusOr<ChipMemory*> Named(absl::string_view uuid);
  std::vector<const Chip*> MatchChips();
  size_t Remember(const Chip& chip, const std::set<size_t>& taken);
  void Forget(absl::Time now);
  void MakeVerdicts();

  const FaultTable table_;
  const std::string boot_id_;
  std::optional<Inventory> inventory_;  // the last one, for what people do between two looks
  bool agent_known_ = true;
  absl::Time now_ = absl::InfinitePast();  // of the last Update()
  std::vector<ChipMemory> chips_;
  std::map<int, Verdict> verdicts_;
  absl::Time next_change_ = absl::InfiniteFuture();
};

bool HealthPolicy::Impl::Update(const Inventory* inventory, bool agent_known, absl::Time time) {
  const absl::Time now = ToMicros(time);
  if (now < now_ || now_ == absl::InfinitePast()) {  // also the first time: the clock may have
    for (ChipMemory& chip : chips_) ClampTimes(table_, now, &chip);  // been set between processes
  }
  now_ = now;
  agent_known_ = agent_known;
  if (inventory == nullptr) {
    inventory_.reset();
  } else if (!inventory_.has_value() || *inventory_ != *inventory) {
    inventory_ = *inventory;
  }
  const std::vector<const Chip*> matched = MatchChips();
  ChipLook look;
  look.any = inventory_.has_value() || !agent_known;
  look.ready = inventory_.has_value() && agent_known && inventory_->library == LibraryState::kReady;
  if (inventory_.has_value()) look.agent_instance = inventory_->agent_instance;
  if (!agent_known) {
    look.unknown = "the driver's agent on the node does not answer";
  } else if (look.any && !look.ready) {
    look.unknown = LibraryProblem(*inventory_);
  }
  next_change_ = absl::InfiniteFuture();
  for (size_t i = 0; i < chips_.size(); ++i) {
    ChipMemory& memory = chips_[i];
    look.chip = matched[i];
    look.lost.clear();
    if (look.chip != nullptr || memory.listed) memory.last_seen = now;
    memory.listed = look.chip != nullptr;
    if (look.ready && look.chip == nullptr && memory.on_boot) {
      look.lost = "the chip was there on this boot, and the library does not list it any more";
      for (const SkippedChip& skipped : inventory_->skipped) {
        if (skipped.card_id == memory.card_id && skipped.device_id == memory.device_id) {
          look.lost = absl::StrCat("the chip cannot be used any more: ", skipped.reason);
        }
      }
    }
    if (!memory.on_boot) continue;
    next_change_ = std::min(next_change_, JudgeChip(table_, look, now, memory));
  }
  Forget(now);
  std::map<int, Verdict> before = std::move(verdicts_);
  MakeVerdicts();
  return before != verdicts_;
}

// The chip that `chip` is, among those that no other one is; a new one if there is none.
size_t HealthPolicy::Impl::Remember(const Chip& chip, const std::set<size_t>& taken) {
  std::optional<size_t> found;
  const auto newer = [this](size_t a, size_t b) {
    return std::tie(chips_[a].listed, chips_[a].last_seen) >
           std::tie(chips_[b].listed, chips_[b].last_seen);
  };
  for (size_t i = 0; i < chips_.size(); ++i) {
    if (taken.count(i) > 0) continue;
    if (!chip.uuid.empty() && chips_[i].uuid == chip.uuid) return i;
    // One of them without a uuid: the place decides.
    if (chips_[i].physical_id == chip.physical_id &&
        (chip.uuid.empty() || chips_[i].uuid.empty()) && (!found.has_value() || newer(i, *found))) {
      found = i;
    }
  }
  if (found.has_value()) return *found;
  chips_.emplace_back();
  return chips_.size() - 1;
}

// The chip of the inventory for each one that is remembered, new ones included.
std::vector<const Chip*> HealthPolicy::Impl::MatchChips() {
  std::map<size_t, const Chip*> matched;
  std::set<size_t> taken;
  std::set<std::string> uuids;
  for (const bool with_uuid : {true, false}) {  // those that are certain come first
    if (!inventory_.has_value()) break;
    for (const Chip& chip : inventory_->chips) {
      if (chip.uuid.empty() == with_uuid) continue;
      // Two chips cannot have one uuid; if a library says so, the second is a chip of its own.
      Chip anonymous;
      anonymous.physical_id = chip.physical_id;
      const bool repeated = with_uuid && !uuids.insert(chip.uuid).second;
      const size_t at = Remember(repeated ? anonymous : chip, taken);
      taken.insert(at);
      matched[at] = &chip;
      ChipMemory& memory = chips_[at];
      if (!repeated && !chip.uuid.empty()) memory.uuid = chip.uuid;
      memory.physical_id = chip.physical_id;
      memory.card_id = chip.card_id;
      memory.device_id = chip.device_id;
      memory.on_boot = true;
    }
  }
  std::vector<const Chip*> result(chips_.size(), nullptr);
  for (const auto& [at, chip] : matched) result[at] = chip;
  return result;
}

void HealthPolicy::Impl::Forget(absl::Time now) {
  for (auto at = chips_.begin(); at != chips_.end();) {
    // What a person isolated stays isolated, however long it is away for repair.
    const bool kept = at->listed || at->isolated.has_value();
    if (!kept && at->last_seen + kForgetAfter <= now) {
      at = chips_.erase(at);
      continue;
    }
    if (!kept) next_change_ = std::min(next_change_, at->last_seen + kForgetAfter);
    ++at;
  }
  while (chips_.size() > kMaxRememberedChips) {
    const auto worth = [](const ChipMemory& chip) {
      return std::make_tuple(chip.listed, chip.isolated.has_value(), chip.last_seen);
    };
    const auto least = std::min_element(
        chips_.begin(), chips_.end(),
        [&worth](const ChipMemory& a, const ChipMemory& b) { return worth(a) < worth(b); });
    if (least->listed) break;
    chips_.erase(least);
  }
}

void HealthPolicy::Impl::MakeVerdicts() {
  verdicts_.clear();
  std::map<int, const ChipMemory*> shown;
  for (const ChipMemory& chip : chips_) {
    if (!chip.on_boot || !chip.judged) continue;
    const ChipMemory*& place = shown[chip.physical_id];
    if (place == nullptr ||
        std::tie(chip.listed, chip.last_seen) > std::tie(place->listed, place->last_seen)) {
      place = &chip;
    }
  }
  for (const auto& [physical_id, chip] : shown) verdicts_[physical_id] = VerdictOf(table_, *chip);
}

absl::StatusOr<ChipMemory*> HealthPolicy::Impl::Named(absl::string_view uuid) {
  for (ChipMemory& chip : chips_) {
    if (chip.uuid.empty() ? absl::StrCat(chip.physical_id) == uuid : chip.uuid == uuid) {
      return &chip;
    }
  }
  return absl::NotFoundError(absl::StrCat("no chip \"", uuid, "\" is known on this node"));
}

absl::Status HealthPolicy::Impl::Isolate(absl::string_view uuid, absl::string_view reason,
                                         absl::Time now) {
  ASCEND_ASSIGN_OR_RETURN(ChipMemory* const chip, Named(uuid));
  const absl::string_view text = absl::StripAsciiWhitespace(reason);
  if (text.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("chip ", uuid, ": isolation needs a reason, for those who find it"));
  }
  const absl::Time since = chip->isolated.has_value() ? chip->isolated->since : ToMicros(now);
  chip->isolated = Isolation{.reason = std::string(CutUtf8(text, kMaxReason)), .since = since};
  Again(now);
  return absl::OkStatus();
}

absl::Status HealthPolicy::Impl::Release(absl::string_view uuid, absl::Time now) {
  ASCEND_ASSIGN_OR_RETURN(ChipMemory* const chip, Named(uuid));
  chip->isolated.reset();
  for (auto& [code, state] : chip->codes) {
    state.times.clear();
    state.isolated_since.reset();
    state.isolated_until = absl::InfinitePast();
  }
  chip->flaps = 0;
  chip->recovered_at.reset();
  chip->forget_network = true;
  Again(now);
  return absl::OkStatus();
}

absl::Status HealthPolicy::Impl::Restore(absl::string_view json) {
  inventory_.reset();
  agent_known_ = true;
  now_ = absl::InfinitePast();
  chips_.clear();
  verdicts_.clear();
  next_change_ = absl::InfiniteFuture();
  ASCEND_ASSIGN_OR_RETURN(chips_, MemoryFromJson(json, boot_id_), "health memory");
  MakeVerdicts();
  return absl::OkStatus();
}

HealthPolicy::HealthPolicy(FaultTable table, std::string boot_id)
    : impl_(std::make_unique<Impl>(std::move(table), std::move(boot_id))) {}
HealthPolicy::~HealthPolicy() = default;
HealthPolicy::HealthPolicy(HealthPolicy&&) noexcept = default;
HealthPolicy& HealthPolicy::operator=(HealthPolicy&&) noexcept = default;

bool HealthPolicy::Update(const Inventory* inventory, bool agent_known, absl::Time now) {
  return impl_->Update(inventory, agent_known, now);
}
const std::map<int, Verdict>& HealthPolicy::verdicts() const { return impl_->verdicts(); }
absl::Time HealthPolicy::next_change() const { return impl_->next_change(); }
absl::Status HealthPolicy::Isolate(absl::string_view uuid, absl::string_view reason,
                                   absl::Time now) {
  return impl_->Isolate(uuid, reason, now);
}
absl::Status HealthPolicy::Release(absl::string_view uuid, absl::Time now) {
  return impl_->Release(uuid, now);
}
std::string HealthPolicy::Save() const { return impl_->Save(); }
absl::Status HealthPolicy::Restore(absl::string_view json) { return impl_->Restore(json); }

}  // namespace ascend::vnpu
