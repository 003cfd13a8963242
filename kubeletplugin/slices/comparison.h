// What the server has of a slice, beside what is wanted: whether it has to be written, and what of
// it the server does not store.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SLICES_COMPARISON_H_
#define ASCEND_DRA_KUBELETPLUGIN_SLICES_COMPARISON_H_

#include <string>
#include <vector>

#include "kubeletplugin/kube/resource_slice.h"

namespace ascend::kubeletplugin {

// Apart from metadata and the pool's generation. A taint's time is the server's unless `wanted`
// says one.
bool SameContent(const kube::ResourceSlice& wanted, const kube::ResourceSlice& stored);
bool SameContentButTaints(const kube::ResourceSlice& wanted, const kube::ResourceSlice& stored);

// A taint that stays has been there since the time that is stored.
void KeepTaintTimes(const kube::ResourceSlice& stored, kube::ResourceSlice* wanted);

struct Dropped {
  std::vector<std::string> fields = {};  // for people; some more than once
  bool taints = false;
  bool counters = false;
};
// What of `sent` is missing in `stored`, the server's answer to it: unknown to it, or switched off.
Dropped DroppedFields(const kube::ResourceSlice& sent, const kube::ResourceSlice& stored);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SLICES_COMPARISON_H_
