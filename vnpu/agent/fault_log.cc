#include "vnpu/agent/fault_log.h"

#include <algorithm>
#include <utility>

namespace ascend::agent {
namespace {

constexpr size_t kSerialsKept = 16;  // of the last events about a code
constexpr size_t kMostCounts = 4096;

vnpu::FaultSeverity SeverityOf(dcmi::FaultSeverity severity) {
  switch (severity) {
    case dcmi::FaultSeverity::kWarning:
      return vnpu::FaultSeverity::kWarning;
    case dcmi::FaultSeverity::kMinor:
      return vnpu::FaultSeverity::kMinor;
    case dcmi::FaultSeverity::kMajor:
      return vnpu::FaultSeverity::kMajor;
    case dcmi::FaultSeverity::kCritical:
      return vnpu::FaultSeverity::kCritical;
    case dcmi::FaultSeverity::kUnknown:
      break;
  }
  return vnpu::FaultSeverity::kUnknown;
}

}  // namespace

void FaultLog::SetListener(std::function<void()> listener) {
  MutexLock lock(&listener_mutex_);
  listener_ = std::move(listener);
}

uint64_t FaultLog::BeginLook() {
  MutexLock lock(&mutex_);
  return ++sequence_;
}

FaultLog::ChipLog& FaultLog::LogOf(const vnpu::Chip& chip) {
  ChipLog& log = chips_[chip.physical_id];
  if (log.uuid != chip.uuid && !chip.uuid.empty()) {
    if (!log.uuid.empty()) log.entries.clear();  // another chip
    log.uuid = chip.uuid;
  }
  return log;
}

void FaultLog::SetChips(const std::vector<vnpu::Chip>& chips) {
  MutexLock lock(&mutex_);
  for (auto& [physical_id, log] : chips_) log.logic_id = -1;
  for (const vnpu::Chip& chip : chips) LogOf(chip).logic_id = chip.logic_id;
}

void FaultLog::Occurred(Entry& entry, absl::Duration now) {
  ++entry.occurrences;
  entry.last_occurrence = now;
  entry.shown = true;
  entry.told_by = Source::kNone;
}

void FaultLog::Merge(uint64_t began, vnpu::Chip& chip) {
  if (!chip.faults.has_value()) return;
  const absl::Duration now = clock_.Monotonic();
  MutexLock lock(&mutex_);
  ChipLog& log = LogOf(chip);
  std::map<uint64_t, bool> listed;
  for (const vnpu::Fault& fault : *chip.faults) {
    listed[fault.code] = true;
    Entry& entry = log.entries[fault.code];
    if (!fault.text.empty()) entry.text = fault.text;
    if (entry.active || entry.last_event > began) continue;
    entry.active = true;
    if (entry.told_by == Source::kEvent && now - entry.last_occurrence <= kSame) {
      entry.told_by = Source::kNone;  // the list was slower than the event
      continue;
    }
    Occurred(entry, now);
    entry.told_by = Source::kList;
  }
  for (auto& [code, entry] : log.entries) {
    if (entry.active && listed.count(code) != 0 && entry.told_by == Source::kEvent) {
      entry.told_by = Source::kNone;
    }
    if (listed.count(code) == 0 && entry.last_event <= began) entry.active = false;
  }
  Show(log, now, chip);
}

void FaultLog::Refresh(vnpu::Chip& chip) {
  if (!chip.faults.has_value()) return;
  const absl::Duration now = clock_.Monotonic();
  MutexLock lock(&mutex_);
  Show(LogOf(chip), now, chip);
}

bool FaultLog::Note(const dcmi::FaultEvent& event) {
  if (!Take(event)) return false;
  MutexLock lock(&listener_mutex_);
  if (listener_ != nullptr) listener_();
  return true;
}

bool FaultLog::Take(const dcmi::FaultEvent& event) {
  const absl::Duration now = clock_.Monotonic();
  MutexLock lock(&mutex_);
  const auto chip = std::find_if(chips_.begin(), chips_.end(), [&event](const auto& known) {
    return event.logic_id >= 0 && known.second.logic_id == event.logic_id;
  });
  if (chip == chips_.end()) return false;
  std::map<uint64_t, Entry>& entries = chip->second.entries;
  if (event.assertion == dcmi::FaultAssertion::kRecovered) {
    // Whether it is gone is for the list to say: the same code may have come more than once.
    const auto entry = entries.find(event.code);
    if (entry != entries.end()) entry->second.told_by = Source::kNone;
    return true;
  }
  Entry& entry = entries[event.code];
  // A driver that does not count says 0.
  if (event.serial != 0) {
    if (std::find(entry.serials.begin(), entry.serials.end(), event.serial) !=
        entry.serials.end()) {
      return false;
    }
    entry.serials.push_back(event.serial);
    if (entry.serials.size() > kSerialsKept) entry.serials.pop_front();
  }
  if (event.severity != dcmi::FaultSeverity::kUnknown) entry.severity = SeverityOf(event.severity);
  if (entry.text.empty()) entry.text = event.name;
  const bool one_shot = event.assertion == dcmi::FaultAssertion::kOneShot;
  if (!one_shot && entry.told_by == Source::kList && now - entry.last_occurrence <= kSame) {
    entry.told_by = Source::kNone;  // the event was slower than the list
  } else {
    const Source told_by = one_shot || entry.active ? Source::kNone : Source::kEvent;
    Occurred(entry, now);
    entry.told_by = told_by;
  }
  if (!one_shot) {
    entry.active = true;
    entry.last_event = ++sequence_;
  }
  Prune(chip->second, now);
  return true;
}

void FaultLog::Prune(ChipLog& log, absl::Duration now) {
  std::vector<Entry*> shown;
  for (auto& [code, entry] : log.entries) {
    if (!entry.active && now - entry.last_occurrence > kKept) entry.shown = false;
    if (entry.shown) shown.push_back(&entry);
  }
  if (shown.size() > kMostFaults) {
    // Those to be left out first: inactive before active, and then the oldest.
    std::sort(shown.begin(), shown.end(), [](const Entry* a, const Entry* b) {
      return std::pair(a->active, a->last_occurrence) < std::pair(b->active, b->last_occurrence);
    });
    for (size_t i = 0; i < shown.size() - kMostFaults; ++i) shown[i]->shown = false;
  }
  if (log.entries.size() > kMostCounts) {
    std::erase_if(log.entries, [](const auto& entry) { return !entry.second.shown; });
  }
}

void FaultLog::Show(ChipLog& log, absl::Duration now, vnpu::Chip& chip) {
  Prune(log, now);
  chip.faults->clear();
  for (const auto& [code, entry] : log.entries) {
    if (!entry.shown) continue;
    chip.faults->push_back({.code = code,
                            .active = entry.active,
                            .occurrences = entry.occurrences,
                            .severity = entry.severity,
                            .text = entry.text});
  }
}

}  // namespace ascend::agent
