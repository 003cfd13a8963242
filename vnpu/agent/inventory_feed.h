// The newest inventory of this process, and who wants to hear of the next.
#ifndef ASCEND_DRA_VNPU_AGENT_INVENTORY_FEED_H_
#define ASCEND_DRA_VNPU_AGENT_INVENTORY_FEED_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "vnpu/chip.h"

namespace ascend::agent {

// Thread-safe. Snapshots are immutable; the current one is never null and its revision starts at 1.
class InventoryFeed {
 public:
  // `instance` goes into every snapshot. The first one is kStarting, without chips.
  explicit InventoryFeed(std::string instance);
  InventoryFeed(const InventoryFeed&) = delete;
  InventoryFeed& operator=(const InventoryFeed&) = delete;

  const std::string& instance() const { return instance_; }
  std::shared_ptr<const vnpu::Inventory> Current() const;

  // Makes `inventory` the current snapshot if it differs in more than revision and instance, which
  // are set here. Returns whether it did. One caller at a time.
  bool Publish(vnpu::Inventory inventory);

  // Runs `listener` after each change, on the publisher's thread. It must return quickly and must
  // not call Subscribe, Unsubscribe or Publish.
  int64_t Subscribe(std::function<void()> listener);
  // Waits for a running call of the listener; none follows.
  void Unsubscribe(int64_t subscription);

  // The first snapshot seen whose revision is above `revision`; after `timeout` the current one.
  std::shared_ptr<const vnpu::Inventory> WaitNewerThan(uint64_t revision,
                                                       absl::Duration timeout) const;

 private:
  const std::string instance_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::shared_ptr<const vnpu::Inventory> current_ ABSL_GUARDED_BY(mutex_);

  // Held while listeners run, so that Unsubscribe can wait for them.
  Mutex listeners_mutex_;
  std::map<int64_t, std::function<void()>> listeners_ ABSL_GUARDED_BY(listeners_mutex_);
  int64_t next_subscription_ ABSL_GUARDED_BY(listeners_mutex_) = 1;
};

// A new value for each process: 16 hex digits of the kernel's random source.
std::string NewInstanceId();

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_INVENTORY_FEED_H_
