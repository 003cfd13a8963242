// The description of a mock node, as node.json holds it (README.md documents the keys).
//
// Used by the mock library and by ascend-mock-node; depends on nothing but the C++ library, because
// the mock must load into any client.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_NODE_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_NODE_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ascend::dcmi::mock {

enum class Family { k310, k310B, k310P, k910A, k910B, kA3, k950 };

struct Pci {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  unsigned vendor_id = 0, device_id = 0, subsystem_vendor_id = 0, subsystem_device_id = 0;
  std::string root;  // "pci0000:c0"
  int numa_node = -1;

  std::string BusId() const;  // "0000:c1:00.0"
};

struct Memory {
  bool hbm = false;
  uint64_t total_mib = 0;
  uint64_t used_mib = 0;
  unsigned frequency_mhz = 0;
  int temperature = 0;
  unsigned bandwidth_percent = 0;
};

struct Roce {
  std::array<unsigned char, 4> address{}, mask{}, gateway{};
};

struct SuperPod {
  unsigned sdid = 0, size = 0, id = 0, server_index = 0, chassis_id = 0, type = 0;
};

struct Process {
  int pid = 0;
  uint64_t memory_bytes = 0;
};

using DieId = std::array<uint32_t, 5>;

struct Chip {
  std::optional<int> physical_id;
  int card = 0, device = 0;
  bool present = true;
  unsigned health = 0;           // at least; the state's faults make it worse
  bool health_is_fixed = false;  // they do not
  unsigned boot_status = 16;
  std::vector<unsigned> error_codes;

  std::string chip_type = "Ascend", chip_name, chip_version = "V1", npu_name;
  std::string product_name, product_type, serial;
  unsigned aicore_count = 0, aicpu_count = 0;
  unsigned board_id = 0, pcb_id = 0, bom_id = 0, slot_id = 0, mainboard_id = 0;
  Pci pci;
  DieId ndie{}, vdie{}, ddie{};
  Memory memory;
  std::optional<Roce> roce;
  unsigned network_health = 0;
  std::optional<SuperPod> super_pod;
  std::string cpu_affinity;

  std::optional<int> temperature, power_deciwatt;
  std::optional<unsigned> voltage_centivolt;
  std::map<int, unsigned> utilization;     // by the library's type number
  std::map<unsigned, unsigned> frequency;  // by the library's type number, MHz
  unsigned ecc_single_bit_errors = 0, ecc_double_bit_errors = 0;
  std::vector<Process> processes;
};

// What a chip can be divided by, and what is divided. Media engines may be fractions.
struct VnpuAmounts {
  double aicore = 0, aicpu = 0, memory = 0;  // memory in MiB
  double vpc = 0, venc = 0, vdec = 0, jpegd = 0, jpege = 0, pngd = 0;
};

struct VnpuTemplate {
  std::string name;
  VnpuAmounts amounts;
};

enum class ExplicitIds { kHonours, kIgnores, kRefuses };

// The rules by which the hardware of a product makes vNPUs, for each of its chips.
struct VnpuRules {
  std::vector<std::pair<std::string, double>> budget;  // by the name of the resource
  double reported_memory = 0;  // total memory that the chip tells; 0 = the budget's
  int max_vnpus = 16;
  int vgroups = 0;           // 310P
  double vgroup_aicore = 0;  // the least that a vGroup takes
  ExplicitIds explicit_ids = ExplicitIds::kHonours;
  bool create = true;  // false: the calls that make and destroy are not supported
  std::vector<VnpuTemplate> templates;

  const VnpuTemplate* FindTemplate(const std::string& name) const;
};

// When /dev/vdavinci<id> shows up (ascend-mock-node kernel).
struct VnpuNodes {
  int delay_ms = 0;
  bool never = false;
};

// What a call does instead of, before, or after its normal work.
struct Behaviour {
  std::optional<int> card, device, physical_id;  // only for this chip; none = every call
  std::optional<int> return_code;
  int delay_ms = 0;
  bool hang = false;
  bool crash = false;
  bool after_work = false;  // all of this only when the work is done
};

// The chips that go down together in a reset.
enum class ResetUnit { kChip, kCard, kModule, kModulePair, kRing, kMesh };

struct ResetBehaviour {
  std::optional<ResetUnit> unit;  // none = the product's
  int duration_ms = 1000;         // until the chips have started again
  std::optional<int> stops_at;    // the boot status that they do not get beyond
  bool outband = true;            // there is a channel out of band
};

// What becomes of fault events on their way to the subscribers.
struct EventBehaviour {
  bool lose_occurred = false, lose_recovered = false, lose_one_shot = false;
  int delay_ms = 0;
};

struct Node {
  Family family = Family::k910B;
  int generation = 1;
  std::string dcmi_version, driver_version, firmware_version;
  std::optional<bool> dies_independent;  // none = the product or the driver has no such policy
  std::vector<Chip> chips;
  std::map<std::string, std::vector<Behaviour>> calls;  // "*" = every function
  std::vector<std::string> hidden_symbols;
  std::optional<VnpuRules> vnpu;  // none = the product has no vNPUs
  VnpuNodes vnpu_nodes;
  ResetBehaviour reset;
  EventBehaviour events;

  bool HasHbm() const;
  // What the library enumerates, in logic id order: the chips that are present; on A3 with the
  // policy "union" a module counts only with both dies.
  std::vector<const Chip*> Visible() const;
  // Place in Visible(); of a chip that is not, the place that it would have.
  int LogicIdOf(const Chip& chip) const;
  const Chip* FindPhysical(int physical_id) const;
  // Whether a card has a management unit; it is the unit after the chips of the card.
  bool HasMcu() const;
};

const char* FamilyName(Family family);

// Strict: an unknown key or a wrong type is an error, which names it. Throws nothing.
bool ParseNode(const std::string& text, Node* node, std::string* error);

// The file in a node's directory.
std::string NodeFile(const std::string& node_directory);

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_NODE_H_
