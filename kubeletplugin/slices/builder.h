// What the node should publish, from what is known: no I/O, no clock, the same input always gives
// the same slices.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SLICES_BUILDER_H_
#define ASCEND_DRA_KUBELETPLUGIN_SLICES_BUILDER_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kubeletplugin/claims/record.h"
#include "kubeletplugin/devices.h"
#include "kubeletplugin/health/device_verdict.h"
#include "kubeletplugin/kube/resource_slice.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

// Key of the taint on devices. Its value is a level of vnpu/health/level.h, or, on devices that
// nobody holds, "divided" (somebody has made vNPUs on the chip, so that it cannot be used whole),
// "resetting" (it is being reset, or goes down with one that is), "busy" (in use although no claim
// holds it), "withheld" (it may belong to a claim whose record cannot be read), "device-plugin"
// (the classic device plugin hands out the same chips), or, on held ones, "withdrawn": healthy, but
// only the claim that holds it may keep it (the chip was excluded, or the multi-die policy
// changed).
inline constexpr char kUnhealthyTaint[] = "npu.huawei.com/unhealthy";

using ClaimRecords = std::vector<std::shared_ptr<const ClaimRecord>>;

// Tells which chips processes use although no claim holds them: of a container outside Kubernetes,
// or left over from a pod. Not thread-safe.
class BusyChips {
 public:
  // So long a chip has to be in use on end before it counts. The agent's look may be some seconds
  // old and still show the last process of a claim that was just given back.
  static constexpr absl::Duration kSettle = absl::Seconds(3);

  // Physical ids of the chips that count at `now`, a time of the monotonic clock that never goes
  // back from call to call. A null inventory has none.
  std::set<int> Update(const vnpu::Inventory* inventory, const ClaimRecords& records,
                       absl::Duration now);
  // After the last Update: how long until the next chip counts if nothing changes before.
  std::optional<absl::Duration> next_change() const { return next_change_; }

 private:
  std::map<int, absl::Duration> since_;
  std::optional<absl::Duration> next_change_;
};

struct SliceInputs {
  std::string driver;
  std::string node_name;
  std::string node_uid;
  DeviceOptions devices;
  // The last known inventory; null = none yet, then only held devices can be told.
  std::shared_ptr<const vnpu::Inventory> inventory;
  std::shared_ptr<const ChipVerdicts> health;  // null: nobody knows yet how the chips are
  std::set<int> resetting;                     // chips that are being reset now
  std::set<int> busy_chips;  // from BusyChips; says nothing about chips that a claim holds
  ClaimRecords records;
  // Devices that are allocated to claims without a record, as far as the driver knows: those that
  // it was asked to prepare and could not.
  std::vector<kube::SliceDevice> pending;
  // Chips that records which cannot be read hold, or may hold: not offered unless a readable record
  // holds them. See Quarantine.
  std::set<int> quarantined_chips;
  // Not empty: every device that nobody holds is withheld, and this is why ("withheld",
  // "device-plugin").
  std::string withhold_free;
  // By physical id: vNPUs that no claim of ours has, from ForeignVnpus.
  std::map<int, std::vector<vnpu::Vnpu>> foreign_vnpus;
  // False on servers that drop counters (before 1.36): whole chips only.
  bool server_keeps_counters = true;
  // False on servers that drop taints (before 1.36): sick devices that nobody holds are left out.
  bool server_keeps_taints = true;
};

struct SlicePlan {
  // One pool. At least one slice, even without devices: an empty pool differs from no driver.
  // Generation is left 0, for the publisher to set.
  std::vector<kube::ResourceSlice> slices;
  // Devices that had to be left out, and why; for the log.
  std::vector<std::string> problems;
  // Chips that are not divided although they are to be; for the log.
  std::vector<std::string> warnings;
};

// A device that a claim holds stays published under its allocated name, attributes and capacity
// until its record is gone, tainted if need be, whatever became of the chip: the scheduler counts
// only what is published and would otherwise hand the chip out twice. As long as what is held of a
// chip is not what the configuration would offer now (another mode, other templates, another unit),
// nothing else of the chip is offered: the account of such a mix would be wrong.
SlicePlan BuildSlices(const SliceInputs& inputs);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SLICES_BUILDER_H_
