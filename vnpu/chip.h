// What a node has, in the words of the domain: chips and the state of the library that knows them.
// Plain values, copied freely; whoever makes a snapshot never changes it afterwards.
#ifndef ASCEND_DRA_VNPU_CHIP_H_
#define ASCEND_DRA_VNPU_CHIP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "vnpu/resources.h"

namespace ascend::vnpu {

enum class Family { kUnknown, k310, k310B, k310P, k910A, k910B, kA3, k950 };

// "310", "310B", "310P", "910A", "910B", "A3", "950" or "unknown"; and back (kUnknown if none).
absl::string_view FamilyName(Family family);
Family FamilyFromName(absl::string_view name);

// The library's own grading (ascend-dcmi: 0 OK .. 3 critical), plus what is not a grade.
enum class Health {
  kUnknown,  // the library did not answer
  kOk,
  kMinor,
  kMajor,
  kCritical,
  kAbsent,  // the library says that the chip is gone or has not started
};
absl::string_view HealthName(Health health);  // "unknown", "ok", "minor", "major", ...
Health HealthFromName(absl::string_view name);

// How bad the driver calls a fault, in the events about it.
enum class FaultSeverity { kUnknown, kWarning, kMinor, kMajor, kCritical };
absl::string_view FaultSeverityName(FaultSeverity severity);  // "unknown", "warning", "minor", ...
FaultSeverity FaultSeverityFromName(absl::string_view name);

// A fault code of a chip. What it means for the chip is for the fault table to say.
struct Fault {
  uint64_t code = 0;    // 64 bits: composed codes (0x110001024) exceed 32
  bool active = false;  // in the library's list at the last look, or told by an event since
  // How often it has come since this agent process started, by the list or by an event: never
  // falls, so that what came and went between two looks is not lost.
  uint64_t occurrences = 0;
  FaultSeverity severity = FaultSeverity::kUnknown;  // told by events alone
  std::string text;                                  // the library's words; may be empty
  friend bool operator==(const Fault&, const Fault&) = default;
};

// Of the chip's RoCE port.
enum class NetworkHealth { kUnknown, kOk, kDown };
absl::string_view NetworkHealthName(NetworkHealth health);  // "unknown", "ok", "down"
NetworkHealth NetworkHealthFromName(absl::string_view name);

// A partition of a chip, as the library lists it.
struct Vnpu {
  int id = -1;                // the N of /dev/vdavinciN
  std::string template_name;  // "vir05_1c_8g"; empty = the library did not tell
  int vgroup = -1;            // 310P: 0-3; -1 = none or unknown
  // What the library says. No proof of disuse: a vNPU of a running pod that is idle shows false.
  bool container_used = false;
  bool normal = true;  // false: busy or abnormal
  Amounts amounts;     // what it takes; memory as the library says
  friend bool operator==(const Vnpu&, const Vnpu&) = default;
};

// What the library says about a chip as something to be divided.
struct Partitioning {
  Amounts total;            // zero where it says nothing. Memory is more than can be handed out.
  std::vector<Vnpu> vnpus;  // ascending id; also those that others made
  friend bool operator==(const Partitioning&, const Partitioning&) = default;
};

// One NPU die. The four numbers that the stack uses for it are never mixed:
//   physical_id  stable slot number; names the device in slices and is the node's minor
//   logic_id     position in the library's list; shifts when a chip drops, information only
//   card_id, device_id  arguments of the library's calls; what npu-smi shows
//   node_number  the N of /dev/davinciN: physical_id, on family 950 logic_id
struct Chip {
  int physical_id = -1;
  int logic_id = -1;
  int card_id = -1;
  int device_id = -1;
  int node_number = -1;

  Family family = Family::kUnknown;
  std::string model;       // "910B3", "310P3", "Ascend910_9392"; empty = unknown
  uint32_t board_id = 0;   // 0 = unknown
  std::string uuid;        // die id, five words of eight hex digits; empty = unknown
  std::string serial;      // empty = unknown
  std::string pci_bus_id;  // "0000:c1:00.0"; empty = unknown
  std::string pcie_root;   // "pci0000:c0"; empty = unknown
  std::optional<int> numa_node;

  int64_t memory_mib = 0;  // nominal on-chip memory; 0 = unknown
  int aicore_count = 0;    // 0 = unknown
  int aicpu_count = 0;     // 0 = unknown

  Health health = Health::kUnknown;

  std::string hccs_group;  // chips with the same value are fully connected; empty = unknown
  std::string module;      // dies of one A3 module or one Duo card share it; empty = none
  // The other die of an A3 module, unless the node's multi-die policy is independent. Set also
  // while that die is not in the inventory: a lone die of a module must not be handed out either.
  std::optional<int> module_peer_physical_id;
  std::optional<int64_t> super_pod_id;
  std::optional<int64_t> super_pod_server;

  std::string roce_address;  // "29.17.151.115"; empty = none or unknown

  // Pids of the processes that had memory on the chip at the last look: host pids if the agent runs
  // in the host's pid namespace; 0 = a process it cannot see. Ascending, unique, at most 32: the
  // library tells no more. nullopt = nobody knows (the library cannot tell, or did not answer),
  // which does not mean that the chip is free.
  std::optional<std::vector<int>> busy;

  // Fault codes that are active, and those that went: each stays for an hour after its last
  // occurrence. Ascending code, at most 128. nullopt with an empty error: this library has no list
  // of codes. With an error: nobody knows at the moment, which does not mean that there are none.
  std::optional<std::vector<Fault>> faults;
  std::string faults_error;
  NetworkHealth network = NetworkHealth::kUnknown;  // kUnknown also on chips without a port

  // nullopt with an empty error: this product or driver has no vNPUs. With an error: nobody knows
  // at the moment; it is what was known before then, or nullopt, which does not mean that there are
  // none.
  std::optional<Partitioning> partitioning;
  std::string partitioning_error;

  // Not empty: a call about this chip has not returned for so long that nothing else can be asked
  // ("dcmi_set_destroy_vdevice has not returned for 12 s"). The rest is what was known before.
  std::string stuck;

  friend bool operator==(const Chip&, const Chip&) = default;
};

// A process that uses a chip.
struct Process {
  int pid = 0;       // as in Chip::busy
  std::string name;  // the kernel's short name of it ("python3"); empty = cannot be read
  int64_t memory_bytes = 0;
  friend bool operator==(const Process&, const Process&) = default;
};

// Who uses one chip, asked for at this moment.
struct ChipProcesses {
  int physical_id = -1;
  bool known = false;  // false: nobody knows, and `error` says why; `processes` is then empty
  std::string error;
  std::vector<Process> processes;  // at most 32: the library tells no more
  friend bool operator==(const ChipProcesses&, const ChipProcesses&) = default;
};

// A chip that the library lists but that cannot be offered, and why.
struct SkippedChip {
  int card_id = -1;
  int device_id = -1;
  std::string reason;
  friend bool operator==(const SkippedChip&, const SkippedChip&) = default;
};

enum class LibraryState {
  kMissing,   // not found or not loadable yet; looked for again and again
  kStarting,  // found, its first enumeration has not ended
  kReady,
  kNotResponding,  // a call did not return in time; the chips are the last that were known
  kFailed,         // it answers with errors; the message says which
};
absl::string_view LibraryStateName(LibraryState state);
LibraryState LibraryStateFromName(absl::string_view name);

// How the two dies of an A3 module are handed out. kUnknown on products without modules, and where
// the library is too old to tell; treat an A3 node then as kUnion (both dies into one container).
enum class MultiDiePolicy { kUnknown, kUnion, kIndependent };

// Whom vNPUs are made for, on the whole node. kUnknown where the library cannot tell.
enum class VdeviceMode { kUnknown, kContainer, kVm };
absl::string_view VdeviceModeName(VdeviceMode mode);  // "container", "vm" or ""
VdeviceMode VdeviceModeFromName(absl::string_view name);

// A full snapshot of a node.
struct Inventory {
  uint64_t revision = 0;       // grows with every change that the same agent process sees
  std::string agent_instance;  // another value = another agent process: revisions start again
  LibraryState library = LibraryState::kMissing;
  std::string library_message;  // why `library` is not kReady, and what to do; else empty
  std::string library_path;
  std::string dcmi_version;
  std::string driver_version;  // as the library prints it; empty = unknown
  std::string firmware_version;
  // Not empty: driver and packages on the node do not fit together, and what to do.
  std::string version_problem;
  MultiDiePolicy multi_die_policy = MultiDiePolicy::kUnknown;
  VdeviceMode vdevice_mode = VdeviceMode::kUnknown;
  // Whether the driver makes the vNPUs of /etc/vnpu.cfg again at boot; nullopt = it cannot tell.
  std::optional<bool> vnpu_recovery;
  std::vector<Chip> chips;  // ascending physical_id, unique
  std::vector<SkippedChip> skipped;

  friend bool operator==(const Inventory&, const Inventory&) = default;
};

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_CHIP_H_
