#include "vnpu/agent/chip_turns.h"

#include "absl/strings/str_cat.h"

namespace ascend::agent {

void ChipTurns::Turn::Calling(absl::string_view function) {
  MutexLock lock(&turns_->mutex_);
  Holder& holder = turns_->holders_[KeyOf(chip_)];
  holder.function = std::string(function);
  holder.call_since = turns_->clock_.Monotonic();
}

std::unique_ptr<ChipTurns::Turn> ChipTurns::Take(dcmi::ChipAddress chip) {
  MutexLock lock(&mutex_);
  while (!closed_ && holders_.count(KeyOf(chip)) != 0) changed_.Wait(&mutex_);
  if (closed_) return nullptr;
  holders_[KeyOf(chip)].since = clock_.Monotonic();
  return std::unique_ptr<Turn>(new Turn(this, chip));
}

std::unique_ptr<ChipTurns::Turn> ChipTurns::TakeWithin(dcmi::ChipAddress chip,
                                                       absl::Duration timeout) {
  const absl::Duration end = Clock::Real().Monotonic() + timeout;
  MutexLock lock(&mutex_);
  while (!closed_ && holders_.count(KeyOf(chip)) != 0) {
    const absl::Duration left = end - Clock::Real().Monotonic();
    if (left <= absl::ZeroDuration()) return nullptr;
    changed_.WaitFor(&mutex_, left);
  }
  if (closed_) return nullptr;
  holders_[KeyOf(chip)].since = clock_.Monotonic();
  return std::unique_ptr<Turn>(new Turn(this, chip));
}

bool ChipTurns::TryTake(dcmi::ChipAddress chip) {
  MutexLock lock(&mutex_);
  if (closed_) return false;
  return holders_.try_emplace(KeyOf(chip), Holder{.reader = true, .since = clock_.Monotonic()})
      .second;
}

void ChipTurns::Release(dcmi::ChipAddress chip) {
  MutexLock lock(&mutex_);
  holders_.erase(KeyOf(chip));
  changed_.SignalAll();
}

void ChipTurns::Reading(dcmi::ChipAddress chip, absl::string_view what) {
  MutexLock lock(&mutex_);
  const auto holder = holders_.find(KeyOf(chip));
  if (holder == holders_.end()) return;
  holder->second.function.assign(what.data(), what.size());
  holder->second.call_since = clock_.Monotonic();
}

bool ChipTurns::IsStuck(const Holder& holder) const {
  return clock_.Monotonic() - holder.since > stuck_after_;
}

std::string ChipTurns::Text(const Holder& holder, absl::Duration step) const {
  const absl::Duration now = clock_.Monotonic();
  const auto seconds = [&](absl::Duration since) {
    return absl::StrCat(absl::ToInt64Seconds(absl::Floor(now - since, step)), " s");
  };
  if (holder.reader && holder.function.empty()) {
    return absl::StrCat("the chip has been read for ", seconds(holder.since));
  }
  if (holder.reader && now - holder.call_since < step) {
    return absl::StrCat("the chip has been read for ", seconds(holder.since), ", now ",
                        holder.function);
  }
  if (holder.reader) {
    return absl::StrCat("reading ", holder.function, " has not returned for ",
                        seconds(holder.call_since));
  }
  if (holder.function.empty()) {
    return absl::StrCat("calls about the chip have gone on for ", seconds(holder.since));
  }
  if (now - holder.call_since < step) {
    return absl::StrCat("calls about the chip have gone on for ", seconds(holder.since),
                        ", the last is ", holder.function);
  }
  return absl::StrCat(holder.function, " has not returned for ", seconds(holder.call_since));
}

std::string ChipTurns::Doing(dcmi::ChipAddress chip) const {
  MutexLock lock(&mutex_);
  const auto holder = holders_.find(KeyOf(chip));
  return holder == holders_.end() ? "" : Text(holder->second, absl::Seconds(1));
}

std::string ChipTurns::Stuck(dcmi::ChipAddress chip) const {
  MutexLock lock(&mutex_);
  const auto holder = holders_.find(KeyOf(chip));
  if (holder == holders_.end() || !IsStuck(holder->second)) return "";
  return Text(holder->second, absl::Seconds(10));
}

bool ChipTurns::IsStuck(dcmi::ChipAddress chip) const {
  MutexLock lock(&mutex_);
  const auto holder = holders_.find(KeyOf(chip));
  return holder != holders_.end() && IsStuck(holder->second);
}

void ChipTurns::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  changed_.SignalAll();
}

}  // namespace ascend::agent
