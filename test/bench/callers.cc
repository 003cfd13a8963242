#include "test/bench/callers.h"

#include <atomic>
#include <latch>
#include <thread>

#include "absl/time/clock.h"
#include "base/runtime/clock.h"

namespace ascend::bench {
namespace {

absl::Duration Now() { return Clock::Real().Monotonic(); }

absl::Status GoThrough(const std::vector<sim::ClaimRef>& claims, const ClaimCalls& calls,
                       const std::atomic<bool>& stop, CallTimes* times) {
  for (const sim::ClaimRef& claim : claims) {
    if (stop) return absl::OkStatus();
    const absl::Duration start = Now();
    if (absl::Status status = calls.prepare(claim); !status.ok()) return status;
    const absl::Duration prepared = Now();
    if (absl::Status status = calls.unprepare(claim); !status.ok()) return status;
    times->unprepare.Add(Now() - prepared);
    times->prepare.Add(prepared - start);
  }
  return absl::OkStatus();
}

}  // namespace

void CallTimes::Merge(const CallTimes& other) {
  prepare.Merge(other.prepare);
  unprepare.Merge(other.unprepare);
  total += other.total;
}

double CallTimes::claims_per_second() const {
  return total > absl::ZeroDuration()
             ? static_cast<double>(prepare.size()) / absl::ToDoubleSeconds(total)
             : 0;
}

absl::StatusOr<CallTimes> RunCallers(const std::vector<std::vector<sim::ClaimRef>>& claims,
                                     const ClaimCalls& calls) {
  std::vector<CallTimes> times(claims.size());
  std::vector<absl::Status> results(claims.size());
  std::atomic<bool> stop = false;
  std::latch ready(static_cast<std::ptrdiff_t>(claims.size()) + 1);
  std::vector<std::thread> threads;
  threads.reserve(claims.size());
  for (size_t i = 0; i < claims.size(); ++i) {
    threads.emplace_back([&, i] {
      ready.arrive_and_wait();
      results[i] = GoThrough(claims[i], calls, stop, &times[i]);
      if (!results[i].ok()) stop = true;
    });
  }
  ready.arrive_and_wait();
  const absl::Duration start = Now();
  for (std::thread& thread : threads) thread.join();
  CallTimes all;
  all.total = Now() - start;
  for (size_t i = 0; i < claims.size(); ++i) {
    if (!results[i].ok()) return results[i];
    all.prepare.Merge(times[i].prepare);
    all.unprepare.Merge(times[i].unprepare);
  }
  return all;
}

}  // namespace ascend::bench
