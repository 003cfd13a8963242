// Prepares and unprepares claims.
//
//   Prepare:   open the claim's gate -> GET the claim -> check it -> enter the gate -> lock the
//              chips -> refuse what another claim holds -> (parts of chips: write the record as
//              Started, create the vNPUs, wait for their nodes) -> check the device nodes -> write
//              the device metadata and the CDI file -> write the record -> answer
//   Unprepare: enter the gate -> remove the CDI file and the device metadata -> (destroy the vNPUs)
//              -> remove the record -> end the generation
//
// The record is the only evidence of use; it is written last, unless hardware is changed before,
// and removed last. Whatever fails before it is undone, and a CDI file without a record is swept at
// start. Every Prepare, also a
// repeated one, checks the nodes and writes the CDI file anew.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_ENGINE_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_ENGINE_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cdi/store.h"
#include "kubeletplugin/claims/change_signal.h"
#include "kubeletplugin/claims/chip_occupancy.h"
#include "kubeletplugin/claims/claim_files.h"
#include "kubeletplugin/claims/claim_vnpus.h"
#include "kubeletplugin/claims/device_metadata.h"
#include "kubeletplugin/claims/injection.h"
#include "kubeletplugin/claims/inventory_source.h"
#include "kubeletplugin/claims/orphan.h"
#include "kubeletplugin/claims/pending_claims.h"
#include "kubeletplugin/claims/plan.h"
#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/claims/restorer.h"
#include "kubeletplugin/claims/vnpu_release.h"
#include "kubeletplugin/devices.h"
#include "kubeletplugin/kube/client.h"
#include "kubeletplugin/paths.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

struct PreparedDevice {
  std::vector<std::string> requests;  // base names
  std::string pool;
  std::string device;
  std::string share_id;  // empty = none
  std::vector<std::string> cdi_device_ids;
  friend bool operator==(const PreparedDevice&, const PreparedDevice&) = default;
};

class ClaimEngine {
 public:
  struct Options {
    std::string node_name;  // also the name of our pool
    std::string boot_id;
    DeviceOptions devices;
    // The kubelet gives up after 45 s: what is transient is retried inside this time.
    absl::Duration prepare_budget = absl::Seconds(40);
    // How long a Prepare waits for another claim to let go of the chip. The scheduler frees a chip
    // up to a few seconds before the node does; after an error the kubelet waits 60 to 90 s.
    absl::Duration holder_wait = absl::Seconds(15);
    // How long a Prepare waits for processes that nobody accounts for to leave the chip.
    absl::Duration busy_wait = absl::Seconds(2);
    // How long a call that needs the agent waits for one that is away: it restarts within seconds.
    absl::Duration agent_wait = absl::Seconds(10);
    // How long a Prepare waits for the kernel to make the device node of a new vNPU.
    absl::Duration node_wait = absl::Seconds(5);
    // How long an Unprepare tries to destroy vNPUs; then the kubelet asks again.
    absl::Duration destroy_budget = absl::Seconds(30);
    // The same for what is left of claims that ended while their chip was away.
    absl::Duration reap_budget = absl::Seconds(5);
    // The same for those of a Prepare that failed: what is left then the next call destroys.
    absl::Duration undo_budget = absl::Seconds(3);
    // How long an operation waits for another one on the same claim or chip.
    absl::Duration lock_wait = absl::Seconds(30);
    // How often it is tried again to restore the CDI file of a prepared claim after that failed.
    absl::Duration restore_retry = absl::Seconds(5);
    // Told of each thing removed that belonged to nobody; null = nobody.
    std::function<void(Orphan)> orphan_removed;
    // Of VnpuRelease, which says what they are told.
    std::function<void(const ClaimRecord&, const KeptVnpus&)> vnpus_kept;
    std::function<void(const ClaimRecord&)> vnpus_gone;
    // The chips that are locked because they are being reset; null = none ever.
    std::function<std::set<int>()> resetting;
  };

  // All references must outlive the engine.
  ClaimEngine(Options options, const Paths& paths, kube::Client& client, RecordStore& records,
              cdi::Store& cdi_store, Injector injector, InventorySource inventory);
  ~ClaimEngine();

  // Ends every wait: calls under way, and those that begin later, end as soon as they would have to
  // wait for something. For a stop; there is no way back.
  void Stop();
  // The same, and waits until nothing of the engine asks its sources any more, apart from calls
  // under way.
  void StopAndJoin();

  // Makes the directories, sweeps CDI files without a record, makes those of all records anew, and
  // from then on restores whichever goes missing. Problems with single claims are logged and tried
  // again; an error means that no claim could be prepared.
  absl::Status Start();

  // Thread-safe; calls for different claims and chips run side by side. Errors are for the pod's
  // events: they name the claim, the device or path, and what to do.
  absl::StatusOr<std::vector<PreparedDevice>> Prepare(const ClaimReference& claim);
  // From the record alone: never asks the API server. A claim without a record is a success.
  absl::Status Unprepare(const ClaimReference& claim);

  // What claims were allocated that could not be prepared (yet): the scheduler counts it, no record
  // does. Forgotten when the claim is prepared or unprepared, and if nobody asks for it any more.
  std::vector<kube::SliceDevice> PendingDevices() { return pending_.Devices(); }

  // Tell the engine that records or the inventory changed outside it: wakes whoever waits for that.
  void NotifyChange() { changes_.Notify(); }
  // Without one, or where it cannot tell, chips count as unused by others. Set before Start().
  void SetProcessSource(ProcessSource processes);
  // Without them claims of vNPUs cannot be prepared. Set before Start().
  void SetVnpuCalls(VnpuCalls calls);

 private:
  enum class Which { kAny, kReleased };
  // Leaves a claim alone whose record is not of the state that is meant (any more).
  absl::Status Unprepare(const ClaimReference& claim, Which which);
  absl::StatusOr<kube::ResourceClaim> GetClaim(const ClaimReference& claim, absl::Time deadline);
  absl::StatusOr<ClaimPlan> MakePlan(const ClaimReference& reference,
                                     const kube::ResourceClaim& claim, absl::Time deadline);
  absl::StatusOr<std::shared_ptr<const vnpu::Inventory>> WaitForInventory(absl::Time deadline);
  absl::StatusOr<std::vector<PreparedDevice>> PrepareInsideGate(const ClaimReference& claim,
                                                                ClaimPlan plan,
                                                                absl::Time deadline);
  // `stored` becomes false if the record on the disk is another one now.
  absl::Status ProvideVnpus(ClaimRecord* record, absl::Time deadline, bool* stored);
  // Takes back a Prepare that failed and that nobody was answered about.
  void Undo(const ClaimRecord& record);
  // As far as the inventory is known.
  absl::Status CheckKnownIdentity(const ClaimRecord& record) const;
  // What is wrong if the locks of the chips were not to be had.
  absl::Status NotLocked(const absl::Status& status, const ClaimPlan& plan) const;
  std::vector<PreparedDevice> Answer(const ClaimRecord& record,
                                     const std::vector<MetadataFile>& metadata) const;
  std::unique_ptr<VnpuRelease> MakeRelease();
  // Destroys what was made for the claim, as far as its record can be read. False: its chip is
  // away, and the record has to stay, as kReleased.
  absl::StatusOr<bool> ReleaseHardware(
      const std::string& claim_uid,
      const absl::StatusOr<std::shared_ptr<const ClaimRecord>>& record, Which which);
  // Carries on with one of those. Whether nothing is left of it.
  bool Reap(const ClaimRecord& record);

  const Options options_;
  const Paths& paths_;
  kube::Client& client_;
  RecordStore& records_;
  cdi::Store& cdi_store_;
  const ClaimFiles files_;
  const InventorySource inventory_;
  ChangeSignal changes_;
  PendingClaims pending_;
  ChipOccupancy occupancy_;
  std::unique_ptr<ClaimVnpus> vnpus_;     // null = this driver has none
  std::unique_ptr<VnpuRelease> release_;  // uses vnpus_
  ClaimRestorer restorer_;                // the last: its thread uses the rest
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_ENGINE_H_
