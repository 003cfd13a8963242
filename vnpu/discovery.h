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

// Asks an initialised library for all its chips. Fails only if the library cannot list its cards;
// all else hides no more than what it concerns:
//   a unit without type, a chip without physical id   in `skipped`, with the reason
//   a second chip with a physical id already seen      in `skipped`
//   any other failed query                             that attribute is unknown
// A unit that is no NPU is ignored. No chip is ever named by its position in a list.
//
// Sets `library` to kReady and leaves revision, agent_instance and library_path to the caller.
absl::StatusOr<Inventory> Discover(dcmi::Dcmi& dcmi, const DiscoveryOptions& options);

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_DISCOVERY_H_
