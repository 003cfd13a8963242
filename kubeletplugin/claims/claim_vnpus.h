// Makes the vNPUs of claims and destroys them again. The record says what belongs to a claim: an
// intent is written before anything is made, and what is found on a chip is told apart by it, never
// by whether the library calls it used.
//
// One live claim = one vNPU, and no other of ours:
//   made and recorded             by its id, within the boot that it was made in
//   made, but nobody heard of it  by the id that was asked for; of a library that does not let ids
//   be
//                                 chosen, by what is new on the chip since the intent
//   left over from another boot   by chip and template, if the driver makes vNPUs again at boot and
//                                 there are no more of them than claims had; ids change at boots
// In doubt a vNPU is somebody else's: it stays, and the claim gets a new one.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CLAIM_VNPUS_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CLAIM_VNPUS_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kubeletplugin/claims/record.h"
#include "kubeletplugin/claims/record_store.h"
#include "vnpu/agent/client.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

// The agent's calls about vNPUs: see vnpu/agent/client.h.
struct VnpuCalls {
  std::function<absl::StatusOr<std::vector<vnpu::Vnpu>>(int physical_id, absl::Duration timeout)>
      list;
  std::function<absl::StatusOr<vnpu::Vnpu>(const agent::VnpuRequest&, absl::Duration timeout)>
      create;
  std::function<absl::Status(const agent::VnpuReference&, absl::Duration timeout)> destroy;
};

// Thread-safe. Of every method: the caller holds the lock files of the record's chips, so nobody
// else of ours changes what is on them.
class ClaimVnpus {
 public:
  ClaimVnpus(std::string boot_id, RecordStore& records, VnpuCalls calls);

  // Finds the vNPUs of the record, and makes those that are missing; fills in their ids. Before
  // any is made the record is written as it is, with the intents, and `*written` becomes true.
  // `recovery`: whether the driver makes vNPUs again at boot. On failure the record on disk tells
  // what may have been made.
  absl::Status Provide(ClaimRecord* record, bool recovery, absl::Duration timeout, bool* written);

  // Destroys what Provide() made for the record. A vNPU that is gone already is a success; on
  // failure the caller keeps the record and tries again.
  absl::Status Withdraw(const ClaimRecord& record, bool recovery, absl::Duration timeout);

 private:
  // What of a record was found so far, by the place in its devices.
  using Found = std::map<size_t, vnpu::Vnpu>;
  // The vNPU on the chip that is devices[index]'s; nullopt if none is for sure. kUnavailable if the
  // library does not tell what it must know for that.
  absl::StatusOr<std::optional<vnpu::Vnpu>> Locate(const ClaimRecord& record, size_t index,
                                                   const std::vector<vnpu::Vnpu>& listed,
                                                   const RecordStore::Contents& contents,
                                                   bool recovery, const Found& found) const;

  const std::string boot_id_;
  RecordStore& records_;
  const VnpuCalls calls_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CLAIM_VNPUS_H_
