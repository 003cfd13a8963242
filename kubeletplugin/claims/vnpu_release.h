// Takes the vNPUs of a claim that ends away from the hardware, and tells who must know when one
// stays. A record that names vNPUs is removed only after they are gone:
//
//   Completed, Started -> Released -> (vNPUs destroyed) -> no record
//
// From Released on nobody restores its CDI file, and whatever interrupts the rest, it is carried
// on: by the kubelet's next Unprepare, and by the restorer, also after a restart.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_VNPU_RELEASE_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_VNPU_RELEASE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kubeletplugin/claims/change_signal.h"
#include "kubeletplugin/claims/claim_vnpus.h"
#include "kubeletplugin/claims/inventory_source.h"
#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/paths.h"

namespace ascend::kubeletplugin {

// Whether the driver on the node makes vNPUs again at boot. Products that cannot tell have no such
// mode.
bool VnpuRecovery(const InventorySource& inventory);

// Why a vNPU of an ended claim is still on its chip.
struct KeptVnpus {
  absl::Status error;      // the agent's or the library's, which names vNPU and chip
  bool chip_lost = false;  // the chip is away
};

// Thread-safe; of one claim by one caller at a time: whoever is in its gate.
class VnpuRelease {
 public:
  struct Options {
    std::string boot_id;
    absl::Duration lock_wait;   // for another operation on a chip
    absl::Duration agent_wait;  // for an agent that is away
    // Told of each attempt after which something stays, and of each claim of which nothing does
    // (any more). On the caller's thread, under locks: must return at once. Null = nobody.
    std::function<void(const ClaimRecord&, const KeptVnpus&)> kept;
    std::function<void(const ClaimRecord&)> gone;
  };
  enum class Caller { kKubelet, kReaper };

  // `vnpus` may be null: then nothing can be destroyed. References must outlive it.
  VnpuRelease(Options options, const Paths& paths, RecordStore& records, InventorySource inventory,
              ChangeSignal& changes, ClaimVnpus* vnpus);

  // What the record names; the caller holds the locks of its chips. A vNPU that is gone already is
  // a success.
  absl::Status Withdraw(const ClaimRecord& record, absl::Time deadline);

  // The same, of a claim that ends: marks the record as Released, locks its chips, waits for an
  // agent that is away. False: a chip of the claim is away, so the record has to stay, but the
  // claim may end.
  absl::StatusOr<bool> Release(const ClaimRecord& record, absl::Time deadline, Caller caller);

  // Whether a chip of the record is gone from the node, as far as the last inventory tells.
  bool HasLostChip(const ClaimRecord& record) const;

 private:
  const Options options_;
  const Paths& paths_;
  RecordStore& records_;
  const InventorySource inventory_;
  ChangeSignal& changes_;
  ClaimVnpus* const vnpus_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_VNPU_RELEASE_H_
