#include "kubeletplugin/claims/engine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/core/file.h"
#include "base/core/file_lock.h"
#include "base/core/status_macros.h"
#include "base/runtime/logging.h"
#include "kubeletplugin/claims/claim_gate.h"
#include "kubeletplugin/claims/prepare_error.h"
#include "kubeletplugin/claims/quarantine.h"

namespace ascend::kubeletplugin {
namespace {

constexpr absl::Duration kGetTimeout = absl::Seconds(10);
constexpr absl::Duration kMinBackoff = absl::Milliseconds(50);
constexpr absl::Duration kMaxBackoff = absl::Seconds(2);
// The kubelet tries again every minute or two.
constexpr absl::Duration kPendingAge = absl::Minutes(10);
constexpr absl::Duration kRetryPause = absl::Milliseconds(100);
constexpr absl::Duration kListTimeout = absl::Seconds(1);
// After a start the agent may still be loading the library; a claim that is allocated already was
// allocated from an inventory, so one will come.
constexpr absl::Duration kInventoryWait = absl::Seconds(10);
// Longer than any operation takes. A claim lock without a record that is older is left over from a
// Prepare that failed and was never unprepared, a temporary file from a crash.
constexpr absl::Duration kStaleAge = RecordStore::kStaleTempFileAge;

// Never jumps, unlike absl::Now().
absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

std::string Name(const ClaimReference& claim) {
  return absl::StrCat(claim.namespace_name, "/", claim.name);
}

// What is held, of what a claim wants and what another one has: a chip, or a part of one.
std::string NameOfHeld(const RecordedDevice& wanted, const RecordedDevice& held) {
  if (wanted.vnpu && held.vnpu) return held.device;
  for (const RecordedChip& chip : held.chips) {
    for (const RecordedChip& other : wanted.chips) {
      if (chip.physical_id != other.physical_id) continue;
      return absl::StrCat(held.vnpu ? "a part of chip " : "chip ", chip.physical_id);
    }
  }
  return held.device;
}

// Its CDI file must not be used: nothing was answered yet or any more, or the vNPUs in it are those
// of another boot.
bool HasVoidVnpus(const ClaimRecord& record, const std::string& boot_id) {
  return record.state != ClaimState::kCompleted ||
         (record.boot_id != boot_id &&
          std::any_of(record.devices.begin(), record.devices.end(),
                      [](const RecordedDevice& device) { return device.vnpu.has_value(); }));
}

// A vNPU of a prepared claim vanished and is being made anew: what is there stays as it is.
bool IsBeingMended(const ClaimRecord& record) {
  return std::any_of(
      record.devices.begin(), record.devices.end(),
      [](const RecordedDevice& device) { return device.vnpu.has_value() && device.vnpu->begun; });
}

bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsUnauthenticated(status);
}

}  // namespace

ClaimEngine::ClaimEngine(Options options, const Paths& paths, kube::Client& client,
                         RecordStore& records, cdi::Store& cdi_store, Injector injector,
                         InventorySource inventory)
    : options_(std::move(options)),
      paths_(paths),
      client_(client),
      records_(records),
      cdi_store_(cdi_store),
      injector_(std::move(injector)),
      inventory_(std::move(inventory)) {}

ClaimEngine::~ClaimEngine() {
  StopAndJoin();
  cdi_watch_.reset();  // its thread uses the rest
}

void ClaimEngine::StopAndJoin() {
  Stop();
  if (restorer_.joinable()) restorer_.join();
}

void ClaimEngine::Stop() {
  MutexLock lock(&mutex_);
  stop_ = true;
  changed_.SignalAll();
  restore_wanted_.Signal();
}

void ClaimEngine::SetProcessSource(ProcessSource processes) { processes_ = std::move(processes); }

void ClaimEngine::SetVnpuCalls(VnpuCalls calls) {
  vnpu_calls_ = calls;
  vnpus_ = std::make_unique<ClaimVnpus>(options_.boot_id, records_, std::move(calls));
}

absl::Status ClaimEngine::Start() {
  ASCEND_RETURN_IF_ERROR(MakeDirectories(paths_.locks_directory(), 0700, /*durable=*/true));
  ASCEND_RETURN_IF_ERROR(records_.Prepare());
  ASCEND_ASSIGN_OR_RETURN(RecordStore::Contents contents, records_.ReadAll());
  for (const UnreadableRecord& bad : contents.unreadable) {
    LogError("claim record cannot be read, its devices stay withheld",
             {{"claimUID", bad.claim_uid}, {"error", bad.error}});
  }
  // A CDI directory that cannot be written to fails claims, not the start: Unprepare, slices and
  // the message in the pods' events must go on working.
  if (absl::Status status = cdi_store_.Prepare(); !status.ok()) {
    LogError("CDI directory is not usable, claims cannot be prepared",
             {{"path", cdi_store_.directory()}, {"error", status}});
  } else if (status = cdi_store_.RemoveStaleTempFiles(paths_.cdi_file_prefix(), kStaleAge);
             !status.ok()) {
    LogWarning("stale temporary CDI files remain", {{"error", status}});
  }
  if (const absl::Status status = RemoveStaleMetadataTempFiles(paths_, kStaleAge); !status.ok()) {
    LogWarning("stale temporary metadata files remain", {{"error", status}});
  }
  const bool swept = SweepOrphans(contents);
  SweepStaleClaimLocks();
  // The watch first, so that nothing that happens from here on is missed.
  absl::StatusOr<std::unique_ptr<DirectoryWatch>> watch =
      DirectoryWatch::Start(cdi_store_.directory(), [this] {
        MutexLock lock(&mutex_);
        restore_ = true;
        restore_wanted_.Signal();
      });
  if (watch.ok()) {
    cdi_watch_ = *std::move(watch);
  } else {
    LogWarning("CDI files that vanish are noticed late",
               {{"path", cdi_store_.directory()},
                {"after", absl::FormatDuration(options_.restore_retry)},
                {"error", watch.status()}});
  }
  const bool restored = RestoreCdiFiles(Restore::kAll);
  restorer_ = std::thread([this, swept, restored] { RestoreLoop(swept, restored); });
  return absl::OkStatus();
}

void ClaimEngine::SetPending(const ClaimRecord& record) {
  Pending pending = {.devices = {}, .asked = SteadyNow()};
  for (const RecordedDevice& device : record.devices) {
    if (device.admin_access || device.published.consumes_counters.empty()) continue;
    pending.devices.push_back(device.published);
  }
  if (pending.devices.empty()) return;
  MutexLock lock(&mutex_);
  pending_[record.claim_uid] = std::move(pending);
}

std::vector<kube::SliceDevice> ClaimEngine::PendingDevices() {
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

void ClaimEngine::NotifyChange() {
  MutexLock lock(&mutex_);
  ++changes_;
  changed_.SignalAll();
}

uint64_t ClaimEngine::ChangeCount() {
  MutexLock lock(&mutex_);
  return changes_;
}

absl::Status ClaimEngine::WaitForChange(uint64_t seen, absl::Time deadline) {
  MutexLock lock(&mutex_);
  while (!stop_ && changes_ == seen) {
    const absl::Duration left = deadline - SteadyNow();
    if (left <= absl::ZeroDuration()) return absl::OkStatus();
    changed_.WaitFor(&mutex_, left);
  }
  if (stop_) {
    return WithReason(
        absl::UnavailableError("the driver is being stopped; the kubelet will ask the next one"),
        PrepareError::kSuperseded);
  }
  return absl::OkStatus();
}

absl::Status ClaimEngine::WaitToRetry(uint64_t seen, absl::Time deadline) {
  const absl::Time not_before = std::min(deadline, SteadyNow() + kRetryPause);
  ASCEND_RETURN_IF_ERROR(WaitForChange(seen, deadline));
  while (SteadyNow() < not_before) {
    ASCEND_RETURN_IF_ERROR(WaitForChange(ChangeCount(), not_before));
  }
  return absl::OkStatus();
}

absl::StatusOr<kube::ResourceClaim> ClaimEngine::GetClaim(const ClaimReference& reference,
                                                          absl::Time deadline) {
  absl::Duration backoff = kMinBackoff;
  while (true) {
    const absl::Duration left = deadline - SteadyNow();
    absl::StatusOr<kube::ResourceClaim> claim = client_.GetResourceClaim(
        reference.namespace_name, reference.name, std::min(left, kGetTimeout));
    if (absl::IsNotFound(claim.status())) {
      return Annotate(claim.status(),
                      "the claim does not exist (any more): delete the pod, its controller makes "
                      "both anew");
    }
    if (claim.ok() || !IsTransient(claim.status())) return claim;
    const absl::Duration pause =
        std::max(backoff, kube::RetryAfter(claim.status()).value_or(absl::ZeroDuration()));
    if (SteadyNow() + pause >= deadline) return claim;
    LogVerbose(2, "reading the claim failed, trying again",
               {{"claim", Name(reference)}, {"error", claim.status()}});
    // Nothing tells when the API server is well again: this is a back-off, not synchronisation.
    const absl::Time until = SteadyNow() + pause;
    while (SteadyNow() < until) ASCEND_RETURN_IF_ERROR(WaitForChange(ChangeCount(), until));
    backoff = std::min(backoff * 2, kMaxBackoff);
  }
}

absl::StatusOr<std::shared_ptr<const vnpu::Inventory>> ClaimEngine::WaitForInventory(
    absl::Time deadline) {
  deadline = std::min(deadline, SteadyNow() + kInventoryWait);
  while (true) {
    const uint64_t seen = ChangeCount();
    if (std::shared_ptr<const vnpu::Inventory> inventory = inventory_()) return inventory;
    if (SteadyNow() >= deadline) {
      return absl::UnavailableError(
          "the chips of this node are not known yet: ascend-npu-agent has not answered since the "
          "plugin started; see the agent container's log");
    }
    ASCEND_RETURN_IF_ERROR(WaitForChange(seen, deadline));
  }
}

absl::StatusOr<ClaimPlan> ClaimEngine::MakePlan(const ClaimReference& reference,
                                                const kube::ResourceClaim& claim,
                                                absl::Time deadline) {
  const PlanInputs inputs = {.paths = paths_,
                             .node_name = options_.node_name,
                             .boot_id = options_.boot_id,
                             .devices = options_.devices,
                             .now = absl::Now()};
  ASCEND_ASSIGN_OR_RETURN(const std::vector<kube::DeviceResult> results,
                          ResultsForUs(inputs, reference, claim));
  if (results.empty()) return ClaimPlan();
  ASCEND_ASSIGN_OR_RETURN(const std::shared_ptr<const vnpu::Inventory> inventory,
                          WaitForInventory(deadline));
  const absl::StatusOr<std::shared_ptr<const ClaimRecord>> recorded = records_.Read(reference.uid);
  return MakeClaimPlan(inputs, reference, claim, results, *inventory,
                       recorded.ok() ? recorded->get() : nullptr);
}

absl::StatusOr<std::string> ClaimEngine::FindHolder(const std::string& claim_uid,
                                                    const ClaimPlan& plan) {
  ASCEND_ASSIGN_OR_RETURN(const RecordStore::Contents contents, records_.ReadAll());
  std::set<int> held;  // by this claim or, as shares or other parts, beside it
  for (const auto& record : contents.records) {
    const bool own = record->claim_uid == claim_uid;
    for (const RecordedDevice& device : record->devices) {
      if (device.admin_access) continue;
      for (const RecordedChip& chip : device.chips) held.insert(chip.physical_id);
      if (own) continue;
      for (const RecordedDevice& wanted : plan.record.devices) {
        if (!Conflict(wanted, device)) continue;
        return absl::StrCat(
            NameOfHeld(wanted, device), " is still prepared for claim ", record->claim(), " (UID ",
            record->claim_uid,
            record->state == ClaimState::kReleased
                ? "), whose pod has ended: its vNPU still has to be destroyed"
                : "): it is released when the kubelet has stopped that claim's pod");
      }
    }
  }
  if (contents.unreadable.empty()) return std::string();
  const Quarantine quarantine = FindQuarantine(contents.unreadable, paths_);
  for (const std::vector<int>* ids : {&plan.exclusive_ids, &plan.shared_ids, &plan.divided_ids}) {
    for (const int id : *ids) {
      const UnreadableRecord* bad = quarantine.Find(id, claim_uid, held.count(id) != 0);
      if (bad == nullptr) continue;
      return absl::StrCat(
          "chip ", id, " is withheld: it may belong to the claim with UID ", bad->claim_uid,
          ", whose record cannot be read (", bad->error.message(),
          "). It is released when the kubelet unprepares that claim; if that claim's pods are gone "
          "for good, remove ",
          JoinPath(records_.directory(), bad->claim_uid));
    }
  }
  return std::string();
}

std::string ClaimEngine::FindStrayProcess(const ClaimPlan& plan) {
  const std::shared_ptr<const vnpu::Inventory> inventory = inventory_();
  if (inventory == nullptr || !processes_) return "";
  std::vector<int> suspects;
  for (const vnpu::Chip& chip : inventory->chips) {
    if (!chip.busy.has_value() || chip.busy->empty()) continue;
    const std::vector<int>& ids = plan.exclusive_ids;
    if (std::binary_search(ids.begin(), ids.end(), chip.physical_id)) {
      suspects.push_back(chip.physical_id);
    }
  }
  if (suspects.empty()) return "";
  // The inventory shows the agent's last look; what it saw may have ended with the claim before.
  const auto answer = processes_(suspects);
  if (!answer.ok()) return "";
  // A monitoring pod with admin access may have a process on any chip.
  std::set<int> monitored;
  if (const auto contents = records_.ReadAll(); contents.ok()) {
    for (const auto& record : contents->records) {
      for (const RecordedDevice& device : record->devices) {
        if (!device.admin_access) continue;
        for (const RecordedChip& chip : device.chips) monitored.insert(chip.physical_id);
      }
    }
  }
  for (const vnpu::ChipProcesses& chip : *answer) {
    if (!chip.known || chip.processes.empty() || monitored.count(chip.physical_id) != 0) continue;
    const vnpu::Process& process = chip.processes.front();
    return absl::StrCat("chip ", chip.physical_id, " is in use by process ", process.pid,
                        process.name.empty() ? "" : absl::StrCat(" (", process.name, ")"),
                        " on the node, which belongs to no prepared claim: stop it (a container "
                        "outside Kubernetes, or left over), then the pod starts by itself");
  }
  return "";
}

std::string ClaimEngine::FindStray(const ClaimPlan& plan) {
  std::string stray = FindStrayProcess(plan);
  return stray.empty() ? FindForeignVnpu(plan) : stray;
}

std::string ClaimEngine::FindForeignVnpu(const ClaimPlan& plan) {
  const std::shared_ptr<const vnpu::Inventory> inventory = inventory_();
  if (inventory == nullptr || !vnpu_calls_.list) return "";
  for (const vnpu::Chip& chip : inventory->chips) {
    const std::vector<int>& ids = plan.exclusive_ids;
    if (!std::binary_search(ids.begin(), ids.end(), chip.physical_id)) continue;
    const bool unknown = !chip.partitioning_error.empty();
    if (!unknown && (!chip.partitioning || chip.partitioning->vnpus.empty())) continue;
    // The inventory shows the agent's last look: the claim before may just have given it back.
    const auto listed = vnpu_calls_.list(chip.physical_id, kListTimeout);
    if (!listed.ok() || listed->empty()) continue;
    return absl::StrCat("chip ", chip.physical_id, " is divided: vNPU ", listed->front().id, " (",
                        listed->front().template_name,
                        ") is on it, which belongs to no claim: whoever made it has to destroy it "
                        "(npu-smi set -t destroy-vnpu) before the chip can be used whole");
  }
  return "";
}

bool ClaimEngine::VnpuRecovery() const {
  const std::shared_ptr<const vnpu::Inventory> inventory = inventory_();
  // Products that cannot tell have no such mode.
  return inventory != nullptr && inventory->vnpu_recovery.value_or(false);
}

absl::Status ClaimEngine::ProvideVnpus(ClaimRecord* record, absl::Time deadline, bool* stored) {
  if (vnpus_ == nullptr) return absl::UnimplementedError("this driver cannot make vNPUs");
  bool written = false;
  const absl::Status provided =
      vnpus_->Provide(record, VnpuRecovery(), deadline - SteadyNow(), &written);
  if (written) *stored = false;
  ASCEND_RETURN_IF_ERROR(provided);
  injector_.WaitForVnpuNodes(*record, std::min(options_.node_wait, deadline - SteadyNow()));
  record->state = ClaimState::kCompleted;
  return absl::OkStatus();
}

absl::Status ClaimEngine::WithdrawVnpus(const ClaimRecord& record, absl::Time deadline) {
  if (!record.has_managed_vnpus()) return absl::OkStatus();
  if (vnpus_ == nullptr) return absl::UnimplementedError("this driver cannot destroy vNPUs");
  // Whether those of another boot are back is not known before the agent has answered.
  if (record.boot_id != options_.boot_id && inventory_() == nullptr) {
    return absl::UnavailableError("ascend-npu-agent has not answered since the plugin started");
  }
  return vnpus_->Withdraw(record, VnpuRecovery(), deadline - SteadyNow());
}

void ClaimEngine::Undo(const ClaimRecord& record) {
  absl::Status undone = RemoveInjection(record.claim_uid);
  if (record.has_managed_vnpus()) {
    undone.Update(WithdrawVnpus(record, SteadyNow() + options_.undo_budget));
    // As long as it names something on the hardware it stays: the next call goes on from there.
    if (undone.ok()) {
      undone = records_.Remove(record.claim_uid);
      NotifyChange();
    }
  }
  if (!undone.ok()) {
    LogWarning("a failed prepare left something, the next call for the claim removes it",
               {{"claim", record.claim()}, {"claimUID", record.claim_uid}, {"error", undone}});
  }
}

absl::StatusOr<std::vector<FileLock>> ClaimEngine::LockChips(const std::vector<int>& physical_ids,
                                                             absl::Time deadline) {
  std::vector<FileLock> locks;  // in ascending order everywhere, so no two callers deadlock
  for (const int id : physical_ids) {
    ASCEND_ASSIGN_OR_RETURN(
        FileLock lock,
        WithReason(FileLock::Acquire(paths_.chip_lock(id),
                                     std::min(options_.lock_wait, deadline - SteadyNow())),
                   PrepareError::kLock),
        "chip ", id);
    locks.push_back(std::move(lock));
  }
  return locks;
}

absl::Status ClaimEngine::CheckReplacesDamaged(const ClaimRecord& record,
                                               const absl::Status& damage) {
  ASCEND_ASSIGN_OR_RETURN(const RecordStore::Contents contents, records_.ReadAll());
  std::set<int> before, now;
  for (const UnreadableRecord& bad : contents.unreadable) {
    if (bad.claim_uid == record.claim_uid) before = ChipsOf(bad, paths_);
  }
  for (const RecordedDevice& device : record.devices) {
    for (const RecordedChip& chip : device.chips) now.insert(chip.physical_id);
  }
  if (before == now) return absl::OkStatus();
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "the claim was prepared before, its record is damaged (", damage.message(), ") and ",
          before.empty() ? "nothing tells which chips it held"
                         : absl::StrCat("it held chip ", absl::StrJoin(before, ", ")),
          ": delete the claim's pods; when they have stopped, the kubelet unprepares the claim, "
          "which removes the record")),
      PrepareError::kRecordUnreadable);
}

absl::Status ClaimEngine::CheckKnownIdentity(const ClaimRecord& record) const {
  const std::shared_ptr<const vnpu::Inventory> inventory = inventory_();
  return inventory == nullptr ? absl::OkStatus() : CheckIdentity(record, *inventory);
}

std::vector<PreparedDevice> ClaimEngine::Answer(const ClaimRecord& record,
                                                const std::vector<MetadataFile>& metadata) const {
  std::vector<PreparedDevice> answer;
  answer.reserve(record.devices.size());
  for (const RecordedDevice& device : record.devices) {
    answer.push_back({.requests = device.requests,
                      .pool = device.pool,
                      .device = device.device,
                      .share_id = device.share_id,
                      .cdi_device_ids = {paths_.cdi_device_id(device.cdi_device)}});
  }
  // Once per request, with its first device, behind that device's own id: the kubelet names a
  // device by its first id.
  for (const MetadataFile& file : metadata) {
    for (PreparedDevice& device : answer) {
      const auto& requests = device.requests;
      if (std::find(requests.begin(), requests.end(), file.request) == requests.end()) continue;
      device.cdi_device_ids.push_back(paths_.cdi_device_id(file.cdi_device));
      break;
    }
  }
  return answer;
}

absl::Status ClaimEngine::WriteInjection(const ClaimRecord& record,
                                         const std::vector<MetadataFile>& metadata,
                                         const cdi::Store::WriteOptions& options) {
  ASCEND_RETURN_IF_ERROR(WithReason(injector_.CheckNodes(record), PrepareError::kDeviceNode));
  ASCEND_ASSIGN_OR_RETURN(const cdi::Spec spec,
                          WithReason(injector_.BuildSpec(paths_.cdi_kind(), record, metadata),
                                     PrepareError::kDeviceNode));
  ASCEND_RETURN_IF_ERROR(WriteMetadataFiles(record, paths_, metadata))
      .With("the device metadata cannot be written; check that ",
            paths_.device_metadata_directory(), " is writable and has room");
  ASCEND_RETURN_IF_ERROR(
      WithReason(cdi_store_.Write(paths_.cdi_file(record.claim_uid), spec, options),
                 PrepareError::kCdiFile))
      .With("the CDI file cannot be written; check that ", cdi_store_.directory(),
            " on the node is writable for the driver and has room");
  return absl::OkStatus();
}

absl::Status ClaimEngine::RemoveInjection(const std::string& claim_uid) {
  ASCEND_RETURN_IF_ERROR(cdi_store_.Remove(paths_.cdi_file(claim_uid))).With("CDI file");
  ASCEND_RETURN_IF_ERROR(RemoveMetadataFiles(claim_uid, paths_)).With("device metadata");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PreparedDevice>> ClaimEngine::PrepareInsideGate(
    const ClaimReference& claim, ClaimPlan plan, absl::Time deadline) {
  const absl::Time holder_deadline = std::min(deadline, SteadyNow() + options_.holder_wait);
  const absl::Time busy_deadline = std::min(deadline, SteadyNow() + options_.busy_wait);
  const absl::Time agent_deadline = std::min(deadline, SteadyNow() + options_.agent_wait);
  while (true) {
    const uint64_t seen = ChangeCount();
    ASCEND_ASSIGN_OR_RETURN(std::vector<FileLock> chip_locks,
                            LockChips(plan.physical_ids, deadline));
    ASCEND_ASSIGN_OR_RETURN(const std::string holder, FindHolder(claim.uid, plan));
    if (!holder.empty()) {
      chip_locks.clear();
      if (SteadyNow() >= holder_deadline) {
        return WithReason(absl::FailedPreconditionError(holder), PrepareError::kChipHeld);
      }
      ASCEND_RETURN_IF_ERROR(WaitForChange(seen, holder_deadline)).With(holder);
      continue;
    }

    absl::StatusOr<std::shared_ptr<const ClaimRecord>> existing = records_.Read(claim.uid);
    if (existing.ok()) {
      if (!SameAllocation(**existing, plan.record)) {
        return absl::FailedPreconditionError(
            (*existing)->state == ClaimState::kReleased
                ? "a vNPU of the claim's former allocation is on a chip that is away: it has to be "
                  "destroyed first, which happens when the chip is back or the node is rebooted"
                : "the claim is still prepared with another allocation: the kubelet has to "
                  "unprepare it first, which it does when the claim's earlier pod has stopped");
      }
      ASCEND_RETURN_IF_ERROR(CheckKnownIdentity(**existing));
      KeepKnownFacts(**existing, &plan.record);
    } else if (absl::IsDataLoss(existing.status())) {
      ASCEND_RETURN_IF_ERROR(CheckReplacesDamaged(plan.record, existing.status()));
    } else if (!absl::IsNotFound(existing.status())) {
      // Not seen this time; or a newer driver knows more about this claim than we could write.
      return existing.status();
    } else if (const std::string stray = FindStray(plan); !stray.empty()) {
      chip_locks.clear();
      if (SteadyNow() >= busy_deadline) {
        return WithReason(absl::FailedPreconditionError(stray), PrepareError::kChipHeld);
      }
      ASCEND_RETURN_IF_ERROR(WaitForChange(seen, busy_deadline)).With(stray);
      continue;
    }
    // Whether the disk has what `existing` says.
    bool stored = existing.ok();
    if (!existing.ok() && !plan.divided_ids.empty()) plan.record.state = ClaimState::kStarted;
    absl::Status written =
        plan.divided_ids.empty() ? absl::OkStatus() : ProvideVnpus(&plan.record, deadline, &stored);
    if (absl::IsUnavailable(written) && SteadyNow() < agent_deadline) {
      chip_locks.clear();
      // What it may have made is found by the record, if it came so far.
      ASCEND_RETURN_IF_ERROR(WaitToRetry(seen, agent_deadline)).With(written.message());
      continue;
    }
    const std::vector<MetadataFile> metadata = MetadataFilesOf(plan.record, paths_);
    // Written again even if identical: some runtimes keep a device's numbers until its file
    // changes.
    if (written.ok()) {
      written =
          WriteInjection(plan.record, metadata, {.rewrite_identical = true, .durable = false});
    }
    if (written.ok() && (!stored || **existing != plan.record)) {
      written = Annotate(WithReason(records_.Write(plan.record), PrepareError::kRecordWrite),
                         absl::StrCat("the claim record cannot be written; check that ",
                                      records_.directory(), " is writable and has room"));
      if (written.ok()) NotifyChange();
    } else if (written.ok()) {
      written = WithReason(records_.Sync(), PrepareError::kRecordWrite);
    }
    if (!written.ok()) {
      // A damaged record keeps its CDI file: that is what still withholds its chips. A completed
      // one stays, too: its container may run.
      if (absl::IsNotFound(existing.status()) ||
          (existing.ok() && (*existing)->state != ClaimState::kCompleted)) {
        Undo(plan.record);
      }
      return written;
    }
    return Answer(plan.record, metadata);
  }
}

absl::StatusOr<std::vector<PreparedDevice>> ClaimEngine::Prepare(const ClaimReference& reference) {
  const absl::Time start = SteadyNow();
  const absl::Time deadline = start + options_.prepare_budget;
  const auto prepare = [&]() -> absl::StatusOr<std::vector<PreparedDevice>> {
    if (!IsSafeClaimUid(reference.uid)) {
      return absl::InvalidArgumentError(
          absl::StrCat("claim UID \"", reference.uid, "\" is not acceptable"));
    }
    ASCEND_ASSIGN_OR_RETURN(ClaimGate gate, ClaimGate::Open(paths_.claim_lock(reference.uid)));
    ASCEND_ASSIGN_OR_RETURN(const kube::ResourceClaim claim, GetClaim(reference, deadline));
    ASCEND_ASSIGN_OR_RETURN(ClaimPlan plan, MakePlan(reference, claim, deadline));
    if (plan.record.devices.empty()) return std::vector<PreparedDevice>();
    SetPending(plan.record);
    ASCEND_RETURN_IF_ERROR(gate.Enter(std::min(options_.lock_wait, deadline - SteadyNow())));
    return PrepareInsideGate(reference, std::move(plan), deadline);
  };
  absl::StatusOr<std::vector<PreparedDevice>> result = prepare();
  if (result.ok()) {
    MutexLock lock(&mutex_);
    pending_.erase(reference.uid);
  }
  const double ms = absl::ToDoubleMilliseconds(SteadyNow() - start);
  if (!result.ok()) {
    LogError("claim could not be prepared", {{"claim", Name(reference)},
                                             {"claimUID", reference.uid},
                                             {"ms", ms},
                                             {"error", result.status()}});
    return Annotate(result.status(), absl::StrCat("claim ", Name(reference)));
  }
  LogInfo("claim prepared", {{"claim", Name(reference)},
                             {"claimUID", reference.uid},
                             {"devices", absl::StrJoin(*result, ",",
                                                       [](std::string* out, const auto& device) {
                                                         absl::StrAppend(out, device.device);
                                                       })},
                             {"ms", ms}});
  return result;
}

absl::Status ClaimEngine::Unprepare(const ClaimReference& reference) {
  return Unprepare(reference, Which::kAny);
}

absl::Status ClaimEngine::Unprepare(const ClaimReference& reference, Which which) {
  // A UID that no record can have was never prepared.
  if (!IsSafeClaimUid(reference.uid)) return absl::OkStatus();
  const absl::Time start = SteadyNow();
  if (which == Which::kAny) {  // what is carried on may meet the next Prepare of the same UID
    MutexLock lock(&mutex_);
    pending_.erase(reference.uid);
  }
  bool had_record = false;
  const auto unprepare = [&]() -> absl::Status {
    const std::string lock = paths_.claim_lock(reference.uid);
    const bool reap = which == Which::kReleased;  // in the background, where others must not wait
    absl::StatusOr<ClaimGate> gate =
        EnterNewest(lock, reap ? absl::ZeroDuration() : options_.lock_wait);
    if (absl::IsResourceExhausted(gate.status()) &&
        absl::IsNotFound(records_.Read(reference.uid).status()) &&
        absl::IsNotFound(ClaimGate::OpenExisting(lock).status())) {
      // A full disk has no room for the lock of a claim that was never prepared and that no call is
      // preparing: its pod must be able to end.
      return RemoveInjection(reference.uid);
    }
    ASCEND_RETURN_IF_ERROR(gate.status());
    if (which == Which::kReleased) {
      const auto record = records_.Read(reference.uid);
      if (!record.ok() || (*record)->state != ClaimState::kReleased) return absl::OkStatus();
    }
    ASCEND_ASSIGN_OR_RETURN(had_record, records_.Contains(reference.uid));
    ASCEND_RETURN_IF_ERROR(RemoveInjection(reference.uid));
    if (had_record) {
      ASCEND_ASSIGN_OR_RETURN(const bool released, ReleaseHardware(reference.uid, which));
      if (released) {
        ASCEND_RETURN_IF_ERROR(records_.Remove(reference.uid)).With("claim record");
      }
      NotifyChange();
    } else {
      ASCEND_RETURN_IF_ERROR(records_.Sync()).With("claim records");
    }
    return gate->EndGeneration();
  };
  absl::Status status = unprepare();
  if (!status.ok()) {
    if (which == Which::kReleased) {  // tried again and again: the call that failed has said it
      LogVerbose(2, "what is left of a claim cannot be removed yet",
                 {{"claim", Name(reference)}, {"claimUID", reference.uid}, {"error", status}});
      return status;
    }
    LogError("claim could not be unprepared",
             {{"claim", Name(reference)}, {"claimUID", reference.uid}, {"error", status}});
    return Annotate(status, absl::StrCat("claim ", Name(reference)));
  }
  if (had_record) {
    LogInfo("claim unprepared", {{"claim", Name(reference)},
                                 {"claimUID", reference.uid},
                                 {"ms", absl::ToDoubleMilliseconds(SteadyNow() - start)}});
  } else {
    LogVerbose(2, "claim was not prepared, nothing to unprepare",
               {{"claim", Name(reference)}, {"claimUID", reference.uid}});
  }
  return status;
}

absl::StatusOr<bool> ClaimEngine::ReleaseHardware(const std::string& claim_uid, Which which) {
  if (vnpus_ == nullptr) return true;
  const absl::StatusOr<std::shared_ptr<const ClaimRecord>> record = records_.Read(claim_uid);
  // What is damaged names nothing; what it made is then a vNPU that belongs to nobody.
  if (absl::IsDataLoss(record.status()) || absl::IsUnimplemented(record.status())) {
    LogWarning("the record of a claim that ends cannot be read: a vNPU of it may stay on the node",
               {{"claimUID", claim_uid}, {"error", record.status()}});
    return true;
  }
  if (absl::IsNotFound(record.status())) return true;
  ASCEND_RETURN_IF_ERROR(record.status());
  if (!(*record)->has_managed_vnpus()) return true;
  const absl::Time deadline =
      SteadyNow() + (which == Which::kReleased ? options_.reap_budget : options_.destroy_budget);
  std::set<int> ids;
  for (const RecordedChip& chip : ChipsOf(**record)) ids.insert(chip.physical_id);
  ASCEND_ASSIGN_OR_RETURN(const std::vector<FileLock> locks,
                          LockChips({ids.begin(), ids.end()}, deadline));
  absl::Status marked;
  if ((*record)->state != ClaimState::kReleased) {
    // From now on nobody restores its CDI file, and whatever interrupts this, it is carried on.
    ClaimRecord released = **record;
    released.state = ClaimState::kReleased;
    marked = Annotate(records_.Write(released), "claim record");
    // A full disk must not keep a claim from ending.
    if (!marked.ok() && !absl::IsResourceExhausted(marked)) return marked;
  }
  const absl::Time agent_deadline = std::min(deadline, SteadyNow() + options_.agent_wait);
  uint64_t seen = ChangeCount();
  absl::Status withdrawn = WithdrawVnpus(**record, deadline);
  while (absl::IsUnavailable(withdrawn) && !HasLostChip(**record) && SteadyNow() < agent_deadline &&
         WaitToRetry(seen, agent_deadline).ok()) {
    seen = ChangeCount();
    withdrawn = WithdrawVnpus(**record, deadline);
  }
  if (withdrawn.ok()) return true;
  if (which == Which::kAny) {
    MutexLock lock(&mutex_);
    restore_ = true;  // the reaper's business, too
    restore_wanted_.Signal();
  }
  if (!HasLostChip(**record)) return withdrawn;
  // The pod must be able to end although its chip is away; what is on it is not forgotten.
  ASCEND_RETURN_IF_ERROR(marked);
  if (which == Which::kAny) {
    LogWarning("the chip of a claim that ends is away, its vNPU is destroyed when it is back",
               {{"claim", (*record)->claim()}, {"claimUID", claim_uid}, {"error", withdrawn}});
  }
  return false;
}

bool ClaimEngine::HasLostChip(const ClaimRecord& record) const {
  const std::shared_ptr<const vnpu::Inventory> inventory = inventory_();
  if (inventory == nullptr || inventory->library != vnpu::LibraryState::kReady) return false;
  const std::vector<RecordedChip> chips = ChipsOf(record);
  return std::any_of(chips.begin(), chips.end(), [&](const RecordedChip& recorded) {
    return std::none_of(
        inventory->chips.begin(), inventory->chips.end(), [&](const vnpu::Chip& chip) {
          return chip.physical_id == recorded.physical_id && chip.health != vnpu::Health::kAbsent;
        });
  });
}

bool ClaimEngine::ReapReleased() {
  const absl::StatusOr<RecordStore::Contents> contents = records_.ReadAll();
  if (!contents.ok()) return false;
  bool complete = true;
  for (const auto& record : contents->records) {
    if (record->state != ClaimState::kReleased) continue;
    if (record->boot_id == options_.boot_id && HasLostChip(*record)) {
      complete = false;
      continue;
    }
    // The same as if the kubelet had asked again, which it does not.
    const absl::Status ended = Unprepare({.namespace_name = record->claim_namespace,
                                          .name = record->claim_name,
                                          .uid = record->claim_uid},
                                         Which::kReleased);
    complete =
        complete && ended.ok() && records_.Contains(record->claim_uid).value_or(true) == false;
  }
  return complete;
}

bool ClaimEngine::SweepOrphans(const RecordStore::Contents& contents) {
  bool complete = true;
  std::set<std::string> claims;
  if (const auto files = cdi_store_.List(paths_.cdi_file_prefix()); files.ok()) {
    for (const std::string& file : *files) claims.insert(paths_.claim_of_cdi_file(file));
  } else {
    LogWarning("CDI files could not be listed", {{"error", files.status()}});
    complete = false;
  }
  if (const auto uids = ClaimsWithMetadata(paths_); uids.ok()) {
    claims.insert(uids->begin(), uids->end());
  } else {
    LogWarning("device metadata could not be listed", {{"error", uids.status()}});
    complete = false;
  }
  for (const auto& record : contents.records) claims.erase(record->claim_uid);
  for (const UnreadableRecord& bad : contents.unreadable) claims.erase(bad.claim_uid);
  for (const std::string& uid : claims) {
    if (!IsSafeClaimUid(uid)) continue;
    // Another instance may be in the middle of preparing this claim: look again inside its gate.
    // A generation that exists is left alone: a Prepare that has begun makes the files anew.
    const std::string lock = paths_.claim_lock(uid);
    absl::StatusOr<ClaimGate> gate = ClaimGate::OpenExisting(lock);
    const bool exists = !absl::IsNotFound(gate.status());
    if (!exists) gate = ClaimGate::Open(lock);
    const absl::Status entered = gate.ok() ? gate->Enter(absl::ZeroDuration()) : gate.status();
    if (!entered.ok()) {
      // Whoever holds the lock, or has just unprepared the claim, needs no broom.
      complete = complete && (absl::IsDeadlineExceeded(entered) || absl::IsAborted(entered));
      continue;
    }
    if (!absl::IsNotFound(records_.Read(uid).status())) continue;
    absl::Status removed = RemoveInjection(uid);
    if (removed.ok() && !exists) removed = gate->EndGeneration();
    complete = complete && removed.ok();
    LogInfo("removed the CDI file and metadata of a claim without a record",
            {{"claimUID", uid}, {"result", removed}});
    if (removed.ok() && options_.orphan_removed) options_.orphan_removed(Orphan::kCdiFile);
  }
  return complete;
}

void ClaimEngine::SweepStaleClaimLocks() {
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(paths_.locks_directory());
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string uid = Paths::claim_of_lock(name);
    if (uid.empty()) continue;
    struct stat info;
    const std::string path = JoinPath(paths_.locks_directory(), name);
    if (::stat(path.c_str(), &info) != 0) continue;
    if (absl::Now() - absl::FromTimeT(info.st_mtime) <= kStaleAge) continue;
    // Only inside the gate: another instance may be using this very lock.
    absl::StatusOr<ClaimGate> gate = ClaimGate::OpenExisting(path);
    if (!gate.ok() || !gate->Enter(absl::ZeroDuration()).ok()) continue;
    if (!absl::IsNotFound(records_.Read(uid).status())) continue;
    if (const absl::Status ended = gate->EndGeneration(); !ended.ok()) {
      LogWarning("stale lock file remains", {{"error", ended}});
    } else if (options_.orphan_removed) {
      options_.orphan_removed(Orphan::kClaimLock);
    }
  }
}

absl::StatusOr<bool> ClaimEngine::RestoreCdiFile(const ClaimRecord& listed, Restore which) {
  const std::string lock = paths_.claim_lock(listed.claim_uid);
  // Inside the gate: the file may be missing because the claim is being unprepared. A generation is
  // made only for a record that is there: Unprepare removes the record before the lock file, so one
  // that has gone stays gone.
  absl::StatusOr<ClaimGate> gate = ClaimGate::OpenExisting(lock);
  if (absl::IsNotFound(gate.status())) {
    if (absl::IsNotFound(records_.Read(listed.claim_uid).status())) return false;
    gate = ClaimGate::Open(lock);
  }
  ASCEND_RETURN_IF_ERROR(gate.status());
  // At a start all must be done; later on a claim that is busy must not keep the others waiting.
  const absl::Duration wait = which == Restore::kAll ? options_.lock_wait : absl::ZeroDuration();
  if (const absl::Status entered = gate->Enter(wait); !entered.ok()) {
    if (absl::IsAborted(entered)) return false;  // unprepared meanwhile
    return entered;
  }
  const absl::StatusOr<std::shared_ptr<const ClaimRecord>> record = records_.Read(listed.claim_uid);
  if (absl::IsNotFound(record.status())) return false;
  ASCEND_RETURN_IF_ERROR(record.status());
  // The kubelet asks for these again; until then a node of that number may be another one's.
  if (HasVoidVnpus(**record, options_.boot_id)) {
    ASCEND_RETURN_IF_ERROR(RemoveInjection(listed.claim_uid));
    return false;
  }
  if (IsBeingMended(**record)) return false;
  // After a reboot a node of the recorded number may be another chip.
  ASCEND_RETURN_IF_ERROR(CheckKnownIdentity(**record));
  ASCEND_RETURN_IF_ERROR(WriteInjection(**record, MetadataFilesOf(**record, paths_), {}));
  return true;
}

bool ClaimEngine::RestoreCdiFiles(Restore which) {
  const absl::StatusOr<RecordStore::Contents> contents = records_.ReadAll();
  if (!contents.ok()) {
    LogError("claim records could not be listed", {{"error", contents.status()}});
    return false;
  }
  const absl::StatusOr<std::vector<std::string>> files = cdi_store_.List(paths_.cdi_file_prefix());
  std::set<std::string> present;
  if (files.ok()) present.insert(files->begin(), files->end());
  std::map<std::string, absl::Status> failures;
  released_left_ = false;
  for (const auto& record : contents->records) {
    const std::string file = paths_.cdi_file(record->claim_uid);
    released_left_ = released_left_ || record->state == ClaimState::kReleased;
    if (which == Restore::kMissing && HasVoidVnpus(*record, options_.boot_id)) continue;
    const bool missing = present.count(file) == 0;
    if (!missing && which == Restore::kMissing) continue;
    const absl::StatusOr<bool> written = RestoreCdiFile(*record, which);
    if (written.ok()) {
      if (missing && *written) {
        LogInfo("restored the missing CDI file of a prepared claim",
                {{"claim", record->claim()},
                 {"claimUID", record->claim_uid},
                 {"path", JoinPath(cdi_store_.directory(), file)}});
      }
      continue;
    }
    failures[record->claim_uid] = written.status();
    if (which == Restore::kMissing && absl::IsDeadlineExceeded(written.status())) continue;  // busy
    if (const auto known = restore_failures_.find(record->claim_uid);
        known == restore_failures_.end() || known->second != written.status()) {
      LogError("the CDI file of a prepared claim could not be made anew",
               {{"claim", record->claim()},
                {"claimUID", record->claim_uid},
                {"path", JoinPath(cdi_store_.directory(), file)},
                {"error", written.status()}});
    }
  }
  restore_failures_ = std::move(failures);
  return restore_failures_.empty();
}

void ClaimEngine::RestoreLoop(bool swept, bool restored) {
  bool reaped = !released_left_ || ReapReleased();
  while (true) {
    {
      MutexLock lock(&mutex_);
      // What is missing may come by itself (the kernel driver is loaded late, the disk has room
      // again), and the kubelet does not prepare a claim again that it knows to be prepared.
      const absl::Time deadline = SteadyNow() + options_.restore_retry;
      while (!stop_ && !restore_) {
        if (swept && restored && reaped && cdi_watch_ != nullptr) {
          restore_wanted_.Wait(&mutex_);
        } else if (const absl::Duration left = deadline - SteadyNow();
                   left > absl::ZeroDuration()) {
          restore_wanted_.WaitFor(&mutex_, left);
        } else {
          break;
        }
      }
      if (stop_) return;
      restore_ = false;
    }
    if (!swept) {
      const absl::StatusOr<RecordStore::Contents> contents = records_.ReadAll();
      swept = contents.ok() && SweepOrphans(*contents);
    }
    restored = RestoreCdiFiles(Restore::kMissing);
    reaped = !released_left_ || ReapReleased();
  }
}

}  // namespace ascend::kubeletplugin
