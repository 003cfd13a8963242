// How long it takes to build the slices of the largest node whose chips are all divided.
#ifndef ASCEND_DRA_TEST_BENCH_SLICES_H_
#define ASCEND_DRA_TEST_BENCH_SLICES_H_

#include "test/bench/samples.h"

namespace ascend::bench {

// 16 x 910A with every template, some of them held: 496 devices in 10 slices. `rounds` times.
Samples TimeSliceBuilds(int rounds);

}  // namespace ascend::bench

#endif  // ASCEND_DRA_TEST_BENCH_SLICES_H_
