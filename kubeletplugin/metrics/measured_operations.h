// Puts the metrics around the claim engine's operations.
#ifndef ASCEND_DRA_KUBELETPLUGIN_METRICS_MEASURED_OPERATIONS_H_
#define ASCEND_DRA_KUBELETPLUGIN_METRICS_MEASURED_OPERATIONS_H_

#include "kubeletplugin/metrics/metrics.h"
#include "kubeletplugin/service/dra_service.h"

namespace ascend::kubeletplugin {

// The same operations; every end of one is counted and timed, whatever it ended with. `metrics`
// must outlive them.
ClaimOperations MeasureOperations(ClaimOperations operations, Metrics& metrics);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_METRICS_MEASURED_OPERATIONS_H_
