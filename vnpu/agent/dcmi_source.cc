#include "vnpu/agent/dcmi_source.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/runtime/logging.h"
#include "vnpu/hccs_check.h"

namespace ascend::agent {
namespace {

// Errors of a library that is there: kNotFound would say that it is not.
absl::Status Failure(const absl::Status& status, absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", status.message()));
}

}  // namespace

class DcmiSource::Look : public InventorySource::Look {
 public:
  Look(DcmiSource& source, std::shared_ptr<vnpu::Look> look, uint64_t began)
      : source_(source), look_(std::move(look)), began_(began) {}

  bool Step() override { return look_->Step() || source_.DoOnce(); }

  vnpu::Inventory Finish() override {
    vnpu::Look::Result result = look_->Finish();
    vnpu::Inventory& inventory = result.inventory;
    inventory.library_path = source_.path_;
    FaultLog& faults = *source_.options_.faults;
    faults.SetChips(inventory.chips);
    for (vnpu::Chip& chip : inventory.chips) {
      if (result.read.contains(chip.physical_id)) {
        faults.Merge(began_, chip);
      } else {
        faults.Refresh(chip);
      }
    }
    source_.last_ = inventory;
    return std::move(inventory);
  }

 private:
  DcmiSource& source_;
  const std::shared_ptr<vnpu::Look> look_;
  const uint64_t began_;
};

absl::Status DcmiSource::Open() {
  if (library_ != nullptr) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<dcmi::Library>> library =
      dcmi::Library::Open(options_.library_paths);
  if (absl::IsNotFound(library.status())) {
    return absl::NotFoundError(
        absl::StrCat("no libdcmi.so, looked for ", absl::StrJoin(options_.library_paths, ", "),
                     "; install the Ascend driver on the node and mount it into the agent's "
                     "container, or correct --libdcmi; it is looked for again"));
  }
  if (!library.ok()) return Failure(library.status(), "cannot load the library");
  path_ = (*library)->path();
  LogInfo("NPU library loaded", {{"path", path_}});
  for (const std::string& warning : (*library)->warnings()) {
    LogWarning("NPU library", {{"path", path_}, {"warning", warning}});
  }
  library_ = *std::move(library);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<InventorySource::Look>> DcmiSource::Begin() {
  if (absl::Status status = Open(); !status.ok()) return status;
  if (absl::Status status = library_->Initialise(); !status.ok()) {
    return Failure(status, absl::StrCat(path_,
                                        " cannot be initialised (is the driver loaded? "
                                        "is a chip in use by a container that has no "
                                        "claim on it? see dmesg and npu-smi info)"));
  }
  if (!told_) {
    told_ = true;
    if (options_.on_library != nullptr) options_.on_library(library_);
  }
  const uint64_t began = options_.faults->BeginLook();
  absl::StatusOr<std::shared_ptr<vnpu::Look>> look =
      vnpu::Look::Begin(*library_, options_.discovery, *options_.turns, texts_, last_);
  if (!look.ok()) return Failure(look.status(), path_);
  return std::make_shared<Look>(*this, *std::move(look), began);
}

bool DcmiSource::DoOnce() {
  if (!subscribed_) {
    subscribed_ = true;
    SubscribeFaults();
    return true;
  }
  bool unchecked = false;
  for (const vnpu::Chip& chip : last_.chips) {
    const std::string name = absl::StrCat(chip.physical_id, " ", chip.uuid, " ", chip.hccs_group);
    unchecked = groups_checked_.insert(name).second || unchecked;
  }
  if (!unchecked) return false;
  CheckHccsGroups(last_);
  return true;
}

// By value: if this hangs, others go on with the next look.
void DcmiSource::CheckHccsGroups(vnpu::Inventory inventory) {
  const std::string problem = vnpu::HccsContradiction(*library_, inventory);
  if (problem.empty()) return;
  LogWarning("hccsGroup may be wrong on this node; do not rely on it, and report its product",
             {{"error", problem}});
}

void DcmiSource::SubscribeFaults() {
  const absl::Status status = library_->SubscribeFaults(
      [faults = options_.faults](const dcmi::FaultEvent& event) { faults->Note(event); });
  if (status.ok()) return;
  LogWarning("the NPU library tells no faults by itself; they are polled", {{"error", status}});
}

absl::StatusOr<std::vector<dcmi::ChipProcess>> DcmiSource::Processes(const vnpu::Chip& chip) {
  if (library_ == nullptr) {
    return absl::FailedPreconditionError("the NPU library is not loaded yet");
  }
  const dcmi::ChipAddress address = {chip.card_id, chip.device_id};
  if (!options_.turns->TryTake(address)) {
    return absl::UnavailableError(
        absl::StrCat("the chip cannot be asked: ", options_.turns->Doing(address)));
  }
  absl::StatusOr<std::vector<dcmi::ChipProcess>> processes = library_->Processes(address);
  options_.turns->Release(address);
  return processes;
}

}  // namespace ascend::agent
