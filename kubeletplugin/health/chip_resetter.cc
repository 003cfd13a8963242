#include "kubeletplugin/health/chip_resetter.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/runtime/logging.h"
#include "kubeletplugin/claims/change_signal.h"
#include "kubeletplugin/claims/chip_locks.h"
#include "kubeletplugin/claims/quarantine.h"
#include "kubeletplugin/health/chip_orders.h"
#include "kubeletplugin/health/group_use.h"
#include "vnpu/health/reset_group.h"

namespace ascend::kubeletplugin {
namespace {

// Beside the time that chips take to start: for the agent to get its turn, and to answer.
constexpr absl::Duration kMargin = absl::Minutes(1);
constexpr absl::Duration kPoll = absl::Seconds(1);
// No reset takes longer: an end beyond is that of a clock which was set back.
constexpr absl::Duration kLongest = absl::Minutes(20);

bool WantsReset(vnpu::HealthLevel level) {
  return level == vnpu::HealthLevel::kFreeRestartNpu || level == vnpu::HealthLevel::kRestartNpu;
}

bool IsWell(const vnpu::Verdict& verdict) {
  return verdict.effect == vnpu::TaintEffect::kNone && verdict.state == vnpu::HealthState::kHealthy;
}

const vnpu::Chip* Find(const vnpu::Inventory& inventory, int physical_id) {
  const auto chip = std::find_if(inventory.chips.begin(), inventory.chips.end(),
                                 [=](const vnpu::Chip& c) { return c.physical_id == physical_id; });
  return chip == inventory.chips.end() ? nullptr : &*chip;
}

// Those of the group that the agent lists and that answer.
std::set<int> Present(const vnpu::Inventory& inventory, const std::set<int>& group) {
  std::set<int> present;
  for (const vnpu::Chip& chip : inventory.chips) {
    if (group.count(chip.physical_id) != 0 && chip.health != vnpu::Health::kAbsent) {
      present.insert(chip.physical_id);
    }
  }
  return present;
}

// Whether what is under way may still be so, although nobody answered.
bool GoesOn(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

}  // namespace

ChipResetter::ChipResetter(Options options, const Paths& paths, RecordStore& records,
                           kube::EventRecorder& events, Sources sources, const Clock& clock)
    : options_(options),
      paths_(paths),
      records_(records),
      events_(events),
      sources_(std::move(sources)),
      clock_(clock) {}

std::set<int> ChipResetter::resetting() const {
  MutexLock lock(&mutex_);
  return resetting_;
}

void ChipResetter::SetResetting(std::set<int> group) {
  {
    MutexLock lock(&mutex_);
    if (resetting_ == group) return;
    resetting_ = std::move(group);
  }
  sources_.resetting_changed();
}

std::vector<ChipResetter::Sick> ChipResetter::FindSick(const ChipVerdicts& verdicts) {
  std::vector<Sick> all;
  for (const auto& [id, verdict] : verdicts) {
    if (!WantsReset(verdict.level)) continue;
    Sick sick = {.physical_id = id, .uuid = verdict.uuid, .codes = {}, .why = "", .since = {}};
    for (const vnpu::HealthCause& cause : verdict.causes) {
      if (!WantsReset(cause.level) || !cause.present) continue;
      if (sick.codes.empty()) sick.why = cause.text;  // the worst comes first
      sick.codes.insert(cause.code);
      sick.since = std::max(sick.since, cause.since);
    }
    // Else the fault has just gone.
    if (!sick.codes.empty()) all.push_back(std::move(sick));
  }
  return all;
}

absl::Duration ChipResetter::UntilCausesMayChange(const ChipVerdicts& verdicts) const {
  const bool wanted = std::any_of(verdicts.begin(), verdicts.end(),
                                  [](const auto& chip) { return WantsReset(chip.second.level); });
  return wanted && options_.enabled ? options_.self_healing : absl::InfiniteDuration();
}

void ChipResetter::Load() {
  absl::StatusOr<ResetMemory> file = ReadResetsFile(paths_.resets_file());
  const absl::Status status = file.status();
  if (file.ok()) {
    memory_ = *std::move(file);
  } else if (absl::IsNotFound(status)) {
    memory_.clear();
  } else if (absl::IsDataLoss(status)) {
    const std::string aside = absl::StrCat(paths_.resets_file(), ".damaged");
    std::rename(paths_.resets_file().c_str(), aside.c_str());
    LogError("what was known of resets of chips is lost, they are counted anew",
             {{"error", status}, {"path", aside}});
  } else if (status != load_error_) {
    LogWarning("resets of chips cannot be looked up", {{"error", status}});
  }
  load_error_ = status;
}

absl::Status ChipResetter::Save() {
  const absl::Status written = WriteResetsFile(paths_.resets_file(), memory_);
  if (!written.ok() && written != save_error_) {
    LogError("resets of chips cannot be written down, and none begins before they can",
             {{"error", written}});
  }
  save_error_ = written;
  return written;
}

void ChipResetter::TakeOver() {
  Load();
  if (memory_.empty()) return;
  absl::StatusOr<FileLock> lock = FileLock::Acquire(paths_.resets_lock(), absl::ZeroDuration());
  if (!lock.ok()) return;  // another instance is at it
  Load();
  FollowUnfinished(clock_.Now(), &*lock);
}

absl::Duration ChipResetter::Look() {
  const absl::Time now = clock_.Now();
  const std::shared_ptr<const ChipVerdicts> verdicts = sources_.verdicts();
  const std::vector<Sick> sick = options_.enabled ? FindSick(*verdicts) : std::vector<Sick>();
  if (sick.empty() && taken_over_ == nullptr) {
    Load();
    if (memory_.empty()) return UntilCausesMayChange(*verdicts);
  }
  FileLock node_lock;
  if (taken_over_ == nullptr) {
    absl::StatusOr<FileLock> lock = FileLock::Acquire(paths_.resets_lock(), absl::ZeroDuration());
    if (!lock.ok()) {
      LogVerbose(2, "another instance looks after resets", {{"error", lock.status()}});
      return options_.recheck;
    }
    node_lock = *std::move(lock);
  }
  Load();
  if (FollowUnfinished(now, &node_lock)) return kPoll;
  absl::Duration next = std::min(Forget(*verdicts, now), UntilCausesMayChange(*verdicts));
  std::map<int, std::string> refusals;
  for (const Sick& chip : sick) {
    const absl::Duration wait = UntilDue(chip, now);
    if (wait > absl::ZeroDuration()) {
      next = std::min(next, wait);
      continue;
    }
    const std::string refusal = TryReset(chip, now, &node_lock);
    if (refusal.empty()) return absl::ZeroDuration();  // nothing is as it was
    refusals[chip.physical_id] = refusal;
    if (refusals_[chip.physical_id] != refusal) {
      LogVerbose(1, "a chip that is to be reset cannot be reset now",
                 {{"chip", chip.physical_id}, {"reason", refusal}});
    }
    next = std::min(next, options_.recheck);
  }
  refusals_ = std::move(refusals);
  return next;
}

absl::Duration ChipResetter::Forget(const ChipVerdicts& verdicts, absl::Time now) {
  const auto orders = ReadChipOrders(paths_.chip_orders_directory());
  absl::Duration next = absl::InfiniteDuration();
  bool changed = false;
  for (auto entry = memory_.begin(); entry != memory_.end();) {
    const auto& [id, tries] = *entry;
    bool forget = false;
    if (orders.ok()) {
      for (const ChipOrder& order : orders->orders) {
        forget =
            forget || (order.action == ChipOrder::Action::kRelease && order.physical_id == id &&
                       order.at > tries.last && (order.uuid.empty() || order.uuid == tries.uuid));
      }
      if (forget) not_before_.erase(id);
    }
    const auto verdict = verdicts.find(id);
    if (verdict != verdicts.end() && IsWell(verdict->second)) {
      const absl::Time due =
          std::max(std::min(tries.last, now), std::min(verdict->second.since, now)) +
          options_.between;
      forget = forget || due <= now;
      if (!forget) next = std::min(next, due - now);
    }
    changed = changed || forget;
    entry = forget ? memory_.erase(entry) : std::next(entry);
  }
  // If that fails they are forgotten the next time.
  if (changed) Save().IgnoreError();
  return next;
}

bool ChipResetter::ShownAgain(const std::set<int>& group) const {
  const agent::View view = sources_.agent();
  if (!view.connected || view.inventory == nullptr ||
      view.inventory->library != vnpu::LibraryState::kReady) {
    return false;
  }
  return std::none_of(view.inventory->chips.begin(), view.inventory->chips.end(),
                      [&](const vnpu::Chip& chip) {
                        return group.count(chip.physical_id) != 0 &&
                               (!chip.stuck.empty() || chip.health == vnpu::Health::kUnknown ||
                                chip.health == vnpu::Health::kAbsent);
                      });
}

bool ChipResetter::FollowUnfinished(absl::Time now, FileLock* node_lock) {
  const auto entry = std::find_if(memory_.begin(), memory_.end(),
                                  [](const auto& chip) { return chip.second.under_way(); });
  if (entry == memory_.end()) {
    taken_over_.reset();
    return false;
  }
  ResetTries& tries = entry->second;
  bool over = tries.until <= now || tries.until > now + kLongest;
  if (!over && taken_over_ == nullptr) {
    SetResetting(tries.group);
    auto locks = LockChips(paths_, {tries.group.begin(), tries.group.end()}, options_.lock_wait,
                           SteadyNow() + options_.lock_wait);
    if (!locks.ok()) {
      LogVerbose(1, "chips that are being reset cannot be locked",
                 {{"chip", entry->first}, {"error", locks.status()}});
      return true;
    }
    locks->push_back(std::move(*node_lock));
    taken_over_ = std::make_unique<TakenOver>(TakenOver{
        .physical_id = entry->first, .since = clock_.Monotonic(), .locks = *std::move(locks)});
    LogInfo("a reset that is under way is taken over", {{"chip", entry->first}});
  }
  over = over ||
         (clock_.Monotonic() - taken_over_->since >= options_.takeover && ShownAgain(tries.group));
  if (!over) return true;
  tries.group.clear();
  if (tries.outcome.empty()) {
    tries.failed = true;
    tries.outcome = "the driver was restarted meanwhile, nobody knows how it ended";
  }
  LogInfo("a reset is over", {{"chip", entry->first}, {"outcome", tries.outcome}});
  Save().IgnoreError();
  taken_over_.reset();
  SetResetting({});
  return true;  // the lock went with it: the rest next time
}

absl::Duration ChipResetter::UntilDue(const Sick& chip, absl::Time now) {
  ResetTries& tries = memory_[chip.physical_id];
  if (tries.uuid != chip.uuid) tries = {.uuid = chip.uuid};
  const bool known =
      std::includes(tries.codes.begin(), tries.codes.end(), chip.codes.begin(), chip.codes.end());
  if (!known) {
    tries.codes.insert(chip.codes.begin(), chip.codes.end());
    tries.tries = 0;
    tries.gave_up = false;
  }
  absl::Time due = std::min(chip.since, now) + options_.self_healing;
  if (tries.last != absl::Time()) due = std::max(due, std::min(tries.last, now) + options_.between);
  if (const auto rest = not_before_.find(chip.physical_id); rest != not_before_.end()) {
    due = std::max(due, rest->second);
  }
  if (now < due) return due - now;
  if (tries.tries < kTries) return absl::ZeroDuration();
  if (!tries.gave_up) {
    tries.gave_up = true;
    if (Save().ok()) {
      Tell(/*warning=*/true, chip.physical_id,
           absl::StrCat(kTries, " resets did not mend ", chip.why,
                        "; no more is tried before another fault comes, or `ascend-dra chips "
                        "release ",
                        chip.physical_id, "`"));
    }
  }
  return absl::InfiniteDuration();
}

std::string ChipResetter::WhyInUseNow(const vnpu::Inventory& known,
                                      const std::set<int>& group) const {
  const absl::StatusOr<RecordStore::Contents> contents = records_.ReadAll();
  if (!contents.ok()) {
    return absl::StrCat("claim records cannot be read: ", contents.status().message());
  }
  return WhyInUse(group, {.inventory = known,
                          .contents = *contents,
                          .quarantine = FindQuarantine(contents->unreadable, paths_),
                          .pending = sources_.pending()});
}

std::string ChipResetter::TryReset(const Sick& chip, absl::Time now, FileLock* node_lock) {
  const agent::View view = sources_.agent();
  if (!view.connected || view.inventory == nullptr ||
      view.inventory->library != vnpu::LibraryState::kReady) {
    return "nobody can ask the chips at the moment";
  }
  if (Present(*view.inventory, {chip.physical_id}).empty()) return "the chip is not there";
  const std::shared_ptr<const vnpu::Inventory> known = sources_.known();
  const std::set<int> group =
      known == nullptr ? std::set<int>() : vnpu::ResetGroup(*known, chip.physical_id);
  if (group.empty()) return "nobody knows what is reset with the chip";
  if (std::string use = WhyInUseNow(*known, group); !use.empty()) return use;

  SetResetting(group);
  auto locks = LockChips(paths_, {group.begin(), group.end()}, options_.lock_wait,
                         SteadyNow() + options_.lock_wait);
  std::string refusal(locks.status().message());
  if (locks.ok()) {
    refusal = ResetLocked(chip, *known, group, *std::move(locks), now);
    if (refusal.empty() && taken_over_ != nullptr) {
      taken_over_->locks.push_back(std::move(*node_lock));
    }
  }
  // Of a process that ends, whoever comes next says when it is over.
  if (taken_over_ == nullptr && !stopping_) SetResetting({});
  return refusal;
}

std::string ChipResetter::ResetLocked(const Sick& chip, const vnpu::Inventory& known,
                                      const std::set<int>& group, std::vector<FileLock> locks,
                                      absl::Time now) {
  const std::shared_ptr<const vnpu::Inventory> latest = sources_.known();
  const std::vector<Sick> sick = FindSick(*sources_.verdicts());
  const bool still = std::any_of(sick.begin(), sick.end(), [&](const Sick& other) {
    return other.physical_id == chip.physical_id && other.uuid == chip.uuid;
  });
  if (!still) return "the fault has gone meanwhile";
  // What came while this waited for the locks.
  if (latest == nullptr || vnpu::ResetGroup(*latest, chip.physical_id) != group) {
    return "other chips are reset with it than before";
  }
  if (std::string use = WhyInUseNow(*latest, group); !use.empty()) return use;

  const vnpu::Chip* const target = Find(known, chip.physical_id);
  agent::ResetRequest request = {
      .physical_id = chip.physical_id, .group = {}, .boot_wait = vnpu::BootWait(target->family)};
  for (const int id : group) {
    const vnpu::Chip* const member = Find(*latest, id);
    request.group.push_back({.physical_id = id, .uuid = member == nullptr ? "" : member->uuid});
  }
  const absl::Duration timeout = request.boot_wait + kMargin;
  const std::set<int> present = Present(*sources_.agent().inventory, group);

  ResetTries& tries = memory_[chip.physical_id];
  const ResetTries before = tries;
  ++tries.tries;
  tries.last = now;
  tries.group = group;
  tries.until = now + timeout;
  tries.outcome.clear();
  tries.failed = false;
  if (const absl::Status saved = Save(); !saved.ok()) {
    tries = before;
    return std::string(saved.message());
  }
  LogWarning("a chip is reset, and those that go down with it",
             {{"chip", chip.physical_id},
              {"group", absl::StrJoin(group, ",")},
              {"why", chip.why},
              {"try", tries.tries}});
  const auto answer = sources_.reset(request, timeout);
  if (stopping_ && !answer.ok()) return "the plugin ends";
  for (const int id : group) not_before_[id] = clock_.Now() + options_.rest;
  if (absl::IsFailedPrecondition(answer.status())) {
    // Nothing was reset. Who is in the way is not seen from here, so not at once again.
    tries = before;
    Save().IgnoreError();
    not_before_[chip.physical_id] = clock_.Now() + options_.between;
    return std::string(answer.status().message());
  }
  std::string problem(answer.status().message());
  if (answer.ok()) problem = NotStarted(*answer, present);
  tries.failed = !problem.empty();
  tries.outcome = tries.failed
                      ? problem
                      : absl::StrCat("chip ", absl::StrJoin(present, ", "),
                                     present.size() == 1 ? " has" : " have", " started again");
  if (GoesOn(answer.status()) && clock_.Now() < tries.until) {
    taken_over_ = std::make_unique<TakenOver>(TakenOver{
        .physical_id = chip.physical_id, .since = clock_.Monotonic(), .locks = std::move(locks)});
  } else {
    tries.group.clear();
  }
  Save().IgnoreError();
  Tell(tries.failed, chip.physical_id,
       absl::StrCat("reset ", tries.tries, " of ", kTries, " because of ", chip.why,
                    tries.failed ? " failed: " : ": ", tries.outcome));
  return "";
}

std::string ChipResetter::NotStarted(const std::vector<agent::ChipReset>& answer,
                                     const std::set<int>& present) {
  std::set<int> missing = present;
  std::string problems;
  for (const agent::ChipReset& chip : answer) {
    if (chip.started) missing.erase(chip.physical_id);
  }
  for (const agent::ChipReset& chip : answer) {
    if (missing.count(chip.physical_id) == 0) continue;
    absl::StrAppend(&problems, problems.empty() ? "" : "; ", "chip ", chip.physical_id,
                    " has not started again: ", chip.problem);
    missing.erase(chip.physical_id);
  }
  if (!missing.empty()) {
    absl::StrAppend(&problems, problems.empty() ? "" : "; ", "nobody told of chip ",
                    absl::StrJoin(missing, ", "));
  }
  return problems;
}

void ChipResetter::Tell(bool warning, int physical_id, const std::string& message) {
  if (warning) {
    LogWarning("reset of a chip failed", {{"chip", physical_id}, {"message", message}});
  } else {
    LogInfo("a chip was reset", {{"chip", physical_id}, {"message", message}});
  }
  events_.Post({.regarding = events_.node(),
                .reason = warning ? "NpuResetFailed" : "NpuReset",
                .message = absl::StrCat("NPU chip ", physical_id, ": ", message),
                .warning = warning});
}

}  // namespace ascend::kubeletplugin
