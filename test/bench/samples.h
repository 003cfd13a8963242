// Times of one operation and what is said about them.
#ifndef ASCEND_DRA_TEST_BENCH_SAMPLES_H_
#define ASCEND_DRA_TEST_BENCH_SAMPLES_H_

#include <cstddef>
#include <vector>

#include "absl/time/time.h"

namespace ascend::bench {

// Not thread-safe: each caller has its own, merged at the end.
class Samples {
 public:
  void Add(absl::Duration time) { times_.push_back(time); }
  void Merge(const Samples& other);
  size_t size() const { return times_.size(); }
  // The time that `fraction` of the samples do not exceed, in milliseconds: 0.5 is the median, 1
  // the longest. 0 without samples.
  double QuantileMs(double fraction) const;

 private:
  std::vector<absl::Duration> times_;
};

}  // namespace ascend::bench

#endif  // ASCEND_DRA_TEST_BENCH_SAMPLES_H_
