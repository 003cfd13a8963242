// The real source: libdcmi on this node.
#ifndef ASCEND_DRA_VNPU_AGENT_DCMI_SOURCE_H_
#define ASCEND_DRA_VNPU_AGENT_DCMI_SOURCE_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "vnpu/agent/chip_turns.h"
#include "vnpu/agent/fault_log.h"
#include "vnpu/agent/inventory_source.h"
#include "vnpu/dcmi/library.h"
#include "vnpu/discovery.h"

namespace ascend::agent {

// Each look goes on from where the last one failed: look for the library (the driver may be
// installed after this program started), initialise it (the driver may come up later), enumerate.
// A chip that a call is at is left out: it is shown as it was, and nobody knows its processes.
class DcmiSource : public InventorySource {
 public:
  struct Options {
    std::vector<std::string> library_paths = dcmi::Library::DefaultPaths();
    vnpu::DiscoveryOptions discovery;
    std::shared_ptr<ChipTurns> turns = std::make_shared<ChipTurns>();
    std::shared_ptr<FaultLog> faults = std::make_shared<FaultLog>();
    // Runs once, when the library is initialised; null = none.
    std::function<void(std::shared_ptr<dcmi::Dcmi>)> on_library;
  };
  explicit DcmiSource(Options options) : options_(std::move(options)) {}
  // A library of the caller's instead of one that is looked for.
  DcmiSource(Options options, std::shared_ptr<dcmi::Dcmi> library)
      : options_(std::move(options)), library_(std::move(library)) {}

  // A look refers to this.
  absl::StatusOr<std::shared_ptr<InventorySource::Look>> Begin() override;
  absl::StatusOr<std::vector<dcmi::ChipProcess>> Processes(const vnpu::Chip& chip) override;

 private:
  class Look;
  absl::Status Open();
  // What is done once, as steps of a look: none of it may hold up the chips. False: it is done.
  bool DoOnce();
  void SubscribeFaults();
  void CheckHccsGroups(vnpu::Inventory inventory);

  const Options options_;
  std::shared_ptr<dcmi::Dcmi> library_;  // constant once a look has begun
  std::string path_;                     // of the library
  bool told_ = false;                    // on_library
  vnpu::FaultTexts texts_;

  // Used by the thread that goes on with the look, not by one that is left behind.
  bool subscribed_ = false;
  std::set<std::string> groups_checked_;  // chips that were there in a check
  vnpu::Inventory last_;
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_DCMI_SOURCE_H_
