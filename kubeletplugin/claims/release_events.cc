#include "kubeletplugin/claims/release_events.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ascend::kubeletplugin {
namespace {

struct Cause {
  const char* what;  // in one word, for people
  const char* to_do;
};

Cause CauseOf(const KeptVnpus& kept) {
  if (kept.chip_lost) {
    return {"its chip is away",
            "it is destroyed when the chip is back; otherwise replace the card or reboot the node"};
  }
  switch (kept.error.code()) {
    case absl::StatusCode::kFailedPrecondition:
      return {"busy, or refused",
              "stop what still uses it (npu-smi info -t proc-mem on the node, a container that "
              "hangs); it is tried again every few seconds"};
    case absl::StatusCode::kDeadlineExceeded:
      return {
          "stuck",
          "the NPU library does not return: see dmesg and the ascend-npu-agent log; if it stays "
          "so, reset the chip or reboot the node"};
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
      return {
          "not reachable",
          "see that the ascend-npu-agent container runs and what its log says; it is tried again "
          "every few seconds"};
    default:
      return {"error",
              "see the ascend-npu-agent log; if it stays so, destroy it by hand (npu-smi set -t "
              "destroy-vnpu) or reboot the node"};
  }
}

// "vNPU 100 (vir02) of chip 0", of each that the record names.
std::string Vnpus(const ClaimRecord& record) {
  std::vector<std::string> names;
  for (const RecordedDevice& device : record.devices) {
    if (!device.vnpu || !device.vnpu->managed || device.chips.empty()) continue;
    const RecordedVnpu& vnpu = *device.vnpu;
    const int id = vnpu.id >= 0 ? vnpu.id : vnpu.wanted_id;
    names.push_back(absl::StrCat("vNPU ", id >= 0 ? absl::StrCat(id, " ") : "", "(",
                                 vnpu.template_name, ") of chip ",
                                 device.chips.front().physical_id));
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace

void ReleaseEvents::Kept(const ClaimRecord& record, const KeptVnpus& kept) {
  const Cause cause = CauseOf(kept);
  {
    MutexLock lock(&mutex_);
    if (!told_[record.claim_uid].insert(cause.what).second) return;
  }
  events_.Post(
      {.regarding = kube::ClaimObject(record.claim_namespace, record.claim_name, record.claim_uid),
       .reason = kReason,
       // The advice first: what the library says may be cut off.
       .message = absl::StrCat(Vnpus(record), " stays although claim ", record.claim(),
                               " has ended, and nobody else gets that part: ", cause.what, "; ",
                               cause.to_do, " (", kept.error.message(), ")"),
       .action = "DestroyVnpu"},
      kube::EventRecorder::IfGone::kTellNode);
}

void ReleaseEvents::Gone(const ClaimRecord& record) {
  MutexLock lock(&mutex_);
  told_.erase(record.claim_uid);
}

}  // namespace ascend::kubeletplugin
