#include "kubeletplugin/inventory_memory.h"

#include <utility>

#include "base/runtime/logging.h"
#include "kubeletplugin/health/lost_chips.h"
#include "kubeletplugin/inventory_file.h"

namespace ascend::kubeletplugin {
namespace {

bool Enumerated(const agent::View& view) {
  return view.inventory != nullptr && view.inventory->library != vnpu::LibraryState::kStarting;
}

}  // namespace

InventoryMemory::InventoryMemory(Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {
  absl::StatusOr<vnpu::Inventory> last = ReadInventoryFile(options_.file, options_.boot_id);
  if (last.ok()) {
    of_file_ = std::make_shared<const vnpu::Inventory>(*std::move(last));
    known_ = of_file_;
  } else if (!absl::IsNotFound(last.status())) {
    LogWarning("the last inventory is of no use", {{"error", last.status()}});
  }
}

std::shared_ptr<const vnpu::Inventory> InventoryMemory::Known(const agent::View& view) {
  MutexLock lock(&mutex_);
  if (!Enumerated(view) || view.inventory == told_) return known_;
  told_ = view.inventory;
  known_ = std::make_shared<const vnpu::Inventory>(WithLostChips(*told_, known_.get()));
  const absl::Status written = WriteInventoryFile(options_.file, options_.boot_id, *known_);
  if (!written.ok()) LogWarning("the inventory was not saved", {{"error", written}});
  return known_;
}

HealthMonitor::Input InventoryMemory::ForHealth(const agent::View& view) {
  Known(view);
  const absl::Duration now = clock_.Monotonic();
  MutexLock lock(&mutex_);
  absl::Duration away = view.disconnected_for;
  if (view.connected && Enumerated(view)) {
    starting_since_.reset();
    return {.inventory = told_, .agent_known = true, .ask_again_after = std::nullopt};
  }
  if (view.connected) {
    if (!starting_since_) starting_since_ = now;
    away = now - *starting_since_;
  }
  if (away >= options_.grace) {
    return {.inventory = told_, .agent_known = false, .ask_again_after = std::nullopt};
  }
  return {.inventory = told_, .agent_known = true, .ask_again_after = options_.grace - away};
}

}  // namespace ascend::kubeletplugin
