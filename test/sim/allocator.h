// Claims as the scheduler would leave them: allocated from the published slices.
#ifndef ASCEND_DRA_TEST_SIM_ALLOCATOR_H_
#define ASCEND_DRA_TEST_SIM_ALLOCATOR_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "test/sim/api_server.h"
#include "test/sim/claim_ref.h"

namespace ascend::sim {

struct ClaimRequest {
  std::string name = "npu";  // "request", or "request/subrequest" of a prioritized list
  int count = 1;
  std::vector<std::string> devices;  // exactly these, whoever holds them; empty = `count` free ones
  bool admin_access = false;         // chooses among all devices, held and tainted ones too
};

struct ClaimConfig {  // an opaque entry of allocation.devices.config
  bool from_class = false;
  std::vector<std::string> requests;  // empty = all
  std::string driver = "npu.huawei.com";
  std::string parameters;  // JSON text
};

struct ClaimSpec {
  std::string namespace_name = "default";
  std::string name;
  std::string driver = "npu.huawei.com";
  std::string node_name;  // empty = any node, all devices from one
  std::vector<ClaimRequest> requests = {ClaimRequest()};
  std::vector<ClaimConfig> config;
  std::vector<std::string> pods;  // reservedFor; their UID is "<name>-uid"
};

// Creates the claim with its allocation. Free devices are taken first fit, in the order of slice
// names and of devices in a slice, only from complete pools, never one with a NoSchedule or
// NoExecute taint, never one that an existing claim holds. kResourceExhausted if they do not
// suffice (no claim is created then). Deleting the claim frees its devices. Calls must not overlap.
absl::StatusOr<ClaimRef> AllocateClaim(ApiServer& server, const ClaimSpec& spec);

}  // namespace ascend::sim

#endif  // ASCEND_DRA_TEST_SIM_ALLOCATOR_H_
