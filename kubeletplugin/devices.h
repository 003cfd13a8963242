// From a node's inventory to the devices that Kubernetes hands out. One place decides which chips
// make a device and what it is called, for the slices and for claims alike.
#ifndef ASCEND_DRA_KUBELETPLUGIN_DEVICES_H_
#define ASCEND_DRA_KUBELETPLUGIN_DEVICES_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "kubeletplugin/kube/resource_slice.h"
#include "vnpu/catalog.h"
#include "vnpu/chip.h"
#include "vnpu/partition_plan.h"

namespace ascend::kubeletplugin {

// How a node's chips are divided into vNPUs.
enum class VnpuMode {
  kOff,      // whole chips only
  kStatic,   // what an administrator has made
  kDynamic,  // made for a claim and destroyed with it; counters say what fits
};
absl::string_view VnpuModeName(VnpuMode mode);  // "off", "static", "dynamic"

// What is handed out of an A3 node: the two dies of a module together, or each die alone. kPolicy:
// as the node's multi-die policy says.
enum class A3Unit { kPolicy, kModule, kDie };

struct DeviceOptions {
  std::set<int> excluded_chips = {};  // physical ids that are not offered
  VnpuMode vnpu_mode = VnpuMode::kOff;
  std::optional<std::set<std::string>> vnpu_templates = {};  // names offered; none = all
  bool vnpus_on_a3 = false;  // uncertain on every driver so far, so only on demand
  A3Unit a3_unit = A3Unit::kPolicy;
  std::shared_ptr<const vnpu::Catalog> catalog = {};  // null = the built-in one
};

// What distinguishes a partition from the chip that it is a part of.
struct Partition {
  vnpu::Template kind;
  int index = 0;
  std::vector<int> vgroups;  // of our account, see vnpu/partition_plan.h
  int vnpu_id = -1;          // static mode: the vNPU there is
};

// A whole chip, an A3 module of two dies, or a part of a chip. Valid as long as the inventory that
// it was made from: all devices of a chip point into that.
struct NpuDevice {
  std::string name;                      // "npu-3", "npu-2-3", "npu-3-vir05-1c-8g-0"
  std::vector<const vnpu::Chip*> chips;  // ascending physical id; one or two
  std::optional<Partition> partition;
  // Of each chip's counter set; empty where no counters are needed.
  std::vector<kube::CounterSet> consumes;
};

// How a chip is divided on demand.
struct DividedChip {
  const vnpu::Product* product = nullptr;  // of the catalog in the options
  std::shared_ptr<const vnpu::PartitionPlan> plan;
};

// What a node offers, apart from who holds it.
struct NodeDevices {
  // By chip; the whole chip before its parts, small parts before large ones.
  std::vector<NpuDevice> devices;
  std::map<int, DividedChip> divided;  // by physical id: these have counters
  // Why chips are not divided although they are to be; for people, one line each.
  std::vector<std::string> warnings;
};

// Ascending by physical id. An A3 die whose module peer is missing or excluded is not offered in
// union mode: one die alone cannot be used there (the library drops the whole module).
NodeDevices DevicesOf(const vnpu::Inventory& inventory, const DeviceOptions& options);

// The device of this name: one of DevicesOf(), or a partition that fits the chip but is not among
// the templates on offer (any more). nullopt if there is none such.
std::optional<NpuDevice> FindDevice(const vnpu::Inventory& inventory, const DeviceOptions& options,
                                    absl::string_view name);

std::string PartitionName(int physical_id, absl::string_view template_name, int index);
// The physical ids in the name of a device; empty for any other name.
std::vector<int> PhysicalIdsOf(absl::string_view device_name);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_DEVICES_H_
