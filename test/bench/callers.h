// Callers that go through claims side by side: each claim is prepared, then unprepared.
#ifndef ASCEND_DRA_TEST_BENCH_CALLERS_H_
#define ASCEND_DRA_TEST_BENCH_CALLERS_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "test/bench/samples.h"
#include "test/sim/claim_ref.h"

namespace ascend::bench {

// What a caller does with a claim. Called from all callers' threads.
struct ClaimCalls {
  std::function<absl::Status(const sim::ClaimRef&)> prepare;
  std::function<absl::Status(const sim::ClaimRef&)> unprepare;
};

struct CallTimes {
  Samples prepare;
  Samples unprepare;
  absl::Duration total;  // during which all callers were at work

  void Merge(const CallTimes& other);
  double claims_per_second() const;
};

// One thread per element of `claims`, begun together; each goes through its claims in order. The
// first error ends the run.
absl::StatusOr<CallTimes> RunCallers(const std::vector<std::vector<sim::ClaimRef>>& claims,
                                     const ClaimCalls& calls);

}  // namespace ascend::bench

#endif  // ASCEND_DRA_TEST_BENCH_CALLERS_H_
