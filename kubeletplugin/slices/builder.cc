#include "kubeletplugin/slices/builder.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "kubeletplugin/slice_device.h"
#include "kubeletplugin/slices/limits.h"

namespace ascend::kubeletplugin {
namespace {

// Why a device is tainted.
struct Ill {
  std::string level;
  vnpu::TaintEffect effect = vnpu::TaintEffect::kNoSchedule;
  absl::Time since;  // of a verdict of the health policy; else not set
};

kube::DeviceTaint Taint(const Ill& ill) {
  const bool dated = ill.since != absl::Time();
  return {.key = kUnhealthyTaint,
          .value = ill.level,
          .effect = std::string(vnpu::TaintEffectName(ill.effect)),
          .time_added =
              dated ? absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", ill.since, absl::UTCTimeZone()) : ""};
}

std::optional<Ill> IllBy(const vnpu::Verdict& verdict) {
  if (verdict.effect == vnpu::TaintEffect::kNone) return std::nullopt;
  return Ill{.level = std::string(vnpu::HealthLevelName(verdict.level)),
             .effect = verdict.effect,
             .since = verdict.since};
}

const ChipVerdicts& HealthOf(const SliceInputs& inputs) {
  static const auto& none = *new ChipVerdicts();
  return inputs.health == nullptr ? none : *inputs.health;
}

// Of a quantity that ToCounterSet() made.
int64_t CounterValue(absl::string_view quantity) {
  const int64_t unit = absl::ConsumeSuffix(&quantity, "Gi") ? 1024 : 1;
  if (unit == 1) absl::ConsumeSuffix(&quantity, "Mi");
  int64_t value = 0;
  return absl::SimpleAtoi(quantity, &value) ? value * unit : 0;
}

// The API takes 253 characters.
std::string SliceName(size_t index, absl::string_view driver, absl::string_view node_name) {
  std::string name = absl::StrCat(absl::StrFormat("%05x", index), "-", driver, "-", node_name);
  if (name.size() <= kMaxObjectName) return name;
  // Nodes whose names differ only behind the cut must not share a slice.
  const std::string hash = absl::StrFormat("%08x", Crc32c(name));
  name.resize(kMaxObjectName - 1 - hash.size());
  while (!absl::ascii_isalnum(name.back())) name.pop_back();
  return absl::StrCat(name, "-", hash);
}

}  // namespace

std::set<int> BusyChips::Update(const vnpu::Inventory* inventory, const ClaimRecords& records,
                                absl::Duration now) {
  std::set<int> held;
  for (const auto& record : records) {
    for (const RecordedDevice& device : record->devices) {
      // Admin access too: a monitoring pod may have a process on any of its chips.
      for (const RecordedChip& chip : device.chips) held.insert(chip.physical_id);
    }
  }
  std::map<int, absl::Duration> since;
  std::set<int> counting;
  next_change_.reset();
  if (inventory != nullptr) {
    for (const vnpu::Chip& chip : inventory->chips) {
      const bool in_use = chip.busy.has_value() && !chip.busy->empty();
      if (!in_use || held.count(chip.physical_id) != 0) continue;
      const auto before = since_.find(chip.physical_id);
      const absl::Duration start = before == since_.end() ? now : before->second;
      since[chip.physical_id] = start;
      const absl::Duration left = start + kSettle - now;
      if (left <= absl::ZeroDuration()) {
        counting.insert(chip.physical_id);
      } else {
        next_change_ = std::min(next_change_.value_or(left), left);
      }
    }
  }
  since_ = std::move(since);
  return counting;
}

namespace {

// Who holds what, of the chips of the node.
struct Holdings {
  // Admin access holds nothing: such a device may change and leave with its chip.
  explicit Holdings(const SliceInputs& inputs) {
    for (const auto& record : inputs.records) {
      for (const RecordedDevice& device : record->devices) {
        if (device.admin_access || !devices.try_emplace(device.device, &device).second) continue;
        claims[device.device] = record->claim();
        for (const RecordedChip& chip : device.chips) {
          (device.vnpu ? divided : whole).insert(chip.physical_id);
        }
        Consume(device.published);
      }
    }
    for (const kube::SliceDevice& device : inputs.pending) {
      if (devices.count(device.name) == 0) Consume(device);
    }
  }

  void Consume(const kube::SliceDevice& device) {
    for (const kube::CounterSet& set : device.consumes_counters) {
      for (const auto& [name, quantity] : set.counters) {
        live[set.name][name] += CounterValue(quantity);
      }
    }
  }

  std::map<std::string, const RecordedDevice*> devices;  // by name
  std::map<std::string, std::string> claims;             // the same, who has it
  std::set<int> whole, divided;                          // physical ids
  std::map<std::string, vnpu::Counters> live;            // by counter set
};

class Builder {
 public:
  explicit Builder(const SliceInputs& inputs)
      : inputs_(inputs), held_(inputs), health_(HealthOf(inputs)) {
    DeviceOptions options = inputs.devices;
    if (!inputs.server_keeps_counters && options.vnpu_mode == VnpuMode::kDynamic) {
      options.vnpu_mode = VnpuMode::kOff;
      plan_.warnings.push_back(
          "the API server does not store counters (feature gate DRAPartitionableDevices), without "
          "which parts of chips cannot be offered: whole chips are offered");
    }
    if (inputs.inventory != nullptr) node_ = DevicesOf(*inputs.inventory, options);
    plan_.warnings.insert(plan_.warnings.end(), node_.warnings.begin(), node_.warnings.end());
    FindFrozenChips(options);
  }

  SlicePlan Run() {
    if (inputs_.inventory != nullptr) AddDevicesOfNode();
    for (const auto& [name, device] : held_.devices) {
      if (kept_.count(name) != 0) continue;
      Add(device->chips.empty() ? -1 : device->chips.front().physical_id, device->published, name,
          IllnessOfWithdrawn(*device));
    }
    std::sort(devices_.begin(), devices_.end(), [](const Entry& a, const Entry& b) {
      return std::tie(a.group, a.order) < std::tie(b.group, b.order);
    });
    AddCounterSlices();
    AddDeviceSlices();
    for (kube::ResourceSlice& slice : plan_.slices) {
      slice.pool_slice_count = static_cast<int64_t>(plan_.slices.size());
    }
    return std::move(plan_);
  }

 private:
  struct Entry {
    int group;     // lowest physical id of those that share devices
    size_t order;  // in which they were added
    kube::SliceDevice device;
  };

  // A held device that is not what would be offered now.
  void FindFrozenChips(const DeviceOptions& options) {
    std::map<std::string, const NpuDevice*> by_name;  // of those that are held
    std::set<int> offered;
    for (const NpuDevice& device : node_.devices) {
      for (const vnpu::Chip* chip : device.chips) offered.insert(chip->physical_id);
      if (held_.devices.count(device.name) != 0) by_name[device.name] = &device;
    }
    for (const auto& [name, device] : held_.devices) {
      const auto same = by_name.find(name);
      std::optional<NpuDevice> unlisted;  // of a template that is no longer on offer
      if (same == by_name.end() && device->vnpu && inputs_.inventory != nullptr) {
        unlisted = FindDevice(*inputs_.inventory, options, name);
      }
      const NpuDevice* now = same != by_name.end() ? same->second : unlisted ? &*unlisted : nullptr;
      if (now != nullptr && now->consumes == device->published.consumes_counters) continue;
      for (const RecordedChip& chip : device->chips) {
        frozen_.insert(chip.physical_id);
        if (offered.count(chip.physical_id) == 0) continue;  // nothing is kept back
        plan_.warnings.push_back(absl::StrCat(
            "chip ", chip.physical_id, " is not offered as configured: claim ",
            held_.claims.at(name), " has ", name,
            " of it, and until that is released nothing else ", "of the chip can be had"));
      }
    }
  }

  // Whether parts are on the chip that no claim has, or that are offered one by one.
  bool DividedByOthers(int physical_id) const {
    if (inputs_.foreign_vnpus.count(physical_id) != 0) return true;
    if (inputs_.devices.vnpu_mode != VnpuMode::kStatic) return false;
    return std::any_of(inputs_.inventory->chips.begin(), inputs_.inventory->chips.end(),
                       [&](const vnpu::Chip& chip) {
                         return chip.physical_id == physical_id && chip.partitioning &&
                                !chip.partitioning->vnpus.empty();
                       });
  }

  const vnpu::Verdict& VerdictOnDevice(const NpuDevice& device) const {
    std::vector<int> ids;
    for (const vnpu::Chip* chip : device.chips) ids.push_back(chip->physical_id);
    return VerdictOn(ids, health_);
  }

  // Of a held device that the node does not offer (any more).
  Ill IllnessOfWithdrawn(const RecordedDevice& device) const {
    std::vector<int> ids;
    for (const RecordedChip& chip : device.chips) {
      ids.push_back(chip.physical_id);
      // Not there on this boot at all, so that the health policy never heard of it.
      if (inputs_.inventory != nullptr && health_.count(chip.physical_id) == 0) {
        return {.level = std::string(vnpu::HealthLevelName(vnpu::HealthLevel::kLost))};
      }
    }
    return IllBy(VerdictOn(ids, health_)).value_or(Ill{.level = "withdrawn"});
  }

  // What nobody holds: why it must not be handed out.
  std::optional<Ill> IllnessOfFree(const NpuDevice& device, const vnpu::Verdict& verdict) const {
    for (const vnpu::Chip* chip : device.chips) {
      if (inputs_.resetting.count(chip->physical_id) != 0) return Ill{.level = "resetting"};
    }
    const bool busy = std::any_of(
        device.chips.begin(), device.chips.end(),
        [&](const vnpu::Chip* chip) { return inputs_.busy_chips.count(chip->physical_id) != 0; });
    // Not knowing says less than a process that is seen.
    if (busy && verdict.level <= vnpu::HealthLevel::kUnknown) return Ill{.level = "busy"};
    if (std::optional<Ill> ill = IllBy(verdict)) return ill;
    if (busy) return Ill{.level = "busy"};
    const std::string level = WithheldBecause(device);
    return level.empty() ? std::nullopt : std::optional<Ill>(Ill{.level = level});
  }

  // Of a healthy device that nobody holds; empty if it may be handed out.
  std::string WithheldBecause(const NpuDevice& device) const {
    if (!inputs_.withhold_free.empty()) return inputs_.withhold_free;
    for (const vnpu::Chip* chip : device.chips) {
      if (inputs_.quarantined_chips.count(chip->physical_id) != 0) return "withheld";
      if (!device.partition && DividedByOthers(chip->physical_id)) return "divided";
      // Nobody has ever told what is on it.
      if (inputs_.devices.vnpu_mode != VnpuMode::kOff && !chip->partitioning &&
          !chip->partitioning_error.empty()) {
        return "unknown";
      }
      // What a chip that does not tell its memory has must not be guessed.
      if (chip->memory_mib <= 0) return "unknown";
    }
    return "";
  }

  // Without counters a chip and its parts exclude each other by what is published.
  bool ExcludedByHolder(const NpuDevice& device) const {
    for (const vnpu::Chip* chip : device.chips) {
      if (frozen_.count(chip->physical_id) != 0) return true;
      if (!device.consumes.empty()) continue;
      const std::set<int>& others = device.partition ? held_.whole : held_.divided;
      if (others.count(chip->physical_id) != 0) return true;
    }
    return false;
  }

  void AddDevicesOfNode() {
    SliceDeviceMaker maker(*inputs_.inventory);
    for (const NpuDevice& device : node_.devices) {
      const int group = device.chips.front()->physical_id;
      for (const vnpu::Chip* chip : device.chips) {
        group_of_[chip->physical_id] = group_of_.count(group) != 0 ? group_of_[group] : group;
      }
      const vnpu::Verdict& verdict = VerdictOnDevice(device);
      const auto holder = held_.devices.find(device.name);
      if (holder != held_.devices.end()) {
        kept_.insert(device.name);
        Add(group, holder->second->published, device.name, IllBy(verdict));
        continue;
      }
      if (ExcludedByHolder(device)) continue;
      const std::optional<Ill> ill = IllnessOfFree(device, verdict);
      if (ill && !inputs_.server_keeps_taints) continue;
      Add(group, maker.Make(device), device.name, ill);
    }
  }

  void Add(int chip, kube::SliceDevice device, const std::string& name,
           const std::optional<Ill>& ill) {
    device.name = name;
    device.taints.clear();
    if (ill) device.taints.push_back(Taint(*ill));
    if (absl::Status status = CheckDevice(device); !status.ok()) {
      plan_.problems.push_back(std::string(status.message()));
      return;
    }
    const auto group = group_of_.find(chip);
    devices_.push_back(
        {group == group_of_.end() ? chip : group->second, devices_.size(), std::move(device)});
  }

  vnpu::Counters CountersOf(int physical_id, const vnpu::Counters& live) const {
    const auto divided = node_.divided.find(physical_id);
    if (divided == node_.divided.end() || frozen_.count(physical_id) != 0) return live;
    // A record that cannot be read may account for what seems foreign. Less than what is allocated
    // would stop the whole pool, and what is free of the chip is withheld anyway.
    if (inputs_.quarantined_chips.count(physical_id) != 0 || inputs_.withhold_free == "withheld") {
      return vnpu::RemainingCounters(*divided->second.product, *divided->second.plan, {}, live);
    }
    const auto foreign = inputs_.foreign_vnpus.find(physical_id);
    return vnpu::RemainingCounters(
        *divided->second.product, *divided->second.plan,
        foreign == inputs_.foreign_vnpus.end() ? std::vector<vnpu::Vnpu>() : foreign->second, live);
  }

  // Of every chip of which something that consumes counters is published.
  void AddCounterSlices() {
    std::set<std::string> names;
    for (const Entry& entry : devices_) {
      for (const kube::CounterSet& set : entry.device.consumes_counters) names.insert(set.name);
    }
    std::map<int, std::string> sets;  // by physical id
    for (const std::string& name : names) {
      for (const int id : PhysicalIdsOf(name)) sets[id] = name;
    }
    for (const auto& [id, name] : sets) {
      if (plan_.slices.empty() ||
          plan_.slices.back().shared_counters.size() == kMaxCounterSetsPerSlice) {
        AddSlice();
      }
      const auto live = held_.live.find(name);
      plan_.slices.back().shared_counters.push_back(ToCounterSet(
          id, CountersOf(id, live == held_.live.end() ? vnpu::Counters() : live->second)));
    }
  }

  // The devices of one chip stay together: a taint is then one write.
  void AddDeviceSlices() {
    size_t begin = 0;
    bool fresh = true;
    while (begin < devices_.size()) {
      size_t end = begin + 1;
      while (end < devices_.size() && devices_[end].group == devices_[begin].group) ++end;
      if (fresh || plan_.slices.back().devices.size() + (end - begin) > kMaxDevicesPerSlice) {
        AddSlice();
        fresh = false;
      }
      for (; begin < end; ++begin) {
        if (plan_.slices.back().devices.size() == kMaxDevicesPerSlice) AddSlice();
        plan_.slices.back().devices.push_back(std::move(devices_[begin].device));
      }
    }
    if (plan_.slices.empty()) AddSlice();
  }

  void AddSlice() {
    kube::ResourceSlice& slice = plan_.slices.emplace_back();
    slice.name = SliceName(plan_.slices.size() - 1, inputs_.driver, inputs_.node_name);
    slice.owner_node.name = inputs_.node_name;
    slice.owner_node.uid = inputs_.node_uid;
    slice.driver = inputs_.driver;
    slice.node_name = inputs_.node_name;
    slice.pool_name = inputs_.node_name;
  }

  const SliceInputs& inputs_;
  const Holdings held_;
  const ChipVerdicts& health_;
  NodeDevices node_;
  std::set<int> frozen_;
  std::set<std::string> kept_;   // held devices that are also on offer
  std::map<int, int> group_of_;  // by physical id
  std::vector<Entry> devices_;
  SlicePlan plan_;
};

}  // namespace

SlicePlan BuildSlices(const SliceInputs& inputs) { return Builder(inputs).Run(); }

}  // namespace ascend::kubeletplugin
