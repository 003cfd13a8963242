#include "vnpu/dcmi/mock/edit.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/core/status_macros.h"
#include "nlohmann/json.hpp"
#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/mock/edit_json.h"

namespace ascend::dcmi::mock {
namespace {

using Json = nlohmann::ordered_json;

absl::Status EditProcesses(const std::string& node_directory, int physical_id,
                           const std::function<absl::Status(Json&)>& change) {
  return EditChip(node_directory, physical_id, [&](Json& chip) {
    Json& processes = chip["processes"];
    if (!processes.is_array()) processes = Json::array();
    return change(processes);
  });
}

Json* FindProcess(Json& processes, int pid) {
  for (Json& process : processes) {
    if (process.is_object() && process.value("pid", Json()) == pid) return &process;
  }
  return nullptr;
}

absl::Status Assign(Json& chip, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == 0 || equals == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("\"", assignment, "\" is not key=value"));
  }
  const std::string text = assignment.substr(equals + 1);
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) value = text;
  Json* target = &chip;
  for (absl::string_view key : absl::StrSplit(assignment.substr(0, equals), '.')) {
    if (!target->is_object() && !target->is_null()) {
      return absl::InvalidArgumentError(absl::StrCat("\"", assignment, "\" reaches into a value"));
    }
    target = &(*target)[std::string(key)];
  }
  *target = std::move(value);
  return absl::OkStatus();
}

bool IsFunction(const std::string& name) {
  if (name == "*") return true;
#define ASCEND_IS_TYPED(function, parameters) \
  if (name == #function) return true;
  ASCEND_DCMI_V1_FUNCTIONS(ASCEND_IS_TYPED)
  ASCEND_DCMI_V2_FUNCTIONS(ASCEND_IS_TYPED)
#undef ASCEND_IS_TYPED
#define ASCEND_IS_UNTYPED(function) \
  if (name == #function) return true;
  ASCEND_DCMI_UNTYPED_FUNCTIONS(ASCEND_IS_UNTYPED)
#undef ASCEND_IS_UNTYPED
  return false;
}

void Put(Json& entry, const char* key, const std::optional<int>& value) {
  if (value.has_value()) entry[key] = *value;
}

bool SameFilter(const Json& one, const Json& other) {
  for (const char* key : {"card", "device", "physicalID"}) {
    if (one.value(key, Json()) != other.value(key, Json())) return false;
  }
  return true;
}

}  // namespace

absl::Status SetOnChip(const std::string& node_directory, int physical_id,
                       const std::vector<std::string>& assignments) {
  return EditChip(node_directory, physical_id, [&](Json& chip) -> absl::Status {
    for (const std::string& assignment : assignments) {
      ASCEND_RETURN_IF_ERROR(Assign(chip, assignment));
    }
    return absl::OkStatus();
  });
}

absl::Status SetProcess(const std::string& node_directory, int physical_id, int pid,
                        int64_t memory_bytes) {
  return EditProcesses(node_directory, physical_id, [&](Json& processes) -> absl::Status {
    Json* const found = FindProcess(processes, pid);
    if (found != nullptr) {
      (*found)["memoryBytes"] = memory_bytes;
    } else {
      processes.push_back({{"pid", pid}, {"memoryBytes", memory_bytes}});
    }
    return absl::OkStatus();
  });
}

absl::Status RemoveProcess(const std::string& node_directory, int physical_id, int pid) {
  return EditProcesses(node_directory, physical_id, [&](Json& processes) -> absl::Status {
    const Json* const found = FindProcess(processes, pid);
    if (found == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("no process ", pid, " on the chip with physical id ", physical_id));
    }
    processes.erase(found - &processes.front());
    return absl::OkStatus();
  });
}

absl::Status ClearProcesses(const std::string& node_directory, int physical_id) {
  return EditProcesses(node_directory, physical_id, [](Json& processes) -> absl::Status {
    processes = Json::array();
    return absl::OkStatus();
  });
}

absl::Status SetCall(const std::string& node_directory, const CallEdit& edit) {
  if (!IsFunction(edit.function)) {
    return absl::InvalidArgumentError(absl::StrCat("libdcmi has no function ", edit.function));
  }
  return EditNode(node_directory, [&](Json& node) -> absl::Status {
    Json entry = Json::object();
    Put(entry, "card", edit.card);
    Put(entry, "device", edit.device);
    Put(entry, "physicalID", edit.physical_id);
    const bool filtered = !entry.empty();
    Json& calls = node["calls"];
    if (!calls.is_object()) calls = Json::object();
    Json kept = Json::array();
    if (calls.contains(edit.function)) {
      const Json& old = calls[edit.function];
      for (const Json& one : old.is_array() ? old : Json::array({old})) {
        if (!SameFilter(one, entry)) kept.push_back(one);
      }
    }
    Put(entry, "return", edit.return_code);
    if (edit.delay_ms > 0) entry["delayMs"] = edit.delay_ms;
    if (edit.hang) entry["hang"] = true;
    if (edit.crash) entry["crash"] = true;
    if (edit.after_work) entry["afterWork"] = true;
    const bool misbehaves =
        edit.return_code.has_value() || edit.delay_ms > 0 || edit.hang || edit.crash;
    // The first that fits counts, so what is about one chip goes first.
    if (misbehaves) kept.insert(filtered ? kept.begin() : kept.end(), std::move(entry));
    if (kept.empty()) {
      calls.erase(edit.function);
    } else {
      calls[edit.function] = std::move(kept);
    }
    return absl::OkStatus();
  });
}

absl::Status ClearCalls(const std::string& node_directory) {
  return EditNode(node_directory, [](Json& node) -> absl::Status {
    node["calls"] = Json::object();
    return absl::OkStatus();
  });
}

}  // namespace ascend::dcmi::mock
