#include "kubeletplugin/service/allocations_feed.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ascend::kubeletplugin {
namespace {

namespace api = ::ascend::allocations::v1alpha1;

void FillDevice(const RecordedDevice& from, api::Device* to) {
  to->set_pool(from.pool);
  to->set_device(from.device);
  to->set_share_id(from.share_id);
  to->set_admin_access(from.admin_access);
  for (const std::string& request : from.requests) to->add_requests(request);
  for (const RecordedChip& chip : from.chips) {
    to->add_physical_ids(chip.physical_id);
    to->add_uuids(chip.uuid);
  }
  if (from.vnpu) {
    to->set_vnpu_template(from.vnpu->template_name);
    to->set_vnpu_id(from.vnpu->id);
  }
}

// But for what changes without anything having happened.
bool SameContent(const AllocationsSnapshot& a, const AllocationsSnapshot& b) {
  AllocationsSnapshot copy = a;
  copy.set_revision(b.revision());
  copy.set_pods_timestamp_seconds(b.pods_timestamp_seconds());
  return copy.SerializeAsString() == b.SerializeAsString();
}

}  // namespace

void JoinAllocations(const RecordStore::Contents& contents, const std::vector<ContainerUse>& uses,
                     AllocationsSnapshot* snapshot) {
  snapshot->set_unreadable_records(static_cast<int>(contents.unreadable.size()));
  std::map<std::pair<std::string, std::string>, std::vector<const ContainerUse*>> by_claim;
  for (const ContainerUse& use : uses) {
    by_claim[{use.pod_namespace, use.claim_name}].push_back(&use);
  }
  for (const auto& record : contents.records) {
    if (record->state != ClaimState::kCompleted) continue;  // nothing is prepared
    api::Claim* claim = snapshot->add_claims();
    claim->set_namespace_(record->claim_namespace);
    claim->set_name(record->claim_name);
    claim->set_uid(record->claim_uid);
    for (const RecordedDevice& device : record->devices) FillDevice(device, claim->add_devices());
    std::map<std::string, std::set<std::string>> pods;
    const auto users = by_claim.find({record->claim_namespace, record->claim_name});
    if (users == by_claim.end()) continue;
    for (const ContainerUse* use : users->second) {
      if (UsesClaimOf(*use, *record)) pods[use->pod_name].insert(use->container);
    }
    for (const auto& [name, containers] : pods) {
      api::Pod* pod = claim->add_pods();
      pod->set_name(name);
      for (const std::string& container : containers) pod->add_containers(container);
    }
  }
}

AllocationsFeed::AllocationsFeed(std::string driver, std::string node_name,
                                 ReadRecords read_records)
    : driver_(std::move(driver)),
      node_name_(std::move(node_name)),
      read_records_(std::move(read_records)),
      thread_([this] { Run(); }) {}

AllocationsFeed::~AllocationsFeed() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void AllocationsFeed::RecordsChanged() {
  MutexLock lock(&mutex_);
  wake_ = true;
  changed_.SignalAll();
}

void AllocationsFeed::UsesListed(const absl::StatusOr<std::vector<ContainerUse>>& uses,
                                 absl::Time now) {
  MutexLock lock(&mutex_);
  if (uses.ok()) {
    uses_ = *uses;
    uses_time_ = now;
    uses_error_.clear();
  } else {
    uses_error_ = std::string(uses.status().message());
  }
  wake_ = true;
  changed_.SignalAll();
}

std::shared_ptr<const AllocationsSnapshot> AllocationsFeed::Current() const {
  MutexLock lock(&mutex_);
  return current_;
}

int64_t AllocationsFeed::Subscribe(std::function<void()> on_change) {
  MutexLock lock(&subscribers_mutex_);
  subscribers_.emplace(++last_subscription_, std::move(on_change));
  return last_subscription_;
}

void AllocationsFeed::Unsubscribe(int64_t subscription) {
  MutexLock lock(&subscribers_mutex_);
  subscribers_.erase(subscription);
}

void AllocationsFeed::Run() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      while (!wake_ && !stop_) changed_.Wait(&mutex_);
      if (stop_) return;
      wake_ = false;
    }
    Refresh();
  }
}

void AllocationsFeed::Refresh() {
  const absl::StatusOr<RecordStore::Contents> contents = read_records_();
  auto next = std::make_shared<AllocationsSnapshot>();
  {
    MutexLock lock(&mutex_);
    if (contents.ok()) {
      next->set_driver(driver_);
      next->set_node_name(node_name_);
      JoinAllocations(*contents, uses_, next.get());
    } else if (current_ != nullptr) {
      *next = *current_;  // the last known claims
      next->set_claims_error(std::string(contents.status().message()));
    } else {
      return;  // nothing is known: readers wait
    }
    next->set_pods_timestamp_seconds(absl::ToDoubleSeconds(uses_time_ - absl::UnixEpoch()));
    next->set_pods_error(uses_error_);
    if (current_ != nullptr && SameContent(*current_, *next)) return;
    next->set_revision(current_ == nullptr ? 1 : current_->revision() + 1);
    current_ = std::move(next);
  }
  MutexLock lock(&subscribers_mutex_);
  for (const auto& [id, on_change] : subscribers_) on_change();
}

}  // namespace ascend::kubeletplugin
