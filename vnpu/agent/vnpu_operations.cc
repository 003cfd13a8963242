#include "vnpu/agent/vnpu_operations.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/status_macros.h"
#include "base/runtime/logging.h"
#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/status.h"
#include "vnpu/discovery.h"

namespace ascend::agent {
namespace {

// Names of the library's functions, for messages.
constexpr absl::string_view kList = "dcmi_get_device_info";
constexpr absl::string_view kCreate = "dcmi_create_vdevice";
constexpr absl::string_view kDestroy = "dcmi_set_destroy_vdevice";

using Vnpus = std::vector<vnpu::Vnpu>;

dcmi::ChipAddress AddressOf(const vnpu::Chip& chip) { return {chip.card_id, chip.device_id}; }

std::string Noun(const vnpu::Chip& chip) { return absl::StrCat("chip ", chip.physical_id); }

// The library's refusal of a change, with what it means and what to do.
absl::Status Refusal(const absl::Status& status, absl::string_view invalid_means) {
  const auto with = [&status](absl::StatusCode code, absl::string_view advice) {
    return absl::Status(code, absl::StrCat(status.message(), ": ", advice));
  };
  switch (dcmi::ReturnCodeOf(status).value_or(DCMI_OK)) {
    case DCMI_RESOURCE_OCCUPIED:
    case DCMI_NOT_SUPPORT_IN_CONTAINER:  // what the driver's "device busy" comes as
    case DCMI_INNER_ERR:                 // also for a chip that another container has opened
      return with(
          absl::StatusCode::kFailedPrecondition,
          "the chip is in use, or the driver is at it; end the processes on it (npu-smi info "
          "shows them) and try again");
    case DCMI_INVALID_PARAMETER:
      return with(absl::StatusCode::kInvalidArgument, invalid_means);
    case DCMI_OPER_NOT_PERMITTED:
      return with(absl::StatusCode::kPermissionDenied,
                  "the agent must run as root in a privileged container on the host, not in a VM");
    case DCMI_NOT_SUPPORT:
    case DCMI_FUNCTION_NOT_FOUND:
      return with(absl::StatusCode::kUnimplemented, "this product or driver has no vNPUs");
    default:
      return status;
  }
}

const vnpu::Vnpu* Find(const Vnpus& vnpus, int id) {
  const auto found =
      std::find_if(vnpus.begin(), vnpus.end(), [id](const vnpu::Vnpu& v) { return v.id == id; });
  return found == vnpus.end() ? nullptr : &*found;
}

absl::StatusOr<Vnpus> List(dcmi::Dcmi& dcmi, const vnpu::Chip& chip, Calling calling) {
  calling(kList);
  ASCEND_ASSIGN_OR_RETURN(vnpu::Partitioning partitioning,
                          vnpu::ReadPartitioning(dcmi, AddressOf(chip)));
  return std::move(partitioning.vnpus);
}

// Destroys what a failed creation left, and says how that went: "" or more of a message.
// `*left_over` becomes true if something stays.
std::string Undo(dcmi::Dcmi& dcmi, const vnpu::Chip& chip, const std::set<int>& ids,
                 Calling calling, bool* left_over) {
  if (ids.empty()) return "";
  std::vector<std::string> failures;
  std::set<int> refused;
  for (const int id : ids) {
    calling(kDestroy);
    const absl::Status status = dcmi.DestroyVnpu(AddressOf(chip), id);
    if (status.ok()) continue;
    refused.insert(id);
    failures.push_back(std::string(status.message()));
  }
  // The list has the last word, in both directions.
  const absl::StatusOr<Vnpus> left = List(dcmi, chip, calling);
  std::set<int> remaining = refused;
  if (left.ok()) {
    remaining.clear();
    for (const int id : ids) {
      if (Find(*left, id) != nullptr) remaining.insert(id);
    }
  }
  if (remaining.empty()) return "; what it had made nevertheless was destroyed again";
  *left_over = true;
  LogWarning("vNPU left over", {{"chip", chip.physical_id},
                                {"vnpu", absl::StrJoin(remaining, " ")},
                                {"error", absl::StrJoin(failures, ", ")}});
  return absl::StrCat("; vNPU ", absl::StrJoin(remaining, ", "),
                      " was made nevertheless and cannot be destroyed again (",
                      failures.empty() ? "still listed" : absl::StrJoin(failures, ", "),
                      "): destroy it with npu-smi set -t destroy-vnpu");
}

// One creation, with what was there before.
class Creation {
 public:
  Creation(dcmi::Dcmi& dcmi, const vnpu::Chip& chip, const VnpuRequest& request, Vnpus before,
           Calling calling)
      : dcmi_(dcmi), chip_(chip), before_(std::move(before)), calling_(calling) {
    wanted_ = {.template_name = request.template_name, .id = request.id, .vgroup = request.vgroup};
    // The library would refuse it with a code that says nothing.
    if (wanted_.id.has_value() && Find(before_, *wanted_.id) != nullptr) wanted_.id.reset();
  }

  absl::StatusOr<vnpu::Vnpu> Run() {
    while (true) {
      calling_(kCreate);
      const absl::StatusOr<dcmi::CreatedVnpu> made = dcmi_.CreateVnpu(AddressOf(chip_), wanted_);
      // In any case: it may fail after having made one.
      const absl::StatusOr<Vnpus> after = List(dcmi_, chip_, calling_);
      if (!after.ok()) return Unlisted(made, after.status());
      if (made.ok()) {
        if (std::optional<vnpu::Vnpu> vnpu = Made(*made, *after)) return *std::move(vnpu);
      }
      std::set<int> surplus = made.ok() ? Surplus(*after) : OwnSurplus(made.status(), *after);
      if (!made.ok() && surplus.empty() && DropAWish(made.status())) continue;
      if (!made.ok()) return Failure(Reason(made.status()), surplus, *after);
      if (Find(before_, made->id) == nullptr) surplus.insert(made->id);
      return Failure(absl::InternalError(absl::StrCat(kCreate, " reported vNPU ", made->id,
                                                      ", but the chip does not list it as one of "
                                                      "this template")),
                     surplus, *after);
    }
  }

 private:
  absl::Status Reason(const absl::Status& status) const {
    return Refusal(status,
                   "the driver does not know this template on this chip; npu-smi info -t "
                   "template-info shows those that it knows");
  }

  // Some products and drivers choose themselves.
  bool DropAWish(const absl::Status& status) {
    if (dcmi::ReturnCodeOf(status) != DCMI_INVALID_PARAMETER) return false;
    if (wanted_.id.has_value()) {
      wanted_.id.reset();
      return true;
    }
    if (wanted_.vgroup.has_value()) {
      wanted_.vgroup.reset();
      return true;
    }
    return false;
  }

  std::set<int> Surplus(const Vnpus& after) const {
    std::set<int> ids;
    for (const vnpu::Vnpu& vnpu : after) {
      if (Find(before_, vnpu.id) == nullptr && vnpu.template_name == wanted_.template_name) {
        ids.insert(vnpu.id);
      }
    }
    return ids;
  }

  // What a create that failed may have made nevertheless, as far as it cannot be somebody else's
  // who makes vNPUs at the same time: one of the id that was asked for, or the only new one if no
  // id was. A refusal makes nothing.
  std::set<int> OwnSurplus(const absl::Status& failure, const Vnpus& after) const {
    switch (dcmi::ReturnCodeOf(failure).value_or(DCMI_OK)) {
      case DCMI_OPER_NOT_PERMITTED:
      case DCMI_RESOURCE_OCCUPIED:
      case DCMI_NOT_SUPPORT:
      case DCMI_NOT_SUPPORT_IN_CONTAINER:
        return {};
      default:
        break;
    }
    const std::set<int> fresh = Surplus(after);
    if (wanted_.id.has_value()) {
      return fresh.count(*wanted_.id) != 0 ? std::set<int>{*wanted_.id} : std::set<int>();
    }
    return fresh.size() == 1 ? fresh : std::set<int>();
  }

  std::optional<vnpu::Vnpu> Made(const dcmi::CreatedVnpu& made, const Vnpus& after) const {
    const vnpu::Vnpu* found = Find(after, made.id);
    const bool ours =
        found != nullptr && Find(before_, made.id) == nullptr &&
        (found->template_name.empty() || found->template_name == wanted_.template_name);
    if (!ours) {
      const std::set<int> fresh = Surplus(after);
      if (fresh.size() != 1) return std::nullopt;
      found = Find(after, *fresh.begin());
    }
    vnpu::Vnpu vnpu = *found;
    vnpu.template_name = wanted_.template_name;
    if (vnpu.vgroup < 0) vnpu.vgroup = made.vgroup;
    return vnpu;
  }

  absl::Status Annotated(absl::StatusCode code, absl::string_view message) const {
    return {code, absl::StrCat(Noun(chip_), ": a vNPU of template ", wanted_.template_name,
                               " cannot be made: ", message)};
  }

  absl::Status Failure(const absl::Status& reason, const std::set<int>& surplus,
                       const Vnpus& after) {
    bool left_over = false;
    std::string message =
        absl::StrCat(reason.message(), Undo(dcmi_, chip_, surplus, calling_, &left_over));
    // Perhaps ours, perhaps somebody else's.
    for (const vnpu::Vnpu& vnpu : after) {
      if (Find(before_, vnpu.id) == nullptr && vnpu.template_name.empty() &&
          surplus.count(vnpu.id) == 0) {
        absl::StrAppend(&message, "; vNPU ", vnpu.id,
                        " has appeared meanwhile, of a template that the library does not tell");
      }
    }
    // Whoever asked has to come back to it.
    return Annotated(left_over ? absl::StatusCode::kUnavailable : reason.code(), message);
  }

  absl::Status Unlisted(const absl::StatusOr<dcmi::CreatedVnpu>& made,
                        const absl::Status& listing) {
    std::string message =
        absl::StrCat("its vNPUs cannot be listed afterwards: ", listing.message());
    if (!made.ok()) {
      const absl::Status reason = Reason(made.status());
      return Annotated(
          absl::StatusCode::kUnavailable,
          absl::StrCat(reason.message(), "; ", message, ", so something may be left of it"));
    }
    std::set<int> ids;
    if (Find(before_, made->id) == nullptr) ids.insert(made->id);
    bool left_over = false;
    absl::StrAppend(&message, Undo(dcmi_, chip_, ids, calling_, &left_over));
    return Annotated(absl::StatusCode::kUnavailable, message);
  }

  dcmi::Dcmi& dcmi_;
  const vnpu::Chip& chip_;
  const Vnpus before_;
  const Calling calling_;
  dcmi::VnpuRequest wanted_;
};

}  // namespace

absl::Status CheckChip(dcmi::Dcmi& dcmi, const vnpu::Chip& chip, absl::string_view uuid,
                       Calling calling) {
  if (!uuid.empty() && !chip.uuid.empty() && uuid != chip.uuid) {
    return absl::FailedPreconditionError(
        absl::StrCat(Noun(chip), " is ", chip.uuid, ", not ", uuid,
                     ": it was replaced; release the claims that were made for the old one"));
  }
  calling("dcmi_get_device_phyid_from_logicid");
  ASCEND_ASSIGN_OR_RETURN(const int physical_id, dcmi.PhysicalId(AddressOf(chip)), Noun(chip));
  if (physical_id != chip.physical_id) {
    return absl::UnavailableError(absl::StrCat(Noun(chip), ": the library has chip ", physical_id,
                                               " in its place now; the chips are read anew, "
                                               "try again"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<vnpu::Vnpu>> ListVnpus(dcmi::Dcmi& dcmi, const vnpu::Chip& chip,
                                                  Calling calling) {
  ASCEND_ASSIGN_OR_RETURN(Vnpus vnpus, List(dcmi, chip, calling), Noun(chip), ": its vNPUs");
  return vnpus;
}

absl::StatusOr<vnpu::Vnpu> CreateVnpu(dcmi::Dcmi& dcmi, const vnpu::Chip& chip,
                                      const VnpuRequest& request, Calling calling) {
  ASCEND_ASSIGN_OR_RETURN(Vnpus before, ListVnpus(dcmi, chip, calling));
  absl::StatusOr<vnpu::Vnpu> made = Creation(dcmi, chip, request, std::move(before), calling).Run();
  if (made.ok()) {
    LogInfo("vNPU made",
            {{"chip", chip.physical_id}, {"vnpu", made->id}, {"template", made->template_name}});
  }
  return made;
}

absl::Status DestroyVnpu(dcmi::Dcmi& dcmi, const vnpu::Chip& chip, const VnpuReference& reference,
                         Calling calling) {
  ASCEND_ASSIGN_OR_RETURN(const Vnpus before, ListVnpus(dcmi, chip, calling));
  const std::string noun = absl::StrCat(Noun(chip), ": vNPU ", reference.id);
  const vnpu::Vnpu* vnpu = Find(before, reference.id);
  if (vnpu == nullptr) return absl::OkStatus();
  if (vnpu->template_name.empty()) {
    return absl::UnavailableError(
        absl::StrCat(noun, " is not destroyed: the library does not tell of which template it is"));
  }
  if (vnpu->template_name != reference.template_name) {
    return absl::FailedPreconditionError(absl::StrCat(noun, " is not destroyed: it is of template ",
                                                      vnpu->template_name, ", not ",
                                                      reference.template_name));
  }

  calling(kDestroy);
  const absl::Status destroyed = dcmi.DestroyVnpu(AddressOf(chip), reference.id);
  const absl::StatusOr<Vnpus> after = List(dcmi, chip, calling);
  if (after.ok() && Find(*after, reference.id) == nullptr) {
    LogInfo("vNPU destroyed", {{"chip", chip.physical_id},
                               {"vnpu", reference.id},
                               {"template", reference.template_name}});
    return absl::OkStatus();
  }
  if (!destroyed.ok()) {
    return Annotate(Refusal(destroyed, "the driver does not know it"),
                    absl::StrCat(noun, " cannot be destroyed"));
  }
  if (!after.ok()) {
    return absl::UnavailableError(absl::StrCat(
        noun, " may be gone, but the vNPUs cannot be listed: ", after.status().message()));
  }
  return absl::UnavailableError(absl::StrCat(
      noun, " is still listed although ", kDestroy,
      " returned success; is something using it? see npu-smi info -t info-vnpu and dmesg"));
}

absl::Status PrepareVnpuModes(dcmi::Dcmi& dcmi, Calling calling) {
  constexpr absl::string_view kInvalid = "the driver does not take it";
  const auto refusal = [&](const absl::Status& status, absl::string_view what) {
    const absl::Status refused = Refusal(status, kInvalid);
    if (absl::IsFailedPrecondition(refused)) {
      return absl::FailedPreconditionError(absl::StrCat(
          what, ": ", status.message(), ": it changes only while the node has no vNPU"));
    }
    return Annotate(refused, what);
  };

  calling("dcmi_get_vdevice_mode");
  absl::StatusOr<dcmi::VdeviceMode> mode = dcmi.GetVdeviceMode();
  if (mode.ok() && *mode != dcmi::VdeviceMode::kContainer) {
    constexpr absl::string_view kWhat = "vNPU mode of the node cannot be set to container";
    calling("dcmi_set_vdevice_mode");
    const absl::Status status = dcmi.SetVdeviceMode(dcmi::VdeviceMode::kContainer);
    if (!status.ok()) return refusal(status, kWhat);
    calling("dcmi_get_vdevice_mode");
    mode = dcmi.GetVdeviceMode();
    if (mode.ok() && *mode != dcmi::VdeviceMode::kContainer) {
      return absl::UnavailableError(
          absl::StrCat(kWhat, ": the library took it, but it is vm still"));
    }
    LogInfo("vNPU mode set to container");
  }
  if (!mode.ok() && !absl::IsUnimplemented(mode.status())) {
    return Annotate(mode.status(), "vNPU mode of the node");
  }

  calling("dcmi_get_vnpu_config_recover_mode");
  absl::StatusOr<bool> recovery = dcmi.GetVnpuRecovery();
  if (recovery.ok() && *recovery) {
    constexpr absl::string_view kWhat = "vNPU recovery of the node cannot be switched off";
    calling("dcmi_set_vnpu_config_recover_mode");
    const absl::Status status = dcmi.SetVnpuRecovery(false);
    if (!status.ok()) return refusal(status, kWhat);
    calling("dcmi_get_vnpu_config_recover_mode");
    recovery = dcmi.GetVnpuRecovery();
    if (recovery.ok() && *recovery) {
      return absl::UnavailableError(
          absl::StrCat(kWhat, ": the library took it, but it is on still"));
    }
    LogInfo("vNPU recovery switched off");
  }
  if (!recovery.ok() && !absl::IsUnimplemented(recovery.status())) {
    return Annotate(recovery.status(), "vNPU recovery of the node");
  }
  if (!mode.ok() && !recovery.ok()) {
    return absl::UnimplementedError(
        absl::StrCat("this product or driver has no vNPU modes: ", mode.status().message()));
  }
  return absl::OkStatus();
}

}  // namespace ascend::agent
