#include "kubeletplugin/claims/dead_claims.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/file.h"
#include "base/runtime/clock.h"
#include "base/runtime/logging.h"

namespace ascend::kubeletplugin {
namespace {

constexpr absl::Duration kRequestTimeout = absl::Seconds(10);

// Whether the claim is still allocated what the record says. Shares and requests count too: they
// are what was prepared.
bool Allocates(const kube::ResourceClaim& claim, const std::string& driver,
               const ClaimRecord& record) {
  if (!claim.allocation) return false;
  return std::all_of(
      record.devices.begin(), record.devices.end(), [&](const RecordedDevice& device) {
        return std::any_of(claim.allocation->results.begin(), claim.allocation->results.end(),
                           [&](const kube::DeviceResult& result) {
                             return result.driver == driver && result.pool == device.pool &&
                                    result.device == device.device &&
                                    result.share_id == device.share_id;
                           });
      });
}

void LogUnsent(const absl::Status& sent) {
  if (!sent.ok()) LogWarning("an Event could not be written", {{"error", sent}});
}

std::string Advice(const UnreadableRecord& record, const std::string& path) {
  if (absl::IsUnimplemented(record.error)) {
    return "upgrade the driver to the version that wrote it, or a newer one, and leave the record";
  }
  if (absl::IsDataLoss(record.error)) {
    return absl::StrCat("if its pods are gone for good, remove ", path, " on the node");
  }
  return "the driver goes on trying to read it";  // too many open files, a bad moment of the disk
}

}  // namespace

DeadClaimSweeper::DeadClaimSweeper(Options options, RecordStore& records, kube::Client& client,
                                   kube::EventRecorder& events, Sources sources)
    : options_(std::move(options)),
      records_(records),
      client_(client),
      events_(events),
      sources_(std::move(sources)) {
  thread_ = std::thread([this] { Run(); });
}

DeadClaimSweeper::~DeadClaimSweeper() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void DeadClaimSweeper::Run() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      // What is looked for announces itself to nobody.
      const absl::Duration next = Clock::Real().Monotonic() + options_.period;
      while (!stop_) {
        const absl::Duration left = next - Clock::Real().Monotonic();
        if (left <= absl::ZeroDuration()) break;
        changed_.WaitFor(&mutex_, left);
      }
      if (stop_) return;
    }
    Look();
  }
}

void DeadClaimSweeper::Look() {
  const absl::StatusOr<RecordStore::Contents> contents = records_.ReadAll();
  if (!contents.ok()) return;  // others report it
  ReportUnreadable(contents->unreadable);
  if (contents->records.empty()) {
    suspects_.clear();
    return;
  }
  // A kubelet that is away sends no Unprepare either: the time begins anew.
  const auto uses = sources_.registered()
                        ? sources_.container_uses()
                        : absl::UnavailableError("not registered with the kubelet");
  if (!uses.ok()) {
    LogVerbose(2, "the kubelet cannot tell which claims are in use", {{"error", uses.status()}});
    suspects_.clear();
    return;
  }
  std::set<std::string> present;
  for (const auto& record : contents->records) {
    if (record->state == ClaimState::kReleased) continue;  // its pods have ended already
    present.insert(record->claim_uid);
    LookAt(*record, *uses);
  }
  for (auto it = suspects_.begin(); it != suspects_.end();) {
    it = present.count(it->first) != 0 ? std::next(it) : suspects_.erase(it);
  }
}

void DeadClaimSweeper::LookAt(const ClaimRecord& record, const std::vector<ContainerUse>& uses) {
  const absl::StatusOr<bool> exists = ObjectExists(record);
  if (!exists.ok()) return;  // API errors change nothing
  const bool listed = std::any_of(
      uses.begin(), uses.end(), [&](const ContainerUse& use) { return UsesClaimOf(use, record); });
  if (*exists || listed) {
    suspects_.erase(record.claim_uid);
    return;
  }
  const absl::Duration now = Clock::Real().Monotonic();
  Suspect& suspect = suspects_.try_emplace(record.claim_uid, Suspect{.since = now}).first->second;
  if (now - suspect.since < options_.periods * options_.period) return;

  const std::string what = absl::StrCat("claim ", record.claim(), " (UID ", record.claim_uid, ")");
  if (const absl::Status unused = CheckUnused(record); !unused.ok()) {
    const bool first = !std::exchange(suspect.logged, true);
    if (first) {
      LogWarning("a claim that is gone still holds its chips",
                 {{"claim", record.claim()}, {"claimUID", record.claim_uid}, {"error", unused}});
    }
    if (suspect.reported) return;
    const absl::Status sent = events_.Send(
        {.regarding = events_.node(),
         .reason = "ClaimNotReleased",
         .message = absl::StrCat(
             what, " is gone and the kubelet does not unprepare it, but its chips are kept: ",
             unused.message())});
    suspect.reported = sent.ok();
    if (first) LogUnsent(sent);
    return;
  }
  const absl::Status freed = sources_.unprepare({.namespace_name = record.claim_namespace,
                                                 .name = record.claim_name,
                                                 .uid = record.claim_uid});
  if (!freed.ok()) return;  // logged there, tried again at the next look
  LogWarning("released the chips of a dead claim",
             {{"claim", record.claim()}, {"claimUID", record.claim_uid}});
  LogUnsent(events_.Send(
      {.regarding = events_.node(),
       .reason = "DeadClaimReleased",
       .message = absl::StrCat(what,
                               " is gone, the kubelet never unprepared it and nothing uses its "
                               "chips: they were released"),
       .warning = false}));
  suspects_.erase(record.claim_uid);
}

absl::StatusOr<bool> DeadClaimSweeper::ObjectExists(const ClaimRecord& record) {
  const absl::StatusOr<kube::ResourceClaim> claim =
      client_.GetResourceClaim(record.claim_namespace, record.claim_name, kRequestTimeout);
  if (absl::IsNotFound(claim.status())) return false;
  if (!claim.ok()) return claim.status();
  return claim->uid == record.claim_uid && Allocates(*claim, options_.driver, record);
}

absl::Status DeadClaimSweeper::CheckUnused(const ClaimRecord& record) {
  std::vector<int> ids;
  for (const RecordedDevice& device : record.devices) {
    // A chip that is divided is used by its neighbours; that nobody uses a part is shown by the
    // library, which does not destroy one in use.
    if (device.vnpu) continue;
    for (const RecordedChip& chip : device.chips) ids.push_back(chip.physical_id);
  }
  if (ids.empty()) return absl::OkStatus();
  const auto chips = sources_.processes(ids);
  if (!chips.ok()) {
    return absl::UnavailableError(
        absl::StrCat("whether a process uses them cannot be told: ", chips.status().message()));
  }
  for (const int id : ids) {
    const auto chip = std::find_if(chips->begin(), chips->end(),
                                   [&](const auto& c) { return c.physical_id == id; });
    if (chip == chips->end() || !chip->known) {
      return absl::UnavailableError(
          absl::StrCat("whether a process uses chip ", id, " cannot be told",
                       chip == chips->end() ? "" : absl::StrCat(": ", chip->error)));
    }
    if (!chip->processes.empty()) {
      const vnpu::Process& process = chip->processes.front();
      return absl::FailedPreconditionError(
          absl::StrCat("process ", process.pid, process.name.empty() ? "" : " (", process.name,
                       process.name.empty() ? "" : ")", " uses chip ", id));
    }
  }
  return absl::OkStatus();
}

void DeadClaimSweeper::ReportUnreadable(const std::vector<UnreadableRecord>& unreadable) {
  std::map<std::string, bool> reported;
  for (const UnreadableRecord& record : unreadable) {
    const auto known = unreadable_.find(record.claim_uid);
    bool& done = reported[record.claim_uid];
    done = known != unreadable_.end() && known->second;
    if (done) continue;
    const absl::Status sent = events_.Send(
        {.regarding = events_.node(),
         .reason = "ClaimRecordUnreadable",
         .message = absl::StrCat(
             "the record of the claim with UID ", record.claim_uid, " cannot be read (",
             record.error.message(), "): ", WithheldBecauseOf(record),
             " until the kubelet unprepares the claim; ",
             Advice(record, JoinPath(records_.directory(), record.claim_uid)))});
    done = sent.ok();
    if (known == unreadable_.end()) LogUnsent(sent);
  }
  unreadable_ = std::move(reported);
}

std::string DeadClaimSweeper::WithheldBecauseOf(const UnreadableRecord& record) const {
  if (sources_.quarantine == nullptr) {
    return "its chips, or every free chip if nobody knows which they are, are withheld";
  }
  const Quarantine quarantine = sources_.quarantine({record});
  if (!quarantine.unknown.empty()) {
    return "nobody knows which chips it has, so every free chip of the node is withheld";
  }
  std::vector<int> ids;
  for (const auto& [id, of_record] : quarantine.chips) ids.push_back(id);
  return absl::StrCat("its chips (", absl::StrJoin(ids, ", "), ") are withheld");
}

}  // namespace ascend::kubeletplugin
