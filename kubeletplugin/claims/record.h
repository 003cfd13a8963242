// What the driver remembers of a claim: one small file per claim, the only evidence that a chip is
// in use. Everything that Unprepare and a start without API or hardware need is in it.
//
// Format version 1, two lines, both ended by '\n', mode 0600:
//   {"formatVersion":1,"state":"Completed","claim":{...},"bootID":"...","devices":[...]}
//   crc32c:<eight lower-case hex digits of the CRC-32C over the first line without its '\n'>
// The checksum covers stored bytes, so a field added later never looks like damage; what this
// version does not know is kept when the record is written again.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_RECORD_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_RECORD_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kubeletplugin/kube/resource_slice.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

inline constexpr int kRecordFormatVersion = 1;

// What a claim was given, by identities that survive a restart and a reboot.
struct RecordedChip {
  int physical_id = -1;
  int node_number = -1;
  vnpu::Family family = vnpu::Family::kUnknown;
  std::string uuid;          // empty = unknown
  std::string pci_bus_id;    // empty = unknown
  std::string roce_address;  // empty = none
  friend bool operator==(const RecordedChip&, const RecordedChip&) = default;
};

// A partition that a claim was given, or is to be given.
struct RecordedVnpu {
  std::string template_name;
  int index = 0;             // in the device's name
  std::vector<int> vgroups;  // of our account; partitions that share one share one on the chip
  // False: an administrator made it (static mode), and nobody here destroys it.
  bool managed = true;
  // Of /dev/vdavinciN; valid for the record's boot id only. -1 = not known.
  int id = -1;
  int vgroup = -1;  // the hardware's; -1 = none
  // True from before it is made until its id is known: what is new on the chip may be ours even if
  // nobody heard the answer.
  bool begun = false;
  // The id that was asked for; -1 = any, or the one that it got.
  int wanted_id = -1;
  std::vector<int> ids_before;  // on the chip, when it was begun
  friend bool operator==(const RecordedVnpu&, const RecordedVnpu&) = default;
};

// One allocation result of ours. The key is (pool, device, share_id).
struct RecordedDevice {
  std::vector<std::string> requests;  // base names, in the order of the allocation
  std::string pool;
  std::string device;
  std::string share_id;  // empty = none
  // Of a share: capacity name without our domain -> quantity.
  std::map<std::string, std::string> consumed_capacity;
  bool admin_access = false;
  // "request/subrequest" of those requests that the scheduler met by a subrequest.
  std::vector<std::string> subrequests;
  bool shared_use_expected = false;  // NpuConfig: several containers may use it at the same time
  std::string cdi_device;            // name in the claim's CDI file
  std::vector<RecordedChip> chips;
  std::optional<RecordedVnpu> vnpu;  // a partition of the only chip
  // As it was published when it was prepared: stays in the slice while the claim lives, also after
  // the chip is gone and after a restart.
  kube::SliceDevice published;
  friend bool operator==(const RecordedDevice&, const RecordedDevice&) = default;
};

// kStarted: hardware may have been changed for the claim, and nothing was answered yet. Written
// before that, so that a crash leaves nothing without an owner. kReleased: the kubelet has
// unprepared it, but a vNPU of it may still be on a chip that is away; it goes when the chip is
// back.
enum class ClaimState { kStarted, kCompleted, kReleased };
absl::string_view ClaimStateName(ClaimState state);  // "Started", "Completed", "Released"

struct ClaimRecord {
  ClaimState state = ClaimState::kCompleted;
  std::string claim_namespace;
  std::string claim_name;
  std::string claim_uid;
  std::string pod_claim_name;  // of a claim made from a template: its name in the pod's spec
  std::string prepared_at;     // RFC 3339, whole seconds, UTC: when it was prepared first
  std::string boot_id;         // another one now = what was done to hardware and CDI is void
  std::vector<RecordedDevice> devices;
  // The members that a newer version wrote and this one does not know, as JSON text in the shape of
  // the record; empty = none. True of the same devices only.
  std::string unknown_members;

  // Whether the driver made, or is to make, vNPUs for it.
  bool has_managed_vnpus() const;
  // "namespace/name", for people.
  std::string claim() const;
  friend bool operator==(const ClaimRecord&, const ClaimRecord&) = default;
};

std::string SerializeRecord(const ClaimRecord& record);
// kDataLoss if the bytes are damaged (the message says how), kUnimplemented if a newer driver wrote
// a format that this one does not know.
absl::StatusOr<ClaimRecord> ParseRecord(absl::string_view bytes);
// The names of the devices in a record that is undamaged but of a newer format, as far as it names
// them where every format does; empty if it does not, or if the bytes are damaged.
std::vector<std::string> SalvageDeviceNames(absl::string_view bytes);

// CRC-32C (Castagnoli), as in RFC 3720.
uint32_t Crc32c(absl::string_view bytes);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_RECORD_H_
