// The real source: libdcmi on this node.
#ifndef ASCEND_DRA_VNPU_AGENT_DCMI_SOURCE_H_
#define ASCEND_DRA_VNPU_AGENT_DCMI_SOURCE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "vnpu/agent/inventory_source.h"
#include "vnpu/dcmi/library.h"
#include "vnpu/discovery.h"

namespace ascend::agent {

// Each Read goes on from where the last one failed: look for the library (the driver may be
// installed after this program started), initialise it (the driver may come up later), enumerate.
class DcmiSource : public InventorySource {
 public:
  struct Options {
    std::vector<std::string> library_paths = dcmi::Library::DefaultPaths();
    vnpu::DiscoveryOptions discovery;
  };
  explicit DcmiSource(Options options) : options_(std::move(options)) {}

  absl::StatusOr<vnpu::Inventory> Read() override;
  absl::StatusOr<std::vector<dcmi::ChipProcess>> Processes(const vnpu::Chip& chip) override;

 private:
  absl::Status Open();

  const Options options_;
  std::unique_ptr<dcmi::Library> library_;
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_DCMI_SOURCE_H_
