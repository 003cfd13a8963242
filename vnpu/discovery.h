// From the library's answers to an inventory of the node.
#ifndef ASCEND_DRA_VNPU_DISCOVERY_H_
#define ASCEND_DRA_VNPU_DISCOVERY_H_

#include <string>

#include "absl/status/statusor.h"
#include "vnpu/chip.h"
#include "vnpu/dcmi/dcmi.h"

namespace ascend::vnpu {

struct DiscoveryOptions {
  std::string sysfs_root = "/sys";
  std::string hccn_conf = "/etc/hccn.conf";  // RoCE addresses where the library does not tell them
  // driver/version.info and firmware/version.info below it give the versions that the library does
  // not tell.
  std::string ascend_root = "/usr/local/Ascend";
};

// Keeps the reading of a chip and other calls about it apart. The agent's is agent/chip_turns.h.
class ReadingTurns {
 public:
  virtual ~ReadingTurns() = default;
  // Never waits. If it returns true the chip is the caller's until Release().
  virtual bool TryTake(dcmi::ChipAddress chip) = 0;
  virtual void Release(dcmi::ChipAddress chip) = 0;
  // Why the chip could not be taken for long, in the words of Chip::stuck; else empty.
  virtual std::string Stuck(dcmi::ChipAddress chip) const = 0;
};

// In these turns the modes of the node's vNPUs are a chip of this address.
inline constexpr dcmi::ChipAddress kNodeTurn = {.card = -1, .device = -1};

// Asks an initialised library for all its chips. Fails only if the library cannot list its cards;
// all else hides no more than what it concerns:
//   a unit without type, a chip without physical id   in `skipped`, with the reason
//   a second chip with a physical id already seen      in `skipped`
//   a vNPU that cannot be asked about                  listed as not normal, without template
//   any other failed query                             that attribute is unknown
// A unit that is no NPU is ignored. No chip is ever named by its position in a list.
//
// Sets `library` to kReady and leaves revision, agent_instance and library_path to the caller.
absl::StatusOr<Inventory> Discover(dcmi::Dcmi& dcmi, const DiscoveryOptions& options);

// The same while others ask the library, too: a chip whose turn cannot be had is not asked about
// but copied from `last`, the inventory before; so are the modes of the node.
absl::StatusOr<Inventory> Discover(dcmi::Dcmi& dcmi, const DiscoveryOptions& options,
                                   ReadingTurns& turns, const Inventory& last);

// What the library says now about a chip as something to be divided. kUnimplemented: this product
// or driver has no vNPUs. A vNPU whose own query fails is listed as not normal, without template.
absl::StatusOr<Partitioning> ReadPartitioning(dcmi::Dcmi& dcmi, dcmi::ChipAddress chip);

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_DISCOVERY_H_
