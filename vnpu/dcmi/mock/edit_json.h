// How a mock node's node.json is changed: one edit after the other, each as a whole or not at all.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_EDIT_JSON_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_EDIT_JSON_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "vnpu/dcmi/mock/node.h"

namespace ascend::dcmi::mock {

absl::StatusOr<Node> NodeOf(const std::string& node_directory);

// Keeps what `change` did if it returns OK and the library would accept the result
// (kInvalidArgument). The order of keys stays, so that a file is readable beside its original.
absl::Status EditNode(const std::string& node_directory,
                      const std::function<absl::Status(nlohmann::ordered_json& node)>& change);

// The same for one chip; kNotFound if it is not there.
absl::Status EditChip(const std::string& node_directory, int physical_id,
                      const std::function<absl::Status(nlohmann::ordered_json& chip)>& change);

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_EDIT_JSON_H_
