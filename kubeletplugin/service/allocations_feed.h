// Who holds which device, joined from the claim records and the kubelet's PodResources.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SERVICE_ALLOCATIONS_FEED_H_
#define ASCEND_DRA_KUBELETPLUGIN_SERVICE_ALLOCATIONS_FEED_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "allocations.pb.h"
#include "base/core/mutex.h"
#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/claims/shared_use.h"

namespace ascend::kubeletplugin {

using AllocationsSnapshot = ::ascend::allocations::v1alpha1::AllocationsSnapshot;

// Fills `claims`: every record, and the containers that use it (UsesClaimOf). Claims without a
// record are left out, whatever the kubelet says.
void JoinAllocations(const RecordStore::Contents& contents, const std::vector<ContainerUse>& uses,
                     AllocationsSnapshot* snapshot);

// Thread-safe. Works on a thread of its own, so that telling it something costs nothing.
class AllocationsFeed {
 public:
  using ReadRecords = std::function<absl::StatusOr<RecordStore::Contents>()>;

  AllocationsFeed(std::string driver, std::string node_name, ReadRecords read_records);
  // Nobody may be subscribed any more.
  ~AllocationsFeed();
  AllocationsFeed(const AllocationsFeed&) = delete;
  AllocationsFeed& operator=(const AllocationsFeed&) = delete;

  // A record was written or removed.
  void RecordsChanged();
  // What the kubelet answered at `now`. After an error the last good answer stays.
  void UsesListed(const absl::StatusOr<std::vector<ContainerUse>>& uses, absl::Time now);

  // Null until the records were read for the first time.
  std::shared_ptr<const AllocationsSnapshot> Current() const;

  // `on_change` runs after each change on the feed's thread; it must return quickly and neither
  // subscribe nor unsubscribe.
  int64_t Subscribe(std::function<void()> on_change);
  // Waits for a running `on_change`; none runs afterwards.
  void Unsubscribe(int64_t subscription);

 private:
  void Run();
  void Refresh();

  const std::string driver_;
  const std::string node_name_;
  const ReadRecords read_records_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool wake_ ABSL_GUARDED_BY(mutex_) = true;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<ContainerUse> uses_ ABSL_GUARDED_BY(mutex_);
  absl::Time uses_time_ ABSL_GUARDED_BY(mutex_) = absl::UnixEpoch();
  std::string uses_error_ ABSL_GUARDED_BY(mutex_) = "the kubelet has not been asked yet";
  std::shared_ptr<const AllocationsSnapshot> current_ ABSL_GUARDED_BY(mutex_);

  Mutex subscribers_mutex_;  // held while they are told
  int64_t last_subscription_ ABSL_GUARDED_BY(subscribers_mutex_) = 0;
  std::map<int64_t, std::function<void()>> subscribers_ ABSL_GUARDED_BY(subscribers_mutex_);

  std::thread thread_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SERVICE_ALLOCATIONS_FEED_H_
