// Whether chips are idle for sure: only then may they be reset.
#ifndef ASCEND_DRA_KUBELETPLUGIN_HEALTH_GROUP_USE_H_
#define ASCEND_DRA_KUBELETPLUGIN_HEALTH_GROUP_USE_H_

#include <set>
#include <string>
#include <vector>

#include "kubeletplugin/claims/quarantine.h"
#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/kube/resource_slice.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

// All that tells who uses chips.
struct ChipUse {
  const vnpu::Inventory& inventory;  // with the chips that are lost
  const RecordStore::Contents& contents;
  const Quarantine& quarantine;  // of `contents`
  // Allocated to claims without a record.
  const std::vector<kube::SliceDevice>& pending;
};

// Why a chip of the group counts as in use, for people; empty if all are idle. A claim in any state
// holds its chips, also one with admin access, and so does a record that cannot be read and may be
// about them; a chip of which nobody can tell whether a process or a vNPU is on it is not idle. Of
// chips that are absent or lost only what is remembered of them counts.
std::string WhyInUse(const std::set<int>& group, const ChipUse& use);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_HEALTH_GROUP_USE_H_
