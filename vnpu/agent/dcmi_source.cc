#include "vnpu/agent/dcmi_source.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/runtime/logging.h"

namespace ascend::agent {
namespace {

// Errors of a library that is there: kNotFound would say that it is not.
absl::Status Failure(const absl::Status& status, absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", status.message()));
}

}  // namespace

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
  library_ = *std::move(library);
  LogInfo("NPU library loaded", {{"path", library_->path()}});
  for (const std::string& warning : library_->warnings()) {
    LogWarning("NPU library", {{"path", library_->path()}, {"warning", warning}});
  }
  return absl::OkStatus();
}

absl::StatusOr<vnpu::Inventory> DcmiSource::Read() {
  if (absl::Status status = Open(); !status.ok()) return status;
  if (absl::Status status = library_->Initialise(); !status.ok()) {
    return Failure(status, absl::StrCat(library_->path(),
                                        " cannot be initialised (is the driver loaded? "
                                        "is a chip in use by a container that has no "
                                        "claim on it? see dmesg and npu-smi info)"));
  }
  if (!told_) {
    told_ = true;
    if (options_.on_library != nullptr) options_.on_library(library_);
  }
  absl::StatusOr<vnpu::Inventory> inventory =
      vnpu::Discover(*library_, options_.discovery, *options_.turns, last_);
  if (!inventory.ok()) return Failure(inventory.status(), library_->path());
  inventory->library_path = library_->path();
  last_ = *inventory;
  return inventory;
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
