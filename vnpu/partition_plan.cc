#include "vnpu/partition_plan.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace ascend::vnpu {
namespace {

constexpr char kVnpus[] = "vnpus";

std::string VGroupName(int group) { return absl::StrCat("vgroup-", group); }

std::string CounterName(Resource resource) { return std::string(ResourceName(resource)); }

// What every partition of a template takes, its vGroups apart.
Counters Consumption(const Template& partition, const Amounts& budget) {
  Counters consumes;
  for (const Resource resource : kResources) {
    if (budget[resource] > 0 && partition.amounts[resource] > 0) {
      consumes[CounterName(resource)] = partition.amounts[resource];
    }
  }
  consumes[kVnpus] = 1;
  return consumes;
}

// How many partitions of the template fit beside each other, vGroups apart.
int64_t Copies(const Product& product, const Template& partition, const Amounts& budget) {
  int64_t copies = product.max_vnpus;
  for (const Resource resource : kResources) {
    if (budget[resource] > 0 && partition.amounts[resource] > 0) {
      copies = std::min(copies, budget[resource] / partition.amounts[resource]);
    }
  }
  return copies;
}

// All ways to choose `size` of the groups 0 ... count - 1, in lexicographic order.
std::vector<std::vector<int>> Combinations(int count, int size) {
  std::vector<std::vector<int>> result;
  std::vector<int> chosen;
  for (int i = 0; i < size; ++i) chosen.push_back(i);
  while (size <= count) {
    result.push_back(chosen);
    int last = size - 1;  // the last that can still move up
    while (last >= 0 && chosen[last] == count - size + last) --last;
    if (last < 0) break;
    ++chosen[last];
    for (int i = last + 1; i < size; ++i) chosen[i] = chosen[i - 1] + 1;
  }
  return result;
}

// A partition for every place that the hardware has for it, not only as many as fit beside each
// other: after any history of releases the free places are among them.
void AddInVGroups(const VGroups& vgroups, const Template& partition, const Counters& consumes,
                  std::vector<PartitionDevice>* devices) {
  const auto cores = static_cast<int>(partition.amounts[Resource::kAicore]);
  int index = 0;
  const auto add = [&](const std::vector<int>& groups, int cores_of_each) {
    PartitionDevice device{
        .template_name = partition.name, .index = index++, .vgroups = groups, .consumes = consumes};
    for (const int group : groups) device.consumes[VGroupName(group)] = cores_of_each;
    devices->push_back(std::move(device));
  };
  if (cores < vgroups.aicore) {
    for (int group = 0; group < vgroups.count; ++group) {
      for (int i = 0; i < vgroups.aicore / cores; ++i) add({group}, cores);
    }
    return;
  }
  const int needed = (cores + vgroups.aicore - 1) / vgroups.aicore;
  for (const std::vector<int>& groups : Combinations(vgroups.count, needed)) {
    add(groups, vgroups.aicore);
  }
}

// Appends the partitions of one template.
void AddPartitions(const Product& product, const Amounts& budget, const Template& partition,
                   std::vector<PartitionDevice>* devices) {
  const int64_t copies = Copies(product, partition, budget);
  if (copies == 0) return;
  const Counters consumes = Consumption(partition, budget);
  if (product.vgroups.count > 0) {
    AddInVGroups(product.vgroups, partition, consumes, devices);
    return;
  }
  for (int index = 0; index < copies; ++index) {
    devices->push_back(
        {.template_name = partition.name, .index = index, .vgroups = {}, .consumes = consumes});
  }
}

const Template* FindTemplate(const Product& product, absl::string_view name) {
  const auto found =
      absl::c_find_if(product.templates, [name](const Template& t) { return t.name == name; });
  return found == product.templates.end() ? nullptr : &*found;
}

Amounts Taken(const Product& product, const Vnpu& vnpu) {
  const Template* const known = FindTemplate(product, vnpu.template_name);
  return known == nullptr ? vnpu.amounts : known->amounts;
}

// How many vGroups the vNPUs take at most. Only small ones of which the library says so share one.
int VGroupsTaken(const Product& product, const std::vector<Vnpu>& vnpus) {
  const int64_t size = product.vgroups.aicore;
  int64_t taken = 0;
  std::set<int> shared;
  for (const Vnpu& vnpu : vnpus) {
    const int64_t cores = Taken(product, vnpu)[Resource::kAicore];
    if (cores < size && vnpu.vgroup >= 0) {
      shared.insert(vnpu.vgroup);
    } else {
      taken += (cores + size - 1) / size;
    }
  }
  return static_cast<int>(
      std::min<int64_t>(taken + static_cast<int64_t>(shared.size()), product.vgroups.count));
}

}  // namespace

PartitionPlan PlanPartitions(const Product& product, const Amounts& budget,
                             const std::optional<std::set<std::string>>& offered) {
  PartitionPlan plan;
  for (const Resource resource : kResources) {
    if (budget[resource] > 0) plan.counters[CounterName(resource)] = budget[resource];
  }
  plan.counters[kVnpus] = product.max_vnpus;
  for (int group = 0; group < product.vgroups.count; ++group) {
    plan.counters[VGroupName(group)] = product.vgroups.aicore;
  }
  for (const Template& partition : product.templates) {
    if (offered.has_value() && offered->count(partition.name) == 0) continue;
    AddPartitions(product, budget, partition, &plan.devices);
  }
  return plan;
}

std::optional<PartitionDevice> FindPartition(const Product& product, const Amounts& budget,
                                             const std::string& template_name, int index) {
  const Template* const partition = FindTemplate(product, template_name);
  if (partition == nullptr || index < 0) return std::nullopt;
  std::vector<PartitionDevice> devices;
  AddPartitions(product, budget, *partition, &devices);
  if (static_cast<size_t>(index) >= devices.size()) return std::nullopt;
  return std::move(devices[index]);
}

Counters RemainingCounters(const Product& product, const PartitionPlan& plan,
                           const std::vector<Vnpu>& foreign, const Counters& live) {
  Counters remaining = plan.counters;
  bool unknown = false;
  for (const Vnpu& vnpu : foreign) {
    const Amounts taken = Taken(product, vnpu);
    unknown |= taken[Resource::kAicore] <= 0;
    for (const Resource resource : kResources) {
      const auto counter = remaining.find(CounterName(resource));
      if (counter != remaining.end()) counter->second -= std::max<int64_t>(taken[resource], 0);
    }
    --remaining[kVnpus];
  }
  if (product.vgroups.count > 0) {
    int taken = VGroupsTaken(product, foreign);
    for (int group = product.vgroups.count - 1; group >= 0 && taken > 0; --group) {
      const auto used = live.find(VGroupName(group));
      if (used != live.end() && used->second > 0) continue;
      remaining[VGroupName(group)] = 0;
      --taken;
    }
  }
  for (auto& [name, value] : remaining) value = unknown ? 0 : std::max<int64_t>(value, 0);
  for (const auto& [name, value] : live) remaining[name] = std::max(remaining[name], value);
  return remaining;
}

}  // namespace ascend::vnpu
