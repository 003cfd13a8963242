#include "kubeletplugin/metrics/measured_operations.h"

#include <utility>

#include "base/runtime/clock.h"

namespace ascend::kubeletplugin {
namespace {

const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

}  // namespace

ClaimOperations MeasureOperations(ClaimOperations operations, Metrics& metrics) {
  const auto measure = [&metrics](auto operation, auto begins, auto ended) {
    return [=, &metrics](const ClaimReference& claim) {
      (metrics.*begins)();
      const absl::Duration start = Clock::Real().Monotonic();
      auto result = operation(claim);
      (metrics.*ended)(StatusOf(result), Clock::Real().Monotonic() - start);
      return result;
    };
  };
  const auto report = [&metrics](DraMethod method) {
    return [method, &metrics](const ClaimOperations::CallReport& call) {
      metrics.GrpcCall(method, call.cancelled, call.duration);
    };
  };
  return {.prepare =
              measure(std::move(operations.prepare), &Metrics::PrepareBegins, &Metrics::Prepared),
          .unprepare = measure(std::move(operations.unprepare), &Metrics::UnprepareBegins,
                               &Metrics::Unprepared),
          .prepare_called = report(DraMethod::kNodePrepareResources),
          .unprepare_called = report(DraMethod::kNodeUnprepareResources)};
}

}  // namespace ascend::kubeletplugin
