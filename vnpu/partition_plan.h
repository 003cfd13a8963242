// How a chip is offered in parts: as counters and what each possible partition takes of them, so
// that exactly what the hardware can hold at the same time can be allocated. Pure.
#ifndef ASCEND_DRA_VNPU_PARTITION_PLAN_H_
#define ASCEND_DRA_VNPU_PARTITION_PLAN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vnpu/catalog.h"
#include "vnpu/resources.h"

namespace ascend::vnpu {

// Counter name -> number: "aicore", "aicpu", "memory" (MiB), "vpc", ..., "vnpus" (partitions of the
// chip), and on products with vGroups "vgroup-0" ... (cores of each group). No zeros, but in
// RemainingCounters(): there every counter of the plan stays, because devices name it.
using Counters = std::map<std::string, int64_t>;

// One partition that may be made. `index` counts the partitions of a template, from 0.
struct PartitionDevice {
  std::string template_name;
  int index = 0;
  // The vGroups that it takes, as numbers of our own account: partitions that are to share a group
  // of the hardware name the same one. Empty on products without.
  std::vector<int> vgroups;
  Counters consumes;
};

struct PartitionPlan {
  Counters counters;  // of the whole chip: what the whole chip consumes as well
  // Templates ascending by size, then index: first fit packs small requests together.
  std::vector<PartitionDevice> devices;
};

// `offered`: names of the templates to offer; none = all of the product. A plan without devices:
// none of them fits the budget. Chips with equal product and budget have equal plans.
PartitionPlan PlanPartitions(const Product& product, const Amounts& budget,
                             const std::optional<std::set<std::string>>& offered);

// The partition of this template and index, also if it is not among the offered; nullopt if the
// product has none such.
std::optional<PartitionDevice> FindPartition(const Product& product, const Amounts& budget,
                                             const std::string& template_name, int index);

// The counters to publish for a chip on which others have made vNPUs: the plan's, less what those
// take, but never below `live`, what the claims on this chip consume: else the scheduler would take
// the whole pool for invalid. A vNPU takes what its template says if the product knows that, else
// what the library says, and if that is nothing, all that is left. Its vGroups are counted whole,
// as the highest ones that are free of live use: ours never rely on the rest of a foreign group.
Counters RemainingCounters(const Product& product, const PartitionPlan& plan,
                           const std::vector<Vnpu>& foreign, const Counters& live);

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_PARTITION_PLAN_H_
