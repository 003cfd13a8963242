#include "vnpu/agent/reset_operations.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "base/runtime/logging.h"
#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/status.h"

namespace ascend::agent {
namespace {

dcmi::ChipAddress AddressOf(const vnpu::Chip& chip) { return {chip.card_id, chip.device_id}; }

std::string Noun(const vnpu::Chip& chip) { return absl::StrCat("chip ", chip.physical_id); }

absl::Status CheckUnused(dcmi::Dcmi& dcmi, const vnpu::Chip& chip, Calling calling) {
  calling("dcmi_get_device_resource_info");
  const absl::StatusOr<std::vector<dcmi::ChipProcess>> processes = dcmi.Processes(AddressOf(chip));
  if (!processes.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(Noun(chip), ": nobody can tell who uses it: ", processes.status().message()));
  }
  if (!processes->empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(Noun(chip), " is busy: process ", processes->front().pid, " uses it"));
  }
  const absl::StatusOr<std::vector<vnpu::Vnpu>> vnpus = ListVnpus(dcmi, chip, calling);
  if (absl::IsUnimplemented(vnpus.status())) return absl::OkStatus();
  if (!vnpus.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        Noun(chip), ": nobody can tell which vNPUs are on it: ", vnpus.status().message()));
  }
  if (!vnpus->empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(Noun(chip), " is busy: vNPU ", vnpus->front().id, " is on it"));
  }
  return absl::OkStatus();
}

absl::Status Failure(const vnpu::Chip& chip, const absl::Status& status) {
  if (dcmi::ReturnCodeOf(status) == DCMI_RESOURCE_OCCUPIED || absl::IsFailedPrecondition(status)) {
    return absl::FailedPreconditionError(
        absl::StrCat(Noun(chip), " is busy, or one that is reset with it: ", status.message()));
  }
  if (dcmi::ReturnCodeOf(status) == DCMI_OPER_NOT_PERMITTED) {
    return absl::AbortedError(absl::StrCat(
        Noun(chip), ": ", status.message(),
        ": the agent must run as root in a privileged container on the host, not in a VM"));
  }
  return absl::AbortedError(absl::StrCat(Noun(chip), ": ", status.message()));
}

}  // namespace

absl::Status CheckIdle(dcmi::Dcmi& dcmi, const std::vector<ResetMember>& members, Calling calling) {
  for (const auto& [chip, uuid] : members) {
    if (const absl::Status same = CheckChip(dcmi, chip, uuid, calling); !same.ok()) {
      return absl::FailedPreconditionError(same.message());
    }
    if (chip.health == vnpu::Health::kAbsent) continue;
    ASCEND_RETURN_IF_ERROR(CheckUnused(dcmi, chip, calling));
  }
  return absl::OkStatus();
}

absl::Status StartReset(dcmi::Dcmi& dcmi, const vnpu::Chip& chip, absl::FunctionRef<void()> pause,
                        Calling calling) {
  const dcmi::ChipAddress address = AddressOf(chip);
  calling("dcmi_get_device_outband_channel_state");
  const bool out_of_band = dcmi.HasOutbandChannel(address).value_or(false);
  if (!out_of_band) {
    calling("dcmi_set_device_reset");
    const absl::Status reset = dcmi.Reset(address, dcmi::ResetChannel::kInband);
    return reset.ok() ? reset : Failure(chip, reset);
  }
  calling("dcmi_pre_reset_soc");
  if (const absl::Status prepared = dcmi.PrepareReset(address); !prepared.ok()) {
    return Failure(chip, prepared);
  }
  calling("dcmi_set_device_reset");
  const absl::Status reset = dcmi.Reset(address, dcmi::ResetChannel::kOutband);
  if (reset.ok()) pause();
  calling("dcmi_rescan_soc");
  const absl::Status rescanned = dcmi.Rescan(address);
  if (!reset.ok()) return Failure(chip, reset);
  if (!rescanned.ok()) {
    return absl::AbortedError(absl::StrCat(
        Noun(chip), " was reset, but cannot be looked for again: ", rescanned.message()));
  }
  return absl::OkStatus();
}

ChipReset LookAtBoot(dcmi::Dcmi& dcmi, const vnpu::Chip& chip, Calling calling) {
  ChipReset result = {.physical_id = chip.physical_id};
  calling("dcmi_get_device_boot_status");
  const absl::StatusOr<int> state = dcmi.BootState(AddressOf(chip));
  if (!state.ok()) {
    result.problem = std::string(state.status().message());
  } else if (*state != dcmi::kBootFinished) {
    result.problem = absl::StrCat("its boot status is ", *state, ", not ", dcmi::kBootFinished);
  } else {
    result.started = true;
  }
  return result;
}

}  // namespace ascend::agent
