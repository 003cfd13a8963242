// What is known of the devices' health at the moment, and who wants to hear of changes.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SERVICE_HEALTH_FEED_H_
#define ASCEND_DRA_KUBELETPLUGIN_SERVICE_HEALTH_FEED_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "base/runtime/clock.h"
#include "vnpu/health/level.h"

namespace ascend::kubeletplugin {

using HealthState = vnpu::HealthState;

struct DeviceHealth {
  std::string pool;
  std::string device;
  HealthState state = HealthState::kUnknown;
  std::string message;    // for people; may be empty
  absl::Time checked_at;  // wall clock: when this was last known to be true
  friend bool operator==(const DeviceHealth&, const DeviceHealth&) = default;
};

// Thread-safe. What was not confirmed for a while is unknown to whoever reads: a monitor that is
// stuck must not keep devices healthy.
class HealthFeed {
 public:
  static constexpr absl::Duration kFreshFor = absl::Seconds(15);

  // `clock` must outlive the feed.
  explicit HealthFeed(const Clock& clock = Clock::Real()) : clock_(clock) {}
  HealthFeed(const HealthFeed&) = delete;
  HealthFeed& operator=(const HealthFeed&) = delete;

  // Takes the place of everything published before. Of two entries for one device the later counts.
  void Publish(std::vector<DeviceHealth> devices);
  // All that is published was still true at `checked_at`.
  void Confirm(absl::Time checked_at);

  // By pool and device. What was last checked more than kFreshFor ago is kUnknown, and its message
  // says since when. nullopt before the first Publish().
  std::optional<std::vector<DeviceHealth>> Current() const;

  // Runs `listener` on the publisher's thread after each Publish() and Confirm() by which a state
  // or message that Current() shows has changed. That something has become unknown by its age is
  // told to nobody. It must return quickly and must not call the feed but for Current().
  int64_t Subscribe(std::function<void()> listener);
  // Waits for a running call of the listener; none follows.
  void Unsubscribe(int64_t subscription);

 private:
  struct Entry {
    DeviceHealth health;
    absl::Duration checked;  // the same as checked_at, of the clock that never jumps
  };
  using Entries = std::map<std::pair<std::string, std::string>, Entry>;  // by pool and device

  absl::Duration ToMonotonic(absl::Time checked_at) const;
  std::vector<DeviceHealth> Shown() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs `change` on the entries, and the listeners if that can be seen.
  void Change(const std::function<void(std::optional<Entries>&)>& change);

  const Clock& clock_;
  mutable Mutex mutex_;
  std::optional<Entries> entries_ ABSL_GUARDED_BY(mutex_);

  // Held while listeners run, so that Unsubscribe can wait for them.
  Mutex listeners_mutex_;
  std::map<int64_t, std::function<void()>> listeners_ ABSL_GUARDED_BY(listeners_mutex_);
  int64_t next_subscription_ ABSL_GUARDED_BY(listeners_mutex_) = 1;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SERVICE_HEALTH_FEED_H_
