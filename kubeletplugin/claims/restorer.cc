#include "kubeletplugin/claims/restorer.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/time/clock.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "base/runtime/logging.h"
#include "kubeletplugin/claims/change_signal.h"
#include "kubeletplugin/claims/claim_gate.h"
#include "kubeletplugin/claims/device_metadata.h"
#include "kubeletplugin/claims/plan.h"

namespace ascend::kubeletplugin {
namespace {

// Longer than any operation takes. A claim lock without a record that is older is left over from a
// Prepare that failed and was never unprepared, a temporary file from a crash.
constexpr absl::Duration kStaleAge = RecordStore::kStaleTempFileAge;

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

}  // namespace

ClaimRestorer::ClaimRestorer(Options options, const Paths& paths, RecordStore& records,
                             cdi::Store& cdi_store, const ClaimFiles& files,
                             InventorySource inventory)
    : options_(std::move(options)),
      paths_(paths),
      records_(records),
      cdi_store_(cdi_store),
      files_(files),
      inventory_(std::move(inventory)) {}

ClaimRestorer::~ClaimRestorer() {
  Stop();
  Join();
  cdi_watch_.reset();  // its thread uses the rest
}

void ClaimRestorer::Start(const RecordStore::Contents& contents) {
  const bool swept = SweepOrphans(contents);
  SweepStaleClaimLocks();
  // The watch first, so that nothing that happens from here on is missed.
  absl::StatusOr<std::unique_ptr<DirectoryWatch>> watch =
      DirectoryWatch::Start(cdi_store_.directory(), [this] { Wake(); });
  if (watch.ok()) {
    cdi_watch_ = *std::move(watch);
  } else {
    LogWarning("CDI files that vanish are noticed late",
               {{"path", cdi_store_.directory()},
                {"after", absl::FormatDuration(options_.restore_retry)},
                {"error", watch.status()}});
  }
  const bool restored = RestoreCdiFiles(Restore::kAll);
  thread_ = std::thread([this, swept, restored] { Run(swept, restored); });
}

void ClaimRestorer::Wake() {
  MutexLock lock(&mutex_);
  look_ = true;
  wanted_.Signal();
}

void ClaimRestorer::Stop() {
  MutexLock lock(&mutex_);
  stop_ = true;
  wanted_.Signal();
}

void ClaimRestorer::Join() {
  if (thread_.joinable()) thread_.join();
}

bool ClaimRestorer::SweepOrphans(const RecordStore::Contents& contents) {
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
    absl::Status removed = files_.Remove(uid);
    if (removed.ok() && !exists) removed = gate->EndGeneration();
    complete = complete && removed.ok();
    LogInfo("removed the CDI file and metadata of a claim without a record",
            {{"claimUID", uid}, {"result", removed}});
    if (removed.ok() && options_.orphan_removed) options_.orphan_removed(Orphan::kCdiFile);
  }
  return complete;
}

void ClaimRestorer::SweepStaleClaimLocks() {
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

absl::StatusOr<bool> ClaimRestorer::RestoreCdiFile(const ClaimRecord& listed, Restore which) {
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
    ASCEND_RETURN_IF_ERROR(files_.Remove(listed.claim_uid));
    return false;
  }
  if (IsBeingMended(**record)) return false;
  // After a reboot a node of the recorded number may be another chip.
  if (const auto inventory = inventory_(); inventory != nullptr) {
    ASCEND_RETURN_IF_ERROR(CheckIdentity(**record, *inventory));
  }
  ASCEND_RETURN_IF_ERROR(files_.Write(**record, MetadataFilesOf(**record, paths_), {}));
  return true;
}

bool ClaimRestorer::RestoreCdiFiles(Restore which) {
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
    if (const auto known = failures_.find(record->claim_uid);
        known == failures_.end() || known->second != written.status()) {
      LogError("the CDI file of a prepared claim could not be made anew",
               {{"claim", record->claim()},
                {"claimUID", record->claim_uid},
                {"path", JoinPath(cdi_store_.directory(), file)},
                {"error", written.status()}});
    }
  }
  failures_ = std::move(failures);
  return failures_.empty();
}

bool ClaimRestorer::ReapReleased() {
  const absl::StatusOr<RecordStore::Contents> contents = records_.ReadAll();
  if (!contents.ok()) return false;
  bool complete = true;
  for (const auto& record : contents->records) {
    if (record->state != ClaimState::kReleased) continue;
    complete = options_.reap(*record) && complete;
  }
  return complete;
}

void ClaimRestorer::Run(bool swept, bool restored) {
  bool reaped = !released_left_ || ReapReleased();
  while (true) {
    {
      MutexLock lock(&mutex_);
      // What is missing may come by itself (the kernel driver is loaded late, the disk has room
      // again), and the kubelet does not prepare a claim again that it knows to be prepared.
      const absl::Time deadline = SteadyNow() + options_.restore_retry;
      while (!stop_ && !look_) {
        if (swept && restored && reaped && cdi_watch_ != nullptr) {
          wanted_.Wait(&mutex_);
        } else if (const absl::Duration left = deadline - SteadyNow();
                   left > absl::ZeroDuration()) {
          wanted_.WaitFor(&mutex_, left);
        } else {
          break;
        }
      }
      if (stop_) return;
      look_ = false;
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
