// What the gauges about the node's state are read from.
#ifndef ASCEND_DRA_KUBELETPLUGIN_METRICS_NODE_STATE_H_
#define ASCEND_DRA_KUBELETPLUGIN_METRICS_NODE_STATE_H_

#include "cdi/store.h"
#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/metrics/metrics.h"
#include "kubeletplugin/paths.h"

namespace ascend::kubeletplugin {

// Looks at the disk now. What cannot be read stays without a value.
NodeState ReadNodeState(RecordStore& records, const cdi::Store& cdi_store, const Paths& paths,
                        bool registered);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_METRICS_NODE_STATE_H_
