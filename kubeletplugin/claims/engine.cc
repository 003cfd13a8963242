#include "kubeletplugin/claims/engine.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/core/file.h"
#include "base/core/file_lock.h"
#include "base/core/status_macros.h"
#include "base/runtime/logging.h"
#include "kubeletplugin/claims/chip_locks.h"
#include "kubeletplugin/claims/claim_gate.h"
#include "kubeletplugin/claims/prepare_error.h"

namespace ascend::kubeletplugin {
namespace {

constexpr absl::Duration kGetTimeout = absl::Seconds(10);
constexpr absl::Duration kMinBackoff = absl::Milliseconds(50);
constexpr absl::Duration kMaxBackoff = absl::Seconds(2);
// After a start the agent may still be loading the library; a claim that is allocated already was
// allocated from an inventory, so one will come.
constexpr absl::Duration kInventoryWait = absl::Seconds(10);
// Longer than any operation takes: a temporary file that is older is left over from a crash.
constexpr absl::Duration kStaleAge = RecordStore::kStaleTempFileAge;

std::string Name(const ClaimReference& claim) {
  return absl::StrCat(claim.namespace_name, "/", claim.name);
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
      files_(paths, cdi_store, std::move(injector)),
      inventory_(std::move(inventory)),
      occupancy_(paths, records, inventory_),
      release_(MakeRelease()),
      restorer_({.boot_id = options_.boot_id,
                 .lock_wait = options_.lock_wait,
                 .restore_retry = options_.restore_retry,
                 .orphan_removed = options_.orphan_removed,
                 .reap = [this](const ClaimRecord& record) { return Reap(record); }},
                paths, records, cdi_store, files_, inventory_) {}

ClaimEngine::~ClaimEngine() { StopAndJoin(); }

void ClaimEngine::StopAndJoin() {
  Stop();
  restorer_.Join();
}

void ClaimEngine::Stop() {
  changes_.Stop();
  restorer_.Stop();
}

void ClaimEngine::SetProcessSource(ProcessSource processes) {
  occupancy_.SetProcessSource(std::move(processes));
}

void ClaimEngine::SetVnpuCalls(VnpuCalls calls) {
  occupancy_.SetVnpuSource(calls.list);
  vnpus_ = std::make_unique<ClaimVnpus>(options_.boot_id, records_, std::move(calls));
  release_ = MakeRelease();
}

std::unique_ptr<VnpuRelease> ClaimEngine::MakeRelease() {
  return std::make_unique<VnpuRelease>(VnpuRelease::Options{.boot_id = options_.boot_id,
                                                            .lock_wait = options_.lock_wait,
                                                            .agent_wait = options_.agent_wait,
                                                            .kept = options_.vnpus_kept,
                                                            .gone = options_.vnpus_gone},
                                       paths_, records_, inventory_, changes_, vnpus_.get());
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
  restorer_.Start(contents);
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
    ASCEND_RETURN_IF_ERROR(changes_.Pause(SteadyNow() + pause));
    backoff = std::min(backoff * 2, kMaxBackoff);
  }
}

absl::StatusOr<std::shared_ptr<const vnpu::Inventory>> ClaimEngine::WaitForInventory(
    absl::Time deadline) {
  deadline = std::min(deadline, SteadyNow() + kInventoryWait);
  while (true) {
    const uint64_t seen = changes_.count();
    if (std::shared_ptr<const vnpu::Inventory> inventory = inventory_()) return inventory;
    if (SteadyNow() >= deadline) {
      return absl::UnavailableError(
          "the chips of this node are not known yet: ascend-npu-agent has not answered since the "
          "plugin started; see the agent container's log");
    }
    ASCEND_RETURN_IF_ERROR(changes_.Wait(seen, deadline));
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

absl::Status ClaimEngine::ProvideVnpus(ClaimRecord* record, absl::Time deadline, bool* stored) {
  if (vnpus_ == nullptr) return absl::UnimplementedError("this driver cannot make vNPUs");
  bool written = false;
  const absl::Status provided =
      vnpus_->Provide(record, VnpuRecovery(inventory_), deadline - SteadyNow(), &written);
  if (written) *stored = false;
  ASCEND_RETURN_IF_ERROR(provided);
  files_.injector().WaitForVnpuNodes(*record, std::min(options_.node_wait, deadline - SteadyNow()));
  record->state = ClaimState::kCompleted;
  return absl::OkStatus();
}

void ClaimEngine::Undo(const ClaimRecord& record) {
  absl::Status undone = files_.Remove(record.claim_uid);
  if (record.has_managed_vnpus()) {
    undone.Update(release_->Withdraw(record, SteadyNow() + options_.undo_budget));
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

absl::Status ClaimEngine::CheckKnownIdentity(const ClaimRecord& record) const {
  const std::shared_ptr<const vnpu::Inventory> inventory = inventory_();
  return inventory == nullptr ? absl::OkStatus() : CheckIdentity(record, *inventory);
}

absl::Status ClaimEngine::NotLocked(const absl::Status& status, const ClaimPlan& plan) const {
  const std::set<int> resetting = options_.resetting ? options_.resetting() : std::set<int>();
  for (const int id : plan.physical_ids) {
    if (resetting.count(id) == 0) continue;
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat(
            "chip ", id,
            " is being reset because of a fault, on it or on a chip that is reset "
            "together with it: that takes some minutes, then the pod starts by itself")),
        PrepareError::kLock);
  }
  return status;
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

absl::StatusOr<std::vector<PreparedDevice>> ClaimEngine::PrepareInsideGate(
    const ClaimReference& claim, ClaimPlan plan, absl::Time deadline) {
  const absl::Time holder_deadline = std::min(deadline, SteadyNow() + options_.holder_wait);
  const absl::Time busy_deadline = std::min(deadline, SteadyNow() + options_.busy_wait);
  const absl::Time agent_deadline = std::min(deadline, SteadyNow() + options_.agent_wait);
  while (true) {
    const uint64_t seen = changes_.count();
    absl::StatusOr<std::vector<FileLock>> locked =
        LockChips(paths_, plan.physical_ids, options_.lock_wait, deadline);
    if (!locked.ok()) return NotLocked(locked.status(), plan);
    std::vector<FileLock> chip_locks = *std::move(locked);
    ASCEND_ASSIGN_OR_RETURN(const std::string holder, occupancy_.FindHolder(claim.uid, plan));
    if (!holder.empty()) {
      chip_locks.clear();
      if (SteadyNow() >= holder_deadline) {
        return WithReason(absl::FailedPreconditionError(holder), PrepareError::kChipHeld);
      }
      ASCEND_RETURN_IF_ERROR(changes_.Wait(seen, holder_deadline)).With(holder);
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
      ASCEND_RETURN_IF_ERROR(occupancy_.CheckReplacesDamaged(plan.record, existing.status()));
    } else if (!absl::IsNotFound(existing.status())) {
      // Not seen this time; or a newer driver knows more about this claim than we could write.
      return existing.status();
    } else if (const std::string stray = occupancy_.FindStray(plan); !stray.empty()) {
      chip_locks.clear();
      if (SteadyNow() >= busy_deadline) {
        return WithReason(absl::FailedPreconditionError(stray), PrepareError::kChipHeld);
      }
      ASCEND_RETURN_IF_ERROR(changes_.Wait(seen, busy_deadline)).With(stray);
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
      ASCEND_RETURN_IF_ERROR(changes_.WaitToRetry(seen, agent_deadline)).With(written.message());
      continue;
    }
    const std::vector<MetadataFile> metadata = MetadataFilesOf(plan.record, paths_);
    // Written again even if identical: some runtimes keep a device's numbers until its file
    // changes.
    if (written.ok()) {
      written = files_.Write(plan.record, metadata, {.rewrite_identical = true, .durable = false});
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
    pending_.Set(plan.record);
    ASCEND_RETURN_IF_ERROR(gate.Enter(std::min(options_.lock_wait, deadline - SteadyNow())));
    return PrepareInsideGate(reference, std::move(plan), deadline);
  };
  absl::StatusOr<std::vector<PreparedDevice>> result = prepare();
  if (result.ok()) pending_.Forget(reference.uid);
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
  // What is carried on may meet the next Prepare of the same UID.
  if (which == Which::kAny) pending_.Forget(reference.uid);
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
      return files_.Remove(reference.uid);
    }
    ASCEND_RETURN_IF_ERROR(gate.status());
    const absl::StatusOr<std::shared_ptr<const ClaimRecord>> record = records_.Read(reference.uid);
    if (reap && (!record.ok() || (*record)->state != ClaimState::kReleased)) {
      return absl::OkStatus();
    }
    had_record = !absl::IsNotFound(record.status());
    ASCEND_RETURN_IF_ERROR(files_.Remove(reference.uid));
    if (had_record) {
      ASCEND_ASSIGN_OR_RETURN(const bool released, ReleaseHardware(reference.uid, record, which));
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

absl::StatusOr<bool> ClaimEngine::ReleaseHardware(
    const std::string& claim_uid, const absl::StatusOr<std::shared_ptr<const ClaimRecord>>& record,
    Which which) {
  if (vnpus_ == nullptr) return true;
  // What is damaged names nothing; what it made is then a vNPU that belongs to nobody.
  if (absl::IsDataLoss(record.status()) || absl::IsUnimplemented(record.status())) {
    LogWarning("the record of a claim that ends cannot be read: a vNPU of it may stay on the node",
               {{"claimUID", claim_uid}, {"error", record.status()}});
    return true;
  }
  ASCEND_RETURN_IF_ERROR(record.status());
  const bool reap = which == Which::kReleased;
  absl::StatusOr<bool> released = release_->Release(
      **record, SteadyNow() + (reap ? options_.reap_budget : options_.destroy_budget),
      reap ? VnpuRelease::Caller::kReaper : VnpuRelease::Caller::kKubelet);
  // The reaper's business, too.
  if (!reap && !released.value_or(false)) restorer_.Wake();
  return released;
}

bool ClaimEngine::Reap(const ClaimRecord& record) {
  if (record.boot_id == options_.boot_id && release_->HasLostChip(record)) return false;
  // The same as if the kubelet had asked again, which it does not.
  const absl::Status ended = Unprepare({.namespace_name = record.claim_namespace,
                                        .name = record.claim_name,
                                        .uid = record.claim_uid},
                                       Which::kReleased);
  return ended.ok() && !records_.Contains(record.claim_uid).value_or(true);
}

}  // namespace ascend::kubeletplugin
