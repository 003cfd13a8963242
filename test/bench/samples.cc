#include "test/bench/samples.h"

#include <algorithm>
#include <cmath>

namespace ascend::bench {

void Samples::Merge(const Samples& other) {
  times_.insert(times_.end(), other.times_.begin(), other.times_.end());
}

double Samples::QuantileMs(double fraction) const {
  if (times_.empty()) return 0;
  std::vector<absl::Duration> sorted = times_;
  const double rank = std::ceil(fraction * static_cast<double>(sorted.size()));
  const size_t index = rank < 1 ? 0 : std::min(sorted.size(), static_cast<size_t>(rank)) - 1;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(index),
                   sorted.end());
  return absl::ToDoubleMilliseconds(sorted[index]);
}

}  // namespace ascend::bench
