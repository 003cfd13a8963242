#include "vnpu/agent/inventory_feed.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/runtime/clock.h"

namespace ascend::agent {

InventoryFeed::InventoryFeed(std::string instance) : instance_(std::move(instance)) {
  auto first = std::make_shared<vnpu::Inventory>();
  first->revision = 1;
  first->agent_instance = instance_;
  first->library = vnpu::LibraryState::kStarting;
  first->library_message = "the first enumeration of the NPUs has not ended yet";
  current_ = std::move(first);
}

std::shared_ptr<const vnpu::Inventory> InventoryFeed::Current() const {
  MutexLock lock(&mutex_);
  return current_;
}

bool InventoryFeed::Publish(vnpu::Inventory inventory) {
  const std::shared_ptr<const vnpu::Inventory> before = Current();
  inventory.revision = before->revision;
  inventory.agent_instance = instance_;
  if (inventory == *before) return false;

  ++inventory.revision;
  auto next = std::make_shared<const vnpu::Inventory>(std::move(inventory));
  {
    MutexLock lock(&mutex_);
    current_ = std::move(next);
    changed_.SignalAll();
  }
  MutexLock lock(&listeners_mutex_);
  for (const auto& [subscription, listener] : listeners_) listener();
  return true;
}

int64_t InventoryFeed::Subscribe(std::function<void()> listener) {
  MutexLock lock(&listeners_mutex_);
  const int64_t subscription = next_subscription_++;
  listeners_.emplace(subscription, std::move(listener));
  return subscription;
}

void InventoryFeed::Unsubscribe(int64_t subscription) {
  MutexLock lock(&listeners_mutex_);
  listeners_.erase(subscription);
}

std::shared_ptr<const vnpu::Inventory> InventoryFeed::WaitNewerThan(uint64_t revision,
                                                                    absl::Duration timeout) const {
  const absl::Duration end = Clock::Real().Monotonic() + timeout;
  MutexLock lock(&mutex_);
  while (current_->revision <= revision) {
    const absl::Duration left = end - Clock::Real().Monotonic();
    if (left <= absl::ZeroDuration()) break;
    changed_.WaitFor(&mutex_, left);
  }
  return current_;
}

std::string NewInstanceId() {
  std::random_device random;
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
}

}  // namespace ascend::agent
