#include "vnpu/driver_version.h"

#include "gmock/gmock.h"

namespace ascend::vnpu {
namespace {

TEST(DriverVersionTest, SpellingIsNoDifference) {
  for (const char* other : {"24.1.rc2", "24.1.RC2", " v24.1.rc2\n", "V24.1-rc02", "24.1.rc.2",
                            "24.1.rc2.0", "24.1.rc2 B030"}) {
    EXPECT_TRUE(MayBeSameVersion("24.1.rc2", other)) << other;
    EXPECT_TRUE(MayBeSameVersion(other, "24.1.rc2")) << other;
  }
  EXPECT_TRUE(MayBeSameVersion("25.0", "25.0.0"));
}

TEST(DriverVersionTest, AnotherVersionIs) {
  for (const char* other :
       {"24.1.rc3", "24.1", "24.1.2", "24.1.rc2.1", "25.1.rc2", "24.10.rc2", "24.1.b2", "2"}) {
    EXPECT_FALSE(MayBeSameVersion("24.1.rc2", other)) << other;
  }
  EXPECT_FALSE(MayBeSameVersion("25.5.1", "25.5.10"));
}

TEST(DriverVersionTest, WhatIsNoVersionSaysNothing) {
  for (const char* other : {"", "NA", "unknown", "-", "v"}) {
    EXPECT_TRUE(MayBeSameVersion("24.1.rc2", other)) << other;
  }
}

TEST(DriverVersionTest, SaysWhatRunsWhatIsInstalledAndWhatToDo) {
  EXPECT_EQ(DriverVersionProblem("24.1.rc2", "25.0.rc1"),
            "driver 24.1.rc2 is running, the package on the node is 25.0.rc1: restart the node (or "
            "install the package again)");
  EXPECT_EQ(DriverVersionProblem("24.1.rc2", "24.1.RC2"), "");
}

}  // namespace
}  // namespace ascend::vnpu
