// What the driver asks of Huawei's device management library, in the words of the domain. The real
// thing is Library (library.h).
//
// Every call may fail, also for one chip only, and any call may block for tens of seconds after a
// chip dropped: call from a thread that can be given up. Thread-safe; calls about one chip, and
// calls about the node, run one at a time, those about different chips side by side (whether every
// driver bears that is uncertain; Huawei's own clients do it). Statuses are those of status.h:
// kUnimplemented means that the product, or this version of the library, does not have the reading,
// and is no fault.
#ifndef ASCEND_DRA_VNPU_DCMI_DCMI_H_
#define ASCEND_DRA_VNPU_DCMI_DCMI_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace ascend::dcmi {

// kCards: dcmi_* on (card, device), every product up to A3. kFlat: dcmiv2_* on one id, 950.
enum class Generation { kCards, kFlat };

// Names a chip in every call. With kFlat `card` is the library's one id and `device` is 0.
struct ChipAddress {
  int card = -1;
  int device = -1;
  friend bool operator==(const ChipAddress&, const ChipAddress&) = default;
};

enum class UnitType { kNpu, kMcu, kCpu, kOther };

struct ChipInfo {
  std::string type;      // "Ascend"
  std::string name;      // "910B3"; on A3 and 950 only "Ascend910", "Ascend950PR"
  std::string version;   // "V1"
  std::string npu_name;  // on A3 and 950 the rest of the name: "9392"; empty in old libraries
  int aicore_count = 0;
};

struct PciInfo {
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
  uint32_t subsystem_vendor_id = 0;
  uint32_t subsystem_device_id = 0;
  std::string bus_id;  // "0000:c1:00.0"
};

struct BoardInfo {
  uint32_t board_id = 0;
  uint32_t pcb_id = 0;
  uint32_t bom_id = 0;
  uint32_t slot_id = 0;
};

// kVdie identifies a chip up to A3, kDdie on 950.
enum class DieType { kNdie, kVdie, kDdie };
using DieId = std::array<uint32_t, 5>;

enum class HealthGrade { kOk, kMinor, kMajor, kCritical, kAbsent, kUnknown };

struct MemoryInfo {
  int64_t total_mib = 0;
  int64_t used_mib = 0;
};

// A process that has memory on a chip.
struct ChipProcess {
  int pid = 0;  // the host's for a privileged caller; 0 = in a pid namespace that it cannot see
  int64_t memory_bytes = 0;
  friend bool operator==(const ChipProcess&, const ChipProcess&) = default;
};

enum class MultiDiePolicy { kUnion, kIndependent };

// A3 and later: the chip's place in a super-pod.
struct SuperPodInfo {
  uint32_t sdid = 0;
  uint32_t size = 0;
  uint32_t id = 0;
  uint32_t server_index = 0;
};

// Numbers as the library gives them; media engines may be fractions. -1 = it says nothing.
struct VnpuResources {
  double aicore = 0;
  int64_t memory_mib = 0;  // uncertain whether MB on all drivers
  int aicpu = 0;           // of the device
  double vpc = 0, venc = 0, vdec = 0, jpegd = 0, jpege = 0, pngd = 0;
};

// A chip as something to be divided.
struct VnpuTotal {
  VnpuResources resources;
  std::vector<int> ids;  // of the vNPUs there are
  uint32_t vgroups = 0;  // bits of the vGroups in use; 310P only
};

struct VnpuInfo {
  int id = -1;
  std::string template_name;
  uint32_t status = 0;  // 0 = normal
  bool container_used = false;
  int vf_id = -1;
  int vgroup = -1;  // -1 = none
  VnpuResources resources;
};

struct VnpuRequest {
  std::string template_name;
  std::optional<int> id;  // none = the library chooses. Uncertain whether every driver takes one.
  std::optional<int> vgroup;  // the same; 310P only
};

struct CreatedVnpu {
  int id = -1;      // may be another one than was asked for
  int vgroup = -1;  // -1 = none
};

enum class VdeviceMode { kContainer, kVm };

enum class TopologyType { kSelf, kSys, kPhb, kHccs, kPxb, kPix, kSio, kHccsSwitch, kUb, kUnknown };

// How bad the driver calls a fault.
enum class FaultSeverity { kWarning, kMinor, kMajor, kCritical, kUnknown };

// kRecovered: the fault is gone. kOneShot: something happened that will not be taken back and is in
// no list of codes.
enum class FaultAssertion { kRecovered, kOccurred, kOneShot };

struct FaultEvent {
  int logic_id = -1;  // of the chip; the only name that events have for it
  uint64_t code = 0;
  FaultSeverity severity = FaultSeverity::kUnknown;
  FaultAssertion assertion = FaultAssertion::kOccurred;
  int serial = 0;                            // of the fault, by the driver's count
  absl::Time raised = absl::InfinitePast();  // of a recovery: when the fault had come; past = unset
  std::string name;                          // ASCII
  std::string additional;                    // ASCII
};
using FaultHandler = std::function<void(const FaultEvent& event)>;

// What the driver's own test of a chip's RoCE port found.
enum class NetworkState {
  kOk,
  kDown,       // the test's peer does not answer, or the port is broken
  kNotTested,  // no test yet, or no address to test; says nothing about the port
  kUnknown,    // the test itself failed
};

// kOutband goes through the board's management controller and reaches a chip that does not answer.
enum class ResetChannel { kOutband, kInband };

// What BootState() gives for a chip that has started.
inline constexpr int kBootFinished = 16;

class Dcmi {
 public:
  virtual ~Dcmi() = default;

  // Must succeed once before any other call but the versions; may be called again after a failure
  // (the driver may not have been up), and after a success, which does nothing.
  virtual absl::Status Initialise() = 0;
  // Meaningful after Initialise().
  virtual Generation generation() const = 0;

  virtual absl::StatusOr<std::string> DcmiVersion() = 0;
  virtual absl::StatusOr<std::string> DriverVersion() = 0;

  // Enumeration: cards, then the units of each card. The order is the library's.
  virtual absl::StatusOr<std::vector<int>> Cards() = 0;
  // Addresses of a card's units. Some libraries count the management unit and others do not, so ask
  // Type() of each.
  virtual absl::StatusOr<std::vector<ChipAddress>> Units(int card) = 0;
  virtual absl::StatusOr<UnitType> Type(ChipAddress chip) = 0;
  virtual absl::StatusOr<int> LogicId(ChipAddress chip) = 0;
  virtual absl::StatusOr<int> PhysicalId(ChipAddress chip) = 0;

  // Identity.
  virtual absl::StatusOr<ChipInfo> Chip(ChipAddress chip) = 0;
  virtual absl::StatusOr<BoardInfo> Board(ChipAddress chip) = 0;
  virtual absl::StatusOr<uint32_t> MainboardId(ChipAddress chip) = 0;
  virtual absl::StatusOr<PciInfo> Pci(ChipAddress chip) = 0;
  virtual absl::StatusOr<DieId> Die(ChipAddress chip, DieType type) = 0;
  virtual absl::StatusOr<std::string> SerialNumber(ChipAddress chip) = 0;
  virtual absl::StatusOr<SuperPodInfo> SuperPod(ChipAddress chip) = 0;

  // State and size.
  virtual absl::StatusOr<HealthGrade> Health(ChipAddress chip) = 0;
  virtual absl::StatusOr<MemoryInfo> HbmMemory(ChipAddress chip) = 0;  // not on 310, 310B, 310P
  virtual absl::StatusOr<MemoryInfo> DdrMemory(ChipAddress chip) = 0;  // only there
  virtual absl::StatusOr<int> AicpuCount(ChipAddress chip) = 0;
  // Who uses the chip, at most 32 of them: the library tells no more. kUnimplemented (an old
  // library, 950) and any other error mean that nobody knows, not that the chip is free.
  virtual absl::StatusOr<std::vector<ChipProcess>> Processes(ChipAddress chip) = 0;
  // Address of the chip's RoCE port 0. kNotFound: the port has none.
  virtual absl::StatusOr<std::string> RoceAddress(ChipAddress chip) = 0;

  // Faults. The codes that are active, as the library lists them, at most 128 of them.
  virtual absl::StatusOr<std::vector<uint64_t>> FaultCodes(ChipAddress chip) = 0;
  // The library's words for a code, ASCII; not on 950.
  virtual absl::StatusOr<std::string> FaultText(ChipAddress chip, uint64_t code) = 0;
  // Runs `handler` for every fault of every chip that comes or goes from now on, on a thread of the
  // library, one event at a time. Events get lost: the list of codes decides. The handler must be
  // quick and must not call this.
  //
  // Of the process: a later call only replaces the handler, and returns when no call of the former
  // one is under way; an empty one ends the calls. After an error there is no handler. The host
  // lets 64 processes subscribe; kUnimplemented also on 310.
  virtual absl::Status SubscribeFaults(FaultHandler handler) = 0;
  // Of the chip's RoCE port. Hangs easily after a chip dropped, and therefore holds up no other
  // call about the chip but itself. kUnimplemented: the chip has no port (or it is a 950).
  virtual absl::StatusOr<NetworkState> Network(ChipAddress chip) = 0;

  // Resets the chip, and with it all chips of its module, ring, mesh or card. Returns before they
  // have started again: ask BootState(). kFailedPrecondition: somebody uses one of them. Only for
  // root on the host or in a privileged container.
  virtual absl::Status Reset(ChipAddress chip, ResetChannel channel) = 0;
  // Whether there is a way out of band. Over it a reset takes PrepareReset(), Reset(kOutband), some
  // seconds, and Rescan(), which does not wait for the chip either.
  virtual absl::StatusOr<bool> HasOutbandChannel(ChipAddress chip) = 0;
  virtual absl::Status PrepareReset(ChipAddress chip) = 0;
  virtual absl::Status Rescan(ChipAddress chip) = 0;
  // How far the chip has started: kBootFinished, or less.
  virtual absl::StatusOr<int> BootState(ChipAddress chip) = 0;

  // Of the node; only on A3 with a recent driver (uncertain before HDK 26: looked up at run time).
  virtual absl::StatusOr<MultiDiePolicy> GetMultiDiePolicy() = 0;

  // How two chips are joined; only 910B and later.
  virtual absl::StatusOr<TopologyType> Topology(ChipAddress one, ChipAddress other) = 0;

  // vNPUs. kUnimplemented: this product or driver has none.
  virtual absl::StatusOr<VnpuTotal> Vnpus(ChipAddress chip) = 0;
  virtual absl::StatusOr<VnpuResources> FreeVnpuResources(ChipAddress chip) = 0;
  virtual absl::StatusOr<VnpuInfo> Vnpu(ChipAddress chip, int id) = 0;
  // An error does not mean that nothing was made: compare Vnpus() before and after. Needs a caller
  // that is root on the host or in a privileged container, and a chip that no process uses.
  virtual absl::StatusOr<CreatedVnpu> CreateVnpu(ChipAddress chip, const VnpuRequest& request) = 0;
  virtual absl::Status DestroyVnpu(ChipAddress chip, int id) = 0;

  // Of the node. The modes change only while there is no vNPU.
  virtual absl::StatusOr<VdeviceMode> GetVdeviceMode() = 0;
  virtual absl::Status SetVdeviceMode(VdeviceMode mode) = 0;
  // Whether the vNPUs of /etc/vnpu.cfg are made again at boot.
  virtual absl::StatusOr<bool> GetVnpuRecovery() = 0;
  virtual absl::Status SetVnpuRecovery(bool on) = 0;
};

}  // namespace ascend::dcmi

#endif  // ASCEND_DRA_VNPU_DCMI_DCMI_H_
