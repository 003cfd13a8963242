// How chips are by what an inventory alone says of them.
#ifndef ASCEND_DRA_KUBELETPLUGIN_TESTING_JUDGED_H_
#define ASCEND_DRA_KUBELETPLUGIN_TESTING_JUDGED_H_

#include <memory>
#include <utility>

#include "kubeletplugin/health/device_verdict.h"
#include "kubeletplugin/slices/builder.h"

namespace ascend::kubeletplugin {

inline std::shared_ptr<const ChipVerdicts> Judge(const vnpu::Inventory& inventory,
                                                 bool agent_known = true) {
  vnpu::HealthPolicy policy(vnpu::FaultTable::BuiltIn(), "boot");
  policy.Update(&inventory, agent_known, absl::FromUnixSeconds(1'790'000'000));
  return std::make_shared<const ChipVerdicts>(policy.verdicts());
}

// The slices of `inputs`; what it does not say of health is judged by its inventory.
inline SlicePlan BuildJudged(SliceInputs inputs) {
  if (inputs.health == nullptr && inputs.inventory != nullptr) {
    inputs.health = Judge(*inputs.inventory);
  }
  return BuildSlices(inputs);
}

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_TESTING_JUDGED_H_
