#include "vnpu/dcmi/mock/vnpu_edit.h"

#include <algorithm>
#include <exception>
#include <functional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "nlohmann/json.hpp"
#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/mock/edit_json.h"
#include "vnpu/dcmi/mock/node.h"

namespace ascend::dcmi::mock {
namespace {

// Keeps what `change` did if it returns OK.
absl::Status Change(const std::string& node_directory, const Node& node,
                    const std::function<absl::Status(VnpuState&)>& change) {
  absl::Status status;
  try {
    const int code = ChangeVnpuState(node_directory, node, [&](VnpuState& state) -> int {
      status = change(state);
      return status.ok() ? DCMI_OK : DCMI_INNER_ERR;
    });
    if (status.ok() && code != DCMI_OK) {
      return absl::UnavailableError(
          absl::StrCat("cannot write in ", StateDirectory(node_directory)));
    }
  } catch (const std::exception& problem) {
    return absl::InvalidArgumentError(problem.what());
  }
  return status;
}

absl::Status NoVnpu(int id) { return absl::NotFoundError(absl::StrCat("there is no vNPU ", id)); }

absl::Status AssignBool(const std::string& assignment, const std::string& value, bool* target) {
  if (value != "true" && value != "false") {
    return absl::InvalidArgumentError(absl::StrCat("\"", assignment, "\": true or false?"));
  }
  *target = value == "true";
  return absl::OkStatus();
}

absl::Status Assign(Vnpu& vnpu, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("\"", assignment, "\" is not key=value"));
  }
  const std::string key = assignment.substr(0, equals), value = assignment.substr(equals + 1);
  if (key == "busy") return AssignBool(assignment, value, &vnpu.busy);
  if (key == "containerUsed") return AssignBool(assignment, value, &vnpu.container_used);
  if (key == "status") {
    if (absl::SimpleAtoi(value, &vnpu.status)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("\"", assignment, "\" is no number"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a vNPU has no \"", key, "\" to set: busy, containerUsed or status"));
}

absl::Status StatusOfPlan(int code, int physical_id, const VnpuWish& wish) {
  const std::string what =
      absl::StrCat(wish.template_name, " on the chip with physical id ", physical_id);
  switch (code) {
    case DCMI_OK:
      return absl::OkStatus();
    case DCMI_INVALID_PARAMETER:
      return absl::InvalidArgumentError(
          absl::StrCat("cannot make ", what, ": no such template, id or vGroup"));
    case DCMI_RESOURCE_OCCUPIED:
      return absl::AlreadyExistsError(absl::StrCat("cannot make ", what, ": the id is taken"));
    default:
      return absl::ResourceExhaustedError(absl::StrCat("cannot make ", what, ": no room"));
  }
}

}  // namespace

absl::StatusOr<VnpuState> VnpusOf(const std::string& node_directory) {
  try {
    return ReadVnpuState(node_directory);
  } catch (const std::exception& problem) {
    return absl::InvalidArgumentError(problem.what());
  }
}

std::string ToJsonText(const VnpuState& state) {
  nlohmann::ordered_json json;
  json["recovery"] = state.recovery;
  json["vdeviceMode"] = state.vdevice_mode == DCMI_VDEVICE_MODE_VM ? "vm" : "container";
  json["vnpus"] = nlohmann::ordered_json::array();
  for (const Vnpu& vnpu : state.vnpus) {
    json["vnpus"].push_back({{"id", vnpu.id},
                             {"physicalID", vnpu.physical_id},
                             {"template", vnpu.template_name},
                             {"vGroup", vnpu.vgroup},
                             {"status", vnpu.status},
                             {"containerUsed", vnpu.container_used},
                             {"busy", vnpu.busy}});
  }
  return json.dump(2) + "\n";
}

absl::StatusOr<int> AddVnpu(const std::string& node_directory, int physical_id,
                            const VnpuWish& wish) {
  ASCEND_ASSIGN_OR_RETURN(const Node node, NodeOf(node_directory));
  if (!node.vnpu.has_value()) {
    return absl::UnimplementedError(
        absl::StrCat("the family ", FamilyName(node.family), " of this node has no vNPUs"));
  }
  if (node.FindPhysical(physical_id) == nullptr) {
    return absl::NotFoundError(absl::StrCat("no chip with physical id ", physical_id));
  }
  Vnpu made;
  const absl::Status status = Change(node_directory, node, [&](VnpuState& state) -> absl::Status {
    ASCEND_RETURN_IF_ERROR(StatusOfPlan(PlanVnpu(*node.vnpu, physical_id, state.vnpus, wish, &made),
                                        physical_id, wish));
    state.vnpus.push_back(made);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return made.id;
}

absl::Status RemoveVnpu(const std::string& node_directory, int id) {
  ASCEND_ASSIGN_OR_RETURN(const Node node, NodeOf(node_directory));
  return Change(node_directory, node, [&](VnpuState& state) -> absl::Status {
    const auto found = std::find_if(state.vnpus.begin(), state.vnpus.end(),
                                    [=](const Vnpu& vnpu) { return vnpu.id == id; });
    if (found == state.vnpus.end()) return NoVnpu(id);
    state.vnpus.erase(found);
    return absl::OkStatus();
  });
}

absl::Status SetOnVnpu(const std::string& node_directory, int id,
                       const std::vector<std::string>& assignments) {
  ASCEND_ASSIGN_OR_RETURN(const Node node, NodeOf(node_directory));
  return Change(node_directory, node, [&](VnpuState& state) -> absl::Status {
    Vnpu* const vnpu = state.Find(id);
    if (vnpu == nullptr) return NoVnpu(id);
    for (const std::string& assignment : assignments) {
      ASCEND_RETURN_IF_ERROR(Assign(*vnpu, assignment));
    }
    return absl::OkStatus();
  });
}

absl::Status SetVnpuModes(const std::string& node_directory, std::optional<bool> recovery,
                          std::optional<int> vdevice_mode) {
  ASCEND_ASSIGN_OR_RETURN(const Node node, NodeOf(node_directory));
  return Change(node_directory, node, [&](VnpuState& state) {
    state.recovery = recovery.value_or(state.recovery);
    state.vdevice_mode = vdevice_mode.value_or(state.vdevice_mode);
    return absl::OkStatus();
  });
}

absl::Status Reboot(const std::string& node_directory, bool permute_ids) {
  ASCEND_ASSIGN_OR_RETURN(const Node node, NodeOf(node_directory));
  try {
    RebootVnpus(node_directory, node, permute_ids);
    return absl::OkStatus();
  } catch (const std::exception& problem) {
    return absl::InvalidArgumentError(problem.what());
  }
}

}  // namespace ascend::dcmi::mock
