#include "kubeletplugin/service/health_feed.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace ascend::kubeletplugin {
namespace {

// The same text at every look, or each would be a change.
std::string StaleMessage(const DeviceHealth& health) {
  const std::string since =
      health.checked_at == absl::InfinitePast()
          ? "never checked"
          : absl::StrCat(
                "not checked since ",
                absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", health.checked_at, absl::UTCTimeZone()));
  return health.message.empty() ? since : absl::StrCat(since, "; before: ", health.message);
}

bool LooksTheSame(const std::vector<DeviceHealth>& a, const std::vector<DeviceHealth>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const DeviceHealth& one, const DeviceHealth& other) {
                      return one.pool == other.pool && one.device == other.device &&
                             one.state == other.state && one.message == other.message;
                    });
}

}  // namespace

// A time that has not come yet, by a clock that was set back, is now.
absl::Duration HealthFeed::ToMonotonic(absl::Time checked_at) const {
  return clock_.Monotonic() - std::max(clock_.Now() - checked_at, absl::ZeroDuration());
}

void HealthFeed::Publish(std::vector<DeviceHealth> devices) {
  Change([&](std::optional<Entries>& entries) {
    entries.emplace();
    for (DeviceHealth& device : devices) {
      std::pair<std::string, std::string> key(device.pool, device.device);
      const absl::Duration checked = ToMonotonic(device.checked_at);
      entries->insert_or_assign(std::move(key),
                                Entry{.health = std::move(device), .checked = checked});
    }
  });
}

void HealthFeed::Confirm(absl::Time checked_at) {
  Change([&](std::optional<Entries>& entries) {
    if (!entries) return;
    const absl::Duration checked = ToMonotonic(checked_at);
    for (auto& [key, entry] : *entries) {
      if (entry.checked >= checked) continue;
      entry.checked = checked;
      entry.health.checked_at = checked_at;
    }
  });
}

void HealthFeed::Change(const std::function<void(std::optional<Entries>&)>& change) {
  {
    MutexLock lock(&mutex_);
    const bool known_before = entries_.has_value();
    const std::vector<DeviceHealth> before = Shown();
    change(entries_);
    if (known_before == entries_.has_value() && LooksTheSame(before, Shown())) return;
  }
  MutexLock lock(&listeners_mutex_);
  for (const auto& [subscription, listener] : listeners_) listener();
}

std::optional<std::vector<DeviceHealth>> HealthFeed::Current() const {
  MutexLock lock(&mutex_);
  if (!entries_) return std::nullopt;
  return Shown();
}

std::vector<DeviceHealth> HealthFeed::Shown() const {
  std::vector<DeviceHealth> shown;
  if (!entries_) return shown;
  shown.reserve(entries_->size());
  const absl::Duration oldest = clock_.Monotonic() - kFreshFor;
  for (const auto& [key, entry] : *entries_) {
    DeviceHealth& health = shown.emplace_back(entry.health);
    if (entry.checked >= oldest) continue;
    health.message = StaleMessage(health);
    health.state = HealthState::kUnknown;
  }
  return shown;
}

int64_t HealthFeed::Subscribe(std::function<void()> listener) {
  MutexLock lock(&listeners_mutex_);
  const int64_t subscription = next_subscription_++;
  listeners_.emplace(subscription, std::move(listener));
  return subscription;
}

void HealthFeed::Unsubscribe(int64_t subscription) {
  MutexLock lock(&listeners_mutex_);
  listeners_.erase(subscription);
}

}  // namespace ascend::kubeletplugin
