#include "test/bench/samples.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::bench {
namespace {

Samples Milliseconds(int from, int to) {
  Samples samples;
  // Not in order: whoever forgets to sort is found out.
  for (int i = to; i >= from; --i) samples.Add(absl::Milliseconds(i));
  return samples;
}

TEST(SamplesTest, QuantilesAreSamples) {
  const Samples samples = Milliseconds(1, 100);
  EXPECT_EQ(samples.QuantileMs(0), 1);
  EXPECT_EQ(samples.QuantileMs(0.5), 50);
  EXPECT_EQ(samples.QuantileMs(0.99), 99);
  EXPECT_EQ(samples.QuantileMs(1), 100);
}

TEST(SamplesTest, OneSampleIsEveryQuantile) {
  const Samples samples = Milliseconds(7, 7);
  EXPECT_EQ(samples.QuantileMs(0.01), 7);
  EXPECT_EQ(samples.QuantileMs(0.99), 7);
}

TEST(SamplesTest, NoSamplesAreZero) { EXPECT_EQ(Samples().QuantileMs(0.5), 0); }

TEST(SamplesTest, MergeTakesAll) {
  Samples samples = Milliseconds(1, 10);
  samples.Merge(Milliseconds(11, 20));
  EXPECT_EQ(samples.size(), 20u);
  EXPECT_EQ(samples.QuantileMs(1), 20);
  EXPECT_EQ(samples.QuantileMs(0.5), 10);
}

}  // namespace
}  // namespace ascend::bench
