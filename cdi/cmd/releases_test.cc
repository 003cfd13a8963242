#include "cdi/cmd/releases.h"

#include "gtest/gtest.h"

namespace ascend::cdi::cmd {
namespace {

TEST(ReleasesTest, RangesHaveBothEnds) {
  EXPECT_TRUE(InRange("1.7.0-1.7.11", "1.7.0"));
  EXPECT_TRUE(InRange("1.7.0-1.7.11", "1.7.1"));
  EXPECT_TRUE(InRange("1.7.0-1.7.11", "v1.7.11"));
  EXPECT_FALSE(InRange("1.7.12-1.7.15", "1.7.1"));
  EXPECT_FALSE(InRange("1.7.0-1.7.11", "1.7.12"));
}

TEST(ReleasesTest, WhatIsLeftOpenIsAnyRelease) {
  EXPECT_TRUE(InRange("1.7.0-1.7.11", "1.7"));
  EXPECT_TRUE(InRange("1.7.0-1.7.11", "1"));
  EXPECT_TRUE(InRange("1.7.0-1.7.11", ""));
  EXPECT_TRUE(InRange("2.3.x", "2.3.7"));
  EXPECT_FALSE(InRange("2.3.x", "2.4.0"));
  EXPECT_TRUE(InRange("4.3-4.4", "4.4.9"));
  EXPECT_TRUE(InRange("29.3+", "31"));
  EXPECT_FALSE(InRange("29.3+", "29.2"));
  EXPECT_TRUE(InRange("27.5-28.0", "28"));
  EXPECT_TRUE(InRange("28.1-29.0", "28"));
}

TEST(ReleasesTest, NoVersionIsInNoRange) {
  EXPECT_FALSE(InRange("1.7.0-1.7.11", "new"));
  EXPECT_FALSE(InRange("1.7.0-1.7.11", "1.7.0.1"));
  EXPECT_FALSE(InRange("1.7.0-1.7.11", "-1"));
}

TEST(ReleasesTest, NamesAreWhole) {
  EXPECT_TRUE(IsRelease("CRI-O 1.24", "cri-o 1.24"));
  EXPECT_TRUE(IsRelease("containerd 2.1.x", "containerd"));
  EXPECT_FALSE(IsRelease("containerd 2.1.x", "c"));
  EXPECT_FALSE(IsRelease("containerd 2.1.x", ""));
  EXPECT_FALSE(IsRelease("containerd 2.1.x", "podman 2.1"));
}

}  // namespace
}  // namespace ascend::cdi::cmd
