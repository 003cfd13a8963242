#include "test/bench/machine.h"

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::bench {
namespace {

using ::testing::HasSubstr;

TEST(MachineTest, NamesFileSystems) {
  EXPECT_THAT(FileSystemType("/proc"), IsOkAndHolds("proc"));
  // sysfs is none that files are written to.
  EXPECT_THAT(FileSystemType("/sys"), IsOkAndHolds("0x62656572"));
}

TEST(MachineTest, NoSuchPath) {
  EXPECT_THAT(FileSystemType("/proc/no/such/path"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/proc/no/such/path")));
}

TEST(MachineTest, Facts) {
  EXPECT_GE(CoreCount(), 1);
  EXPECT_GE(LoadAverage(), 0);
  EXPECT_THAT(KernelName(), HasSubstr("Linux"));
}

}  // namespace
}  // namespace ascend::bench
