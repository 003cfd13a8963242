#include "vnpu/chip.h"

#include "gtest/gtest.h"

namespace ascend::vnpu {
namespace {

TEST(ChipTest, NamesGoBothWays) {
  for (const Family family : {Family::kUnknown, Family::k310, Family::k310B, Family::k310P,
                              Family::k910A, Family::k910B, Family::kA3, Family::k950}) {
    EXPECT_EQ(FamilyFromName(FamilyName(family)), family);
  }
  for (const Health health : {Health::kUnknown, Health::kOk, Health::kMinor, Health::kMajor,
                              Health::kCritical, Health::kAbsent}) {
    EXPECT_EQ(HealthFromName(HealthName(health)), health);
  }
  for (const FaultSeverity severity :
       {FaultSeverity::kUnknown, FaultSeverity::kWarning, FaultSeverity::kMinor,
        FaultSeverity::kMajor, FaultSeverity::kCritical}) {
    EXPECT_EQ(FaultSeverityFromName(FaultSeverityName(severity)), severity);
  }
  for (const NetworkHealth health :
       {NetworkHealth::kUnknown, NetworkHealth::kOk, NetworkHealth::kDown}) {
    EXPECT_EQ(NetworkHealthFromName(NetworkHealthName(health)), health);
  }
  for (const LibraryState state :
       {LibraryState::kMissing, LibraryState::kStarting, LibraryState::kReady,
        LibraryState::kNotResponding, LibraryState::kFailed}) {
    EXPECT_EQ(LibraryStateFromName(LibraryStateName(state)), state);
  }
}

TEST(ChipTest, UnknownNamesAreUnknown) {
  EXPECT_EQ(FamilyFromName("910C"), Family::kUnknown);
  EXPECT_EQ(HealthFromName(""), Health::kUnknown);
  EXPECT_EQ(FaultSeverityFromName("fatal"), FaultSeverity::kUnknown);
  EXPECT_EQ(NetworkHealthFromName("up"), NetworkHealth::kUnknown);
  EXPECT_EQ(LibraryStateFromName("sleeping"), LibraryState::kFailed);
  EXPECT_EQ(FamilyName(static_cast<Family>(99)), "unknown");
}

}  // namespace
}  // namespace ascend::vnpu
