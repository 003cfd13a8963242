#include "test/sim/demo.h"

#include <algorithm>
#include <iostream>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "nlohmann/json.hpp"
#include "test/sim/allocator.h"
#include "test/sim/table.h"

namespace ascend::sim {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::string Milliseconds(absl::Duration duration) {
  return FormatMilliseconds(absl::ToDoubleMilliseconds(duration));
}

// The value of an attribute, whatever its type; "-" if the device has none.
std::string Attribute(const json& device, const std::string& name) {
  const json attributes = device.value("attributes", json::object());
  if (!attributes.contains(name) || attributes[name].empty()) return "-";
  const json& value = *attributes[name].begin();
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string Taints(const json& device) {
  std::vector<std::string> texts;
  for (const json& taint : device.value("taints", json::array())) {
    texts.push_back(absl::StrCat(taint["key"].get<std::string>(), "=", taint.value("value", ""),
                                 ":", taint["effect"].get<std::string>()));
  }
  return texts.empty() ? "-" : absl::StrJoin(texts, ", ");
}

size_t PrintSlices(const std::vector<json>& slices) {
  size_t devices = 0;
  for (const json& slice : slices) {
    const json& spec = slice["spec"];
    std::cout << "\nResourceSlice " << slice["metadata"]["name"].get<std::string>() << " (driver "
              << spec["driver"].get<std::string>() << ", pool "
              << spec["pool"]["name"].get<std::string>() << ")\n\n";
    std::vector<std::vector<std::string>> rows = {
        {"DEVICE", "MODEL", "MEMORY", "NUMA", "HCCS GROUP", "TAINTS"}};
    for (const json& device : spec.value("devices", json::array())) {
      const json memory = device.value("/capacity/memory/value"_json_pointer, json("-"));
      rows.push_back({device["name"].get<std::string>(), Attribute(device, "model"),
                      memory.get<std::string>(),
                      Attribute(device, "resource.kubernetes.io/numaNode"),
                      Attribute(device, "hccsGroup"), Taints(device)});
      ++devices;
    }
    std::cout << FormatTable(rows);
  }
  return devices;
}

// Everything below `directory` that a claim left, with the path.
std::vector<std::string> CdiFiles(const std::string& directory) {
  std::vector<std::string> files = ListDirectory(directory).value_or(std::vector<std::string>());
  for (std::string& name : files) name = JoinPath(directory, name);
  return files;
}

std::string Indented(const std::string& text) {
  return absl::StrCat("    ", absl::StrJoin(absl::StrSplit(text, '\n'), "\n    "), "\n");
}

// Like dump(2), but what fits into a line stays on one.
std::string Compact(const ordered_json& value, const std::string& indent = "") {
  std::string line = value.dump();
  if (!value.is_structured() || indent.size() + line.size() <= 110) return line;
  const std::string deeper = indent + "  ";
  std::vector<std::string> parts;
  for (const auto& [key, member] : value.items()) {
    parts.push_back(absl::StrCat(deeper, value.is_object() ? ordered_json(key).dump() + ": " : "",
                                 Compact(member, deeper)));
  }
  return absl::StrCat(value.is_object() ? "{" : "[", "\n", absl::StrJoin(parts, ",\n"), "\n",
                      indent, value.is_object() ? "}" : "]");
}

void CollectPaths(const ordered_json& edits, std::set<std::string>* nodes) {
  for (const ordered_json& node : edits.value("deviceNodes", ordered_json::array())) {
    nodes->insert(node["path"].get<std::string>());
  }
}

absl::Status ShowCdiFiles(const std::vector<std::string>& files) {
  std::set<std::string> nodes;
  for (const std::string& path : files) {
    ASCEND_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    const ordered_json spec = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!spec.is_object()) return absl::InternalError(absl::StrCat(path, ": not a JSON object"));
    std::cout << "\n  CDI file " << path << "\n\n" << Indented(Compact(spec));
    CollectPaths(spec.value("containerEdits", ordered_json::object()), &nodes);
    for (const ordered_json& device : spec.value("devices", ordered_json::array())) {
      CollectPaths(device.value("containerEdits", ordered_json::object()), &nodes);
    }
  }
  std::cout << "\n  device nodes the container gets: " << absl::StrJoin(nodes, " ") << "\n";
  return absl::OkStatus();
}

absl::Status PrepareAndUnprepare(DriverStack& stack, const ClaimRef& claim) {
  absl::Time start = absl::Now();
  ASCEND_ASSIGN_OR_RETURN(const PreparedClaims prepared, stack.kubelet().Prepare({claim}));
  std::cout << "\n  NodePrepareResources: " << Milliseconds(absl::Now() - start) << "\n\n";
  for (const PreparedDevice& device : prepared.at(claim.uid)) {
    std::cout << "    " << device.device << ": " << absl::StrJoin(device.cdi_device_ids, " ")
              << "\n";
  }
  const std::vector<std::string> files = CdiFiles(stack.cdi_root());
  if (files.empty()) return absl::InternalError("the driver wrote no CDI file");
  ASCEND_RETURN_IF_ERROR(ShowCdiFiles(files));

  start = absl::Now();
  ASCEND_RETURN_IF_ERROR(stack.kubelet().Unprepare({claim}));
  std::cout << "\n  NodeUnprepareResources: " << Milliseconds(absl::Now() - start) << "\n";
  for (const std::string& path : CdiFiles(stack.cdi_root())) {
    return absl::InternalError(absl::StrCat(path, " is still there after NodeUnprepareResources"));
  }
  std::cout << "  the CDI file is gone\n";
  return absl::OkStatus();
}

// Without device nodes the right answer is a refusal.
absl::Status ExpectRefusal(DriverStack& stack, const ClaimRef& claim) {
  const absl::StatusOr<PreparedClaims> prepared = stack.kubelet().Prepare({claim});
  if (prepared.ok()) return absl::InternalError("a chip without device node was handed out");
  std::cout << "\n  The mock node has no device nodes, as only root can make them, so the driver\n"
               "  refuses the claim. Run the demo as root to see it prepared. Its answer:\n\n    "
            << prepared.status().message() << "\n";
  return absl::OkStatus();
}

absl::Status Run(DriverStack& stack) {
  ASCEND_ASSIGN_OR_RETURN(const StartTimes times, stack.StartDriver());
  std::cout << FormatTable({{"start → registered with the kubelet", Milliseconds(times.registered)},
                            {"start → first ResourceSlice", Milliseconds(times.first_slice)}});
  const size_t devices = PrintSlices(stack.api_server().Slices());

  const int count = static_cast<int>(std::min<size_t>(devices, 2));
  ASCEND_ASSIGN_OR_RETURN(
      const ClaimRef claim,
      AllocateClaim(stack.api_server(),
                    {.name = "demo", .requests = {{.count = count}}, .pods = {"demo"}}));
  std::cout << "\nResourceClaim default/demo, allocated: " << absl::StrJoin(claim.devices, " ")
            << "\n";
  ASCEND_RETURN_IF_ERROR(stack.has_device_nodes() ? PrepareAndUnprepare(stack, claim)
                                                  : ExpectRefusal(stack, claim));
  std::cout << "\ndemo: ok (" << devices << " devices, registered after "
            << Milliseconds(times.registered) << ", claim of " << count
            << (stack.has_device_nodes() ? " prepared and unprepared"
                                         : " refused for want of device nodes: not root")
            << ")\n";
  return absl::OkStatus();
}

}  // namespace

int RunDemo(const StackOptions& options) {
  std::cout << "ascend-dra on mock node " << options.mock_node
            << ", with a simulated API server and kubelet\n\n"
            << std::flush;
  absl::StatusOr<std::unique_ptr<DriverStack>> stack = DriverStack::Create(options);
  absl::Status status = stack.status();
  if (status.ok()) status = Run(**stack);
  if (status.ok()) return 0;
  if (stack.ok()) std::cout << "\n" << (*stack)->Logs();
  std::cout << "demo: failed: " << status.message() << "\n";
  return 1;
}

}  // namespace ascend::sim
