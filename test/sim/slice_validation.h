// What the API server does to a resource.k8s.io/v1 ResourceSlice before storing it: decode
// (unknown fields vanish, wrong types fail), set defaults, drop fields whose feature is off,
// validate.
#ifndef ASCEND_DRA_TEST_SIM_SLICE_VALIDATION_H_
#define ASCEND_DRA_TEST_SIM_SLICE_VALIDATION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

namespace ascend::sim {

struct Cause {  // one entry of Status.details.causes
  std::string reason;
  std::string field;
  std::string message;
};

// Leaves only fields that the API has, with quantities in canonical form and a timeAdded for each
// taint (`now`). kInvalidArgument if a field has the wrong type (the server's 400).
absl::Status DecodeSlice(absl::string_view now, nlohmann::json* slice);

// Removes taints, as a server without DRADeviceTaints; counters, as one without
// DRAPartitionableDevices.
void DropTaints(nlohmann::json* slice);
void DropCounters(nlohmann::json* slice);

// Everything wrong with a decoded slice (the server's 422); `old` is the stored one on an update.
std::vector<Cause> ValidateSlice(const nlohmann::json& slice, const nlohmann::json* old);

// Naming rules that other kinds share.
bool IsDnsLabel(absl::string_view text);
bool IsDnsSubdomain(absl::string_view text);

}  // namespace ascend::sim

#endif  // ASCEND_DRA_TEST_SIM_SLICE_VALIDATION_H_
