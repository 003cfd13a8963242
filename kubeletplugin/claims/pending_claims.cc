#include "kubeletplugin/claims/pending_claims.h"

#include <utility>

#include "kubeletplugin/claims/change_signal.h"

namespace ascend::kubeletplugin {
namespace {

// The kubelet tries again every minute or two.
constexpr absl::Duration kPendingAge = absl::Minutes(10);

}  // namespace

void PendingClaims::Set(const ClaimRecord& record) {
  Pending pending = {.devices = {}, .asked = SteadyNow()};
  for (const RecordedDevice& device : record.devices) {
    if (device.admin_access || device.published.consumes_counters.empty()) continue;
    pending.devices.push_back(device.published);
  }
  if (pending.devices.empty()) return;
  MutexLock lock(&mutex_);
  pending_[record.claim_uid] = std::move(pending);
}

void PendingClaims::Forget(const std::string& claim_uid) {
  MutexLock lock(&mutex_);
  pending_.erase(claim_uid);
}

std::vector<kube::SliceDevice> PendingClaims::Devices() {
  MutexLock lock(&mutex_);
  std::vector<kube::SliceDevice> devices;
  for (auto it = pending_.begin(); it != pending_.end();) {
    if (SteadyNow() - it->second.asked > kPendingAge) {
      it = pending_.erase(it);
      continue;
    }
    devices.insert(devices.end(), it->second.devices.begin(), it->second.devices.end());
    ++it;
  }
  return devices;
}

}  // namespace ascend::kubeletplugin
