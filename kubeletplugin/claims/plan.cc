#include "kubeletplugin/claims/plan.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/core/status_macros.h"
#include "kubeletplugin/claims/npu_config.h"
#include "kubeletplugin/slice_device.h"

namespace ascend::kubeletplugin {
namespace {

RecordedChip ToRecorded(const vnpu::Chip& chip) {
  return {.physical_id = chip.physical_id,
          .node_number = chip.node_number,
          .family = chip.family,
          .uuid = chip.uuid,
          .pci_bus_id = chip.pci_bus_id,
          .roce_address = chip.roce_address};
}

bool Before(const RecordedDevice& a, const RecordedDevice& b) {
  const int first_a = a.chips.empty() ? -1 : a.chips.front().physical_id;
  const int first_b = b.chips.empty() ? -1 : b.chips.front().physical_id;
  return std::tie(first_a, a.device, a.share_id, a.admin_access) <
         std::tie(first_b, b.device, b.share_id, b.admin_access);
}

// Chips and published form of a device: as it is now, else as it was recorded.
absl::Status Identify(const std::string& name, const DeviceOptions& options,
                      const vnpu::Inventory& inventory, const ClaimRecord* recorded,
                      RecordedDevice* device) {
  if (const auto found = FindDevice(inventory, options, name)) {
    for (const vnpu::Chip* chip : found->chips) device->chips.push_back(ToRecorded(*chip));
    if (found->partition) {
      device->vnpu = RecordedVnpu{.template_name = found->partition->kind.name,
                                  .index = found->partition->index,
                                  .vgroups = found->partition->vgroups,
                                  .managed = found->partition->vnpu_id < 0,
                                  .id = found->partition->vnpu_id};
    }
    device->published = ToSliceDevice(*found, inventory);
    return absl::OkStatus();
  }
  if (recorded != nullptr) {
    for (const RecordedDevice& known : recorded->devices) {
      if (known.device != name) continue;
      device->chips = known.chips;
      device->vnpu = known.vnpu;
      device->published = known.published;
      return absl::OkStatus();
    }
  }
  return absl::FailedPreconditionError(
      absl::StrCat("device ", name, " is not on this node (any more): ",
                   inventory.library_message.empty()
                       ? "check the chip with npu-smi info; delete the pod to get another one"
                       : inventory.library_message));
}

}  // namespace

absl::StatusOr<std::vector<kube::DeviceResult>> ResultsForUs(const PlanInputs& inputs,
                                                             const ClaimReference& reference,
                                                             const kube::ResourceClaim& claim) {
  if (claim.uid != reference.uid) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the claim was replaced: the kubelet asks for UID ", reference.uid,
        ", the API server has UID ", claim.uid, "; delete the pod so that it uses the new claim"));
  }
  if (!claim.allocation) {
    return absl::FailedPreconditionError(
        "the claim is not allocated: wait for the scheduler, and do not set spec.nodeName on the "
        "pod (it bypasses the scheduler)");
  }
  const std::string& driver = inputs.paths.driver_name();
  std::vector<kube::DeviceResult> results;
  for (const kube::DeviceResult& result : claim.allocation->results) {
    if (result.driver != driver) continue;
    if (result.pool != inputs.node_name) {
      return absl::FailedPreconditionError(
          absl::StrCat("device ", result.device, " was allocated from pool ", result.pool,
                       ", this node's pool is ", inputs.node_name));
    }
    results.push_back(result);
    ASCEND_RETURN_IF_ERROR(NpuConfigFor(claim.allocation->config, driver, result).status());
  }
  return results;
}

absl::StatusOr<ClaimPlan> MakeClaimPlan(const PlanInputs& inputs, const ClaimReference& reference,
                                        const kube::ResourceClaim& claim,
                                        const std::vector<kube::DeviceResult>& results,
                                        const vnpu::Inventory& inventory,
                                        const ClaimRecord* recorded) {
  ClaimPlan plan;
  plan.record.claim_namespace = reference.namespace_name;
  plan.record.claim_name = reference.name;
  plan.record.claim_uid = reference.uid;
  plan.record.pod_claim_name = claim.pod_claim_name;
  plan.record.prepared_at = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", inputs.now, absl::UTCTimeZone());
  plan.record.boot_id = inputs.boot_id;
  std::vector<RecordedDevice>& devices = plan.record.devices;
  std::set<int> all, exclusive, shared, divided;
  const std::string& driver = inputs.paths.driver_name();
  for (const kube::DeviceResult& result : results) {
    // "request/subrequest" is answered under the name of the request: that is what containers name.
    const std::string request = result.request.substr(0, result.request.find('/'));
    ASCEND_ASSIGN_OR_RETURN(const NpuConfig config,
                            NpuConfigFor(claim.allocation->config, driver, result));
    const auto same = std::find_if(devices.begin(), devices.end(), [&](const RecordedDevice& d) {
      return d.device == result.device && d.share_id == result.share_id &&
             d.admin_access == result.admin_access;
    });
    if (same != devices.end()) {
      std::vector<std::string>& requests = same->requests;
      if (std::find(requests.begin(), requests.end(), request) == requests.end()) {
        requests.push_back(request);
        if (request != result.request) same->subrequests.push_back(result.request);
      }
      same->shared_use_expected |= config.shared_use_expected;
      continue;
    }
    RecordedDevice device;
    ASCEND_RETURN_IF_ERROR(Identify(result.device, inputs.devices, inventory, recorded, &device));
    device.requests = {request};
    if (request != result.request) device.subrequests = {result.request};
    device.shared_use_expected = config.shared_use_expected;
    for (const auto& [name, quantity] : result.consumed_capacity) {
      // The scheduler writes the name with or without our domain.
      absl::string_view bare = name;
      absl::ConsumePrefix(&bare, absl::StrCat(driver, "/"));
      device.consumed_capacity[std::string(bare)] = quantity;
    }
    device.pool = result.pool;
    device.device = result.device;
    device.share_id = result.share_id;
    device.admin_access = result.admin_access;
    device.cdi_device = inputs.paths.cdi_device_name(reference.uid, result.device, result.share_id);
    for (const RecordedChip& chip : device.chips) {
      all.insert(chip.physical_id);
      if (device.admin_access) continue;
      std::set<int>& ids = device.vnpu ? divided : device.share_id.empty() ? exclusive : shared;
      ids.insert(chip.physical_id);
    }
    devices.push_back(std::move(device));
  }
  std::sort(devices.begin(), devices.end(), Before);
  plan.physical_ids.assign(all.begin(), all.end());
  plan.exclusive_ids.assign(exclusive.begin(), exclusive.end());
  plan.shared_ids.assign(shared.begin(), shared.end());
  plan.divided_ids.assign(divided.begin(), divided.end());
  return plan;
}

bool Conflict(const RecordedDevice& one, const RecordedDevice& other) {
  if (one.admin_access || other.admin_access) return false;
  const bool same_chip = std::any_of(one.chips.begin(), one.chips.end(), [&](const auto& a) {
    return std::any_of(other.chips.begin(), other.chips.end(),
                       [&](const auto& b) { return a.physical_id == b.physical_id; });
  });
  if (!same_chip) return false;
  if (one.vnpu && other.vnpu) return one.device == other.device;
  if (one.vnpu || other.vnpu) return true;
  return one.share_id.empty() || other.share_id.empty();
}

bool SameAllocation(const ClaimRecord& a, const ClaimRecord& b) {
  return std::equal(a.devices.begin(), a.devices.end(), b.devices.begin(), b.devices.end(),
                    [](const RecordedDevice& x, const RecordedDevice& y) {
                      return x.pool == y.pool && x.device == y.device && x.share_id == y.share_id &&
                             x.requests == y.requests && x.admin_access == y.admin_access;
                    });
}

void KeepKnownFacts(const ClaimRecord& recorded, ClaimRecord* record) {
  if (!recorded.prepared_at.empty()) record->prepared_at = recorded.prepared_at;
  record->unknown_members = recorded.unknown_members;
  if (recorded.has_managed_vnpus()) {  // their ids are those of that boot, and so is an intent
    record->state = recorded.state;
    record->boot_id = recorded.boot_id;
  }
  for (size_t i = 0; i < record->devices.size() && i < recorded.devices.size(); ++i) {
    RecordedDevice& device = record->devices[i];
    device.published = recorded.devices[i].published;  // as it was when it was allocated
    if (const auto& made = recorded.devices[i].vnpu; made && made->managed) device.vnpu = made;
    for (RecordedChip& chip : device.chips) {
      for (const RecordedChip& old : recorded.devices[i].chips) {
        if (old.physical_id != chip.physical_id) continue;
        // An identity that is forgotten would let other hardware pass for the claim's.
        if (chip.uuid.empty()) chip.uuid = old.uuid;
        if (chip.pci_bus_id.empty()) chip.pci_bus_id = old.pci_bus_id;
        if (chip.roce_address.empty()) chip.roce_address = old.roce_address;
      }
    }
  }
}

absl::Status CheckIdentity(const ClaimRecord& record, const vnpu::Inventory& inventory) {
  for (const RecordedDevice& device : record.devices) {
    for (const RecordedChip& recorded : device.chips) {
      for (const vnpu::Chip& chip : inventory.chips) {
        if (chip.physical_id != recorded.physical_id) continue;
        if (recorded.uuid.empty() || chip.uuid.empty() || recorded.uuid == chip.uuid) continue;
        return absl::FailedPreconditionError(absl::StrCat(
            "device ", device.device, " is other hardware now: it was ", recorded.uuid, " at ",
            recorded.pci_bus_id, " when the claim was prepared and is ", chip.uuid, " at ",
            chip.pci_bus_id, "; delete the pod to get a new allocation"));
      }
    }
  }
  return absl::OkStatus();
}

std::vector<RecordedChip> ChipsOf(const ClaimRecord& record) {
  std::vector<RecordedChip> chips;
  for (const RecordedDevice& device : record.devices) {
    chips.insert(chips.end(), device.chips.begin(), device.chips.end());
  }
  return chips;
}

}  // namespace ascend::kubeletplugin
