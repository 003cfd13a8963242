#include "vnpu/fault_texts.h"

#include "absl/status/statusor.h"

namespace ascend::vnpu {
namespace {

// More than a node can have at once; afterwards it begins anew.
constexpr size_t kMost = 16384;

}  // namespace

std::string FaultTexts::Of(dcmi::Dcmi& dcmi, dcmi::ChipAddress chip, uint64_t code) {
  const Key key = {chip.card, chip.device, code};
  {
    MutexLock lock(&mutex_);
    const auto known = texts_.find(key);
    if (known != texts_.end()) return known->second;
  }
  const absl::StatusOr<std::string> text = dcmi.FaultText(chip, code);
  MutexLock lock(&mutex_);
  if (texts_.size() >= kMost) texts_.clear();
  return texts_.insert_or_assign(key, text.ok() ? *text : "").first->second;
}

}  // namespace ascend::vnpu
