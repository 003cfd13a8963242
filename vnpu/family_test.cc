#include "vnpu/family.h"

#include "gtest/gtest.h"

namespace ascend::vnpu {
namespace {

TEST(FamilyTest, IsDetectedFromNameAndBoard) {
  const struct {
    const char* chip_name;
    uint32_t board_id;
    Family family;
  } kCases[] = {
      {"310", 0x0, Family::k310},          {"310B1", 0x0, Family::k310B},
      {"310P3", 0x1e, Family::k310P},      {"I2", 0x0, Family::k310P},
      {"910ProB", 0x2, Family::k910A},     {"910PremiumA", 0x0, Family::k910A},
      {"910", 0x0, Family::k910A},         {"910B3", 0x32, Family::k910B},
      {"910B4-1", 0x38, Family::k910B},    {"A2G1", 0x0, Family::k910B},
      {"910B", 0x0, Family::k910A},        {"Ascend910", 0xb1, Family::kA3},
      {"Ascend910", 0x0, Family::kA3},     {"910B3", 0xd3, Family::kA3},
      {"Ascend950PR", 0x1a, Family::k950}, {"Ascend950DT", 0x28, Family::k950},
      {"", 0x32, Family::kUnknown},        {"", 0xb0, Family::kA3},
      {"Tesla", 0x0, Family::kUnknown},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(DetectFamily(c.chip_name, c.board_id), c.family) << c.chip_name << " " << c.board_id;
  }
}

TEST(FamilyTest, ModelJoinsASplitName) {
  EXPECT_EQ(ModelName("910B3", "910B3"), "910B3");
  EXPECT_EQ(ModelName("910B3", ""), "910B3");
  EXPECT_EQ(ModelName("Ascend910", "9392"), "Ascend910_9392");
  EXPECT_EQ(ModelName("", "9392"), "");
}

TEST(FamilyTest, NodeNumberIsThePhysicalIdButOn950) {
  EXPECT_EQ(NodeNumber(Family::k910B, 5, 2), 5);
  EXPECT_EQ(NodeNumber(Family::kUnknown, 5, 2), 5);
  EXPECT_EQ(NodeNumber(Family::k950, 5, 2), 2);
}

TEST(FamilyTest, MemoryIsTheNominalSize) {
  EXPECT_EQ(NominalMemoryMib(Family::k310P, 21527), 24576);
  EXPECT_EQ(NominalMemoryMib(Family::k310P, 44280), 49152);
  EXPECT_EQ(NominalMemoryMib(Family::k310P, 43693), 49152);
  EXPECT_EQ(NominalMemoryMib(Family::k310P, 10000), 10000);
  EXPECT_EQ(NominalMemoryMib(Family::k310P, 0), 0);
  EXPECT_EQ(NominalMemoryMib(Family::k910B, 65536), 65536);
}

TEST(FamilyTest, HccsGroupsFollowTheProductTables) {
  EXPECT_EQ(HccsGroup(Family::k910A, 0x2, 3), "hccs-0");
  EXPECT_EQ(HccsGroup(Family::k910A, 0x2, 4), "hccs-1");
  EXPECT_EQ(HccsGroup(Family::k910B, 0x32, 7), "hccs-0");
  EXPECT_EQ(HccsGroup(Family::k910B, 0x3a, 8), "hccs-1");
  EXPECT_EQ(HccsGroup(Family::k910B, 0x37, 0), "");
  EXPECT_EQ(HccsGroup(Family::k910B, 0x29, 0), "");
  EXPECT_EQ(HccsGroup(Family::kA3, 0xb1, 15), "hccs-0");
  EXPECT_EQ(HccsGroup(Family::k310P, 0x1e, 0), "");
  EXPECT_EQ(HccsGroup(Family::k950, 0x1a, 0), "");
}

}  // namespace
}  // namespace ascend::vnpu
