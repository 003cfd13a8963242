// process_cpu_seconds_total and its sisters, as every Prometheus client library has them.
#ifndef ASCEND_DRA_KUBELETPLUGIN_METRICS_PROCESS_H_
#define ASCEND_DRA_KUBELETPLUGIN_METRICS_PROCESS_H_

#include <vector>

#include "prometheus/metric_family.h"

namespace ascend::kubeletplugin {

// Of this process, from /proc and the kernel. What cannot be read is left out.
std::vector<prometheus::MetricFamily> ProcessFamilies();

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_METRICS_PROCESS_H_
