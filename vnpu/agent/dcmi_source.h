// The real source: libdcmi on this node.
#ifndef ASCEND_DRA_VNPU_AGENT_DCMI_SOURCE_H_
#define ASCEND_DRA_VNPU_AGENT_DCMI_SOURCE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "vnpu/agent/chip_turns.h"
#include "vnpu/agent/inventory_source.h"
#include "vnpu/dcmi/library.h"
#include "vnpu/discovery.h"

namespace ascend::agent {

// Each Read goes on from where the last one failed: look for the library (the driver may be
// installed after this program started), initialise it (the driver may come up later), enumerate.
// A chip that a call is at is left out: it is shown as it was, and nobody knows its processes.
class DcmiSource : public InventorySource {
 public:
  struct Options {
    std::vector<std::string> library_paths = dcmi::Library::DefaultPaths();
    vnpu::DiscoveryOptions discovery;
    std::shared_ptr<ChipTurns> turns = std::make_shared<ChipTurns>();
    // Runs once, when the library is initialised; null = none.
    std::function<void(std::shared_ptr<dcmi::Dcmi>)> on_library;
  };
  explicit DcmiSource(Options options) : options_(std::move(options)) {}

  absl::StatusOr<vnpu::Inventory> Read() override;
  absl::StatusOr<std::vector<dcmi::ChipProcess>> Processes(const vnpu::Chip& chip) override;

 private:
  absl::Status Open();

  const Options options_;
  std::shared_ptr<dcmi::Library> library_;
  bool told_ = false;  // on_library
  vnpu::Inventory last_;
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_DCMI_SOURCE_H_
