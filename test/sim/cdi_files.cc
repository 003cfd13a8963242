#include "test/sim/cdi_files.h"

#include <iostream>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "nlohmann/json.hpp"
#include "test/sim/allocator.h"

namespace ascend::sim {
namespace {

int FreeDevices(const std::vector<nlohmann::json>& slices) {
  int devices = 0;
  for (const nlohmann::json& slice : slices) {
    for (const nlohmann::json& device : slice["spec"].value("devices", nlohmann::json::array())) {
      if (!device.contains("taints")) ++devices;
    }
  }
  return devices;
}

absl::Status Prepare(DriverStack& stack, const std::string& name, int count) {
  ASCEND_ASSIGN_OR_RETURN(
      const ClaimRef claim,
      AllocateClaim(stack.api_server(),
                    {.name = name, .requests = {{.count = count}}, .pods = {name}}));
  return stack.kubelet().Prepare({claim}).status();
}

absl::Status Run(DriverStack& stack, const std::string& directory) {
  if (!stack.has_device_nodes()) return absl::FailedPreconditionError("not root: no device nodes");
  ASCEND_RETURN_IF_ERROR(stack.StartDriver().status());
  const int devices = FreeDevices(stack.api_server().Slices());
  ASCEND_RETURN_IF_ERROR(Prepare(stack, "one", 1));
  if (devices > 1) {
    ASCEND_RETURN_IF_ERROR(Prepare(stack, "others", devices - 1));
  }

  ASCEND_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(stack.cdi_root()));
  if (names.empty()) return absl::InternalError("the driver wrote no CDI file");
  for (const std::string& name : names) {
    ASCEND_ASSIGN_OR_RETURN(const std::string text, ReadFile(JoinPath(stack.cdi_root(), name)));
    const std::string copy = JoinPath(directory, name);
    ASCEND_RETURN_IF_ERROR(WriteFileAtomically(copy, text, {.mode = 0644, .durable = false}));
    std::cout << copy << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

int WriteCdiFiles(const StackOptions& options, const std::string& directory) {
  absl::StatusOr<std::unique_ptr<DriverStack>> stack = DriverStack::Create(options);
  absl::Status status = stack.status();
  if (status.ok()) status = Run(**stack, directory);
  if (status.ok()) return 0;
  if (stack.ok()) std::cerr << (*stack)->Logs();
  std::cerr << "ascend-dra-sim: " << options.mock_node << ": " << status.message() << "\n";
  return 1;
}

}  // namespace ascend::sim
