#include "vnpu/dcmi/mock/node.h"

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "gtest/gtest.h"
#include "vnpu/dcmi/mock/test_node.h"

namespace ascend::dcmi::mock {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string ErrorOf(const std::string& text) {
  Node node;
  std::string error;
  EXPECT_FALSE(ParseNode(text, &node, &error)) << text;
  return error;
}

TEST(NodeTest, NamesWhatIsWrong) {
  EXPECT_THAT(ErrorOf("{"), HasSubstr("parse error"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("no object"));
  EXPECT_THAT(ErrorOf(R"({"chipz":[]})"), HasSubstr("chipz"));
  EXPECT_THAT(ErrorOf(R"({"family":"910C"})"), HasSubstr("910C"));
  EXPECT_THAT(ErrorOf(R"({"generation":3})"), HasSubstr("generation"));
  EXPECT_THAT(ErrorOf(R"({"multiDiePolicy":"both"})"), HasSubstr("multiDiePolicy"));
  EXPECT_THAT(ErrorOf(R"({"chips":[{"present":"no"}]})"), HasSubstr("chips[0]"));
  EXPECT_THAT(ErrorOf(R"({"chips":[{},{"prezent":true}]})"), HasSubstr("chips[1]"));
  EXPECT_THAT(ErrorOf(R"({"chips":[{"aicoreCount":-1}]})"), HasSubstr("aicoreCount"));
  EXPECT_THAT(ErrorOf(R"({"chips":[{"pci":{"busID":"c1:00.0"}}]})"), HasSubstr("c1:00.0"));
  EXPECT_THAT(ErrorOf(R"({"chips":[{"die":{"vdie":"12-34"}}]})"), HasSubstr("12-34"));
  EXPECT_THAT(ErrorOf(R"({"chips":[{"roce":{"address":"1.2.3.400"}}]})"), HasSubstr("1.2.3.400"));
  EXPECT_THAT(ErrorOf(R"({"chips":[{"memory":{"kind":"sram"}}]})"), HasSubstr("kind"));
  EXPECT_THAT(ErrorOf(R"({"calls":{"dcmi_init":{"returns":1}}})"), HasSubstr("returns"));
  EXPECT_THAT(ErrorOf(R"({"calls":{"dcmi_init":{"return":"x"}}})"), HasSubstr("calls.dcmi_init"));
  EXPECT_THAT(ErrorOf(R"({"hiddenSymbols":[1]})"), HasSubstr("hiddenSymbols"));
  EXPECT_THAT(ErrorOf(R"({"calls":{"dcmi_init":{"afterWork":1}}})"), HasSubstr("afterWork"));
}

TEST(NodeTest, NamesWhatIsWrongAboutVnpus) {
  EXPECT_THAT(ErrorOf(R"({"vnpu":[]})"), HasSubstr("vnpu"));
  EXPECT_THAT(ErrorOf(R"({"vnpu":{"budgets":{}}})"), HasSubstr("budgets"));
  EXPECT_THAT(ErrorOf(R"({"vnpu":{"budget":{"cores":8}}})"), HasSubstr("cores"));
  EXPECT_THAT(ErrorOf(R"({"vnpu":{"budget":{"vpc":-1}}})"), HasSubstr("vpc"));
  EXPECT_THAT(ErrorOf(R"({"vnpu":{"budget":{"vpc":"2"}}})"), HasSubstr("vpc"));
  EXPECT_THAT(ErrorOf(R"({"vnpu":{"maxVnpus":0}})"), HasSubstr("maxVnpus"));
  EXPECT_THAT(ErrorOf(R"({"vnpu":{"maxVnpus":17}})"), HasSubstr("maxVnpus"));
  EXPECT_THAT(ErrorOf(R"({"vnpu":{"vGroups":{"count":4}}})"), HasSubstr("aicore"));
  EXPECT_THAT(ErrorOf(R"({"vnpu":{"vGroups":{"aicore":2}}})"), HasSubstr("count"));
  EXPECT_THAT(ErrorOf(R"({"vnpu":{"explicitIDs":"obeys"}})"), HasSubstr("explicitIDs"));
  EXPECT_THAT(ErrorOf(R"({"vnpu":{"create":"yes"}})"), HasSubstr("create"));
  EXPECT_THAT(ErrorOf(R"({"vnpu":{"templates":{}}})"), HasSubstr("templates"));
  EXPECT_THAT(ErrorOf(R"({"vnpu":{"templates":[{"aicore":1}]}})"), HasSubstr("name"));
  EXPECT_THAT(ErrorOf(R"({"vnpu":{"templates":[{"name":"vir10_3c_16g_nmx"}]}})"),
              HasSubstr("15 characters"));
  EXPECT_THAT(ErrorOf(R"({"vnpu":{"templates":[{"name":"vir01"},{"name":"vir01"}]}})"),
              HasSubstr("vir01 twice"));
  EXPECT_THAT(ErrorOf(R"({"vnpuNodes":{"delayMs":-1}})"), HasSubstr("delayMs"));
  EXPECT_THAT(ErrorOf(R"({"vnpuNodes":{"newer":true}})"), HasSubstr("newer"));
}

TEST(NodeTest, AnEmptyObjectIsANodeWithoutChips) {
  Node node;
  std::string error;
  ASSERT_TRUE(ParseNode("{}", &node, &error)) << error;
  EXPECT_TRUE(node.Visible().empty());
}

TEST(NodeTest, ShippedNodesAreDistinctAndComplete) {
  for (const std::string& name : TestNode::ShippedNames()) {
    TestNode copy(name);
    Node node;
    std::string error;
    ASSERT_TRUE(ParseNode(*ReadFile(NodeFile(copy.directory())), &node, &error)) << error;
    EXPECT_THAT(node.Visible(), SizeIs(node.chips.size())) << name;
    for (size_t i = 0; i < node.chips.size(); ++i) {
      const Chip& chip = node.chips[i];
      EXPECT_EQ(chip.physical_id, static_cast<int>(i)) << name;
      EXPECT_FALSE(chip.chip_name.empty()) << name;
      EXPECT_FALSE(chip.serial.empty()) << name;
      EXPECT_GT(chip.memory.total_mib, chip.memory.used_mib) << name;
      EXPECT_EQ(chip.pci.vendor_id, 0x19e5u) << name;
      for (size_t j = 0; j < i; ++j) {
        EXPECT_NE(chip.vdie, node.chips[j].vdie) << name;
        EXPECT_TRUE(chip.card != node.chips[j].card || chip.device != node.chips[j].device) << name;
      }
    }
  }
}

}  // namespace
}  // namespace ascend::dcmi::mock
