#include "vnpu/catalog.h"

#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "vnpu/catalog_reader.h"

namespace ascend::vnpu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNull;
using ::testing::NotNull;

Chip MakeChip(Family family, uint32_t board, int cores, int64_t memory) {
  Chip chip;
  chip.physical_id = 3;
  chip.family = family;
  chip.board_id = board;
  chip.aicore_count = cores;
  chip.memory_mib = memory;
  return chip;
}

// Name of the product that a chip has in the built-in catalog; "" = none.
std::string ProductOf(Family family, uint32_t board, int cores, int64_t memory) {
  const Product* product = Catalog::BuiltIn().Find(MakeChip(family, board, cores, memory));
  return product == nullptr ? "" : product->name;
}

const Product& Named(const Catalog& catalog, const std::string& name) {
  for (const Product& product : catalog.products()) {
    if (product.name == name) return product;
  }
  ADD_FAILURE() << "no product " << name;
  static const Product none;
  return none;
}

// aicore, aicpu, memory, vpc, venc, vdec, jpegd, jpege.
Amounts Of(std::array<int64_t, 8> values) {
  Amounts amounts;
  amounts.values = values;
  return amounts;
}

// A second copy of the reference's tables, typed from it and not from catalog.yaml.
TEST(BuiltInCatalog, HasTheTemplatesOfTheReference) {
  const auto expect = [](const std::string& product, const std::vector<Template>& templates) {
    EXPECT_EQ(Named(Catalog::BuiltIn(), product).templates, templates) << product;
  };
  for (const int64_t size : {1, 2}) {
    expect(absl::StrCat("310P-", 24 * size, "g"),
           {{"vir01", Of({1, 1, 3072 * size, 1, 0, 1, 2, 1}), 3072 * size},
            {"vir02_1c", Of({2, 1, 6144 * size, 3, 0, 3, 4, 2}), 6144 * size},
            {"vir02", Of({2, 2, 6144 * size, 3, 1, 3, 4, 2}), 6144 * size},
            {"vir04_3c_ndvpp", Of({4, 3, 12288 * size, 0, 0, 0, 0, 0}), 12288 * size},
            {"vir04_3c", Of({4, 3, 12288 * size, 6, 1, 6, 8, 4}), 12288 * size},
            {"vir04", Of({4, 4, 12288 * size, 6, 2, 6, 8, 4}), 12288 * size},
            {"vir04_4c_dvpp", Of({4, 4, 12288 * size, 12, 3, 12, 16, 8}), 12288 * size}});
  }
  for (const char* cores : {"", "-30c"}) {
    for (const int64_t part : {1, 2}) {
      expect(absl::StrCat("910A-", 32 / part, "g", cores),
             {{"vir02", Of({2, 1, 2048 / part, 1, 0, 1, 1, 0}), 2048 / part},
              {"vir04", Of({4, 1, 4096 / part, 2, 0, 2, 2, 1}), 4096 / part},
              {"vir08", Of({8, 3, 8192 / part, 4, 0, 4, 4, 2}), 8192 / part},
              {"vir16", Of({16, 7, 16384 / part, 8, 0, 8, 8, 4}), 16384 / part}});
    }
  }
  for (const char* product : {"910B-bin0", "910B-bin3", "A3-24c"}) {
    expect(product, {{"vir06_1c_16g", Of({6, 1, 15360, 2, 0, 0, 7, 1}), 16384},
                     {"vir12_3c_32g", Of({12, 3, 30720, 5, 0, 1, 14, 2}), 32768}});
  }
  for (const char* product : {"910B-bin1", "A3-20c"}) {
    expect(product, {{"vir05_1c_16g", Of({5, 1, 15360, 2, 0, 0, 6, 1}), 16384},
                     {"vir10_3c_32g", Of({10, 3, 30720, 4, 0, 1, 12, 2}), 32768}});
  }
  expect("910B-bin2", {{"vir05_1c_8g", Of({5, 1, 7168, 2, 0, 0, 6, 1}), 8192},
                       {"vir10_3c_16g_nm", Of({10, 3, 14336, 0, 0, 0, 0, 0}), 16384},
                       {"vir10_3c_16g", Of({10, 3, 14336, 4, 0, 1, 12, 2}), 16384},
                       {"vir10_4c_16g_m", Of({10, 4, 14336, 9, 0, 2, 24, 4}), 16384}});
}

TEST(BuiltInCatalog, HasTheBudgetsOfTheReference) {
  const std::vector<std::pair<std::string, Amounts>> expected = {
      {"310P-24g", Of({8, 7, 24576, 12, 3, 12, 16, 8})},
      {"310P-48g", Of({8, 7, 49152, 12, 3, 12, 16, 8})},
      {"910A-32g", Of({32, 0, 32768, 0, 0, 0, 0, 0})},
      {"910A-32g-30c", Of({30, 0, 32768, 0, 0, 0, 0, 0})},
      {"910A-16g", Of({32, 0, 16384, 0, 0, 0, 0, 0})},
      {"910A-16g-30c", Of({30, 0, 16384, 0, 0, 0, 0, 0})},
      {"910B-bin0", Of({24, 6, 61440, 10, 0, 2, 28, 4})},
      {"910B-bin3", Of({25, 6, 61440, 10, 0, 2, 28, 4})},
      {"910B-bin1", Of({20, 7, 61440, 9, 0, 2, 24, 4})},
      {"910B-bin2", Of({20, 7, 28672, 9, 0, 2, 24, 4})},
      {"A3-24c", Of({24, 6, 61440, 10, 0, 2, 28, 4})},
      {"A3-20c", Of({20, 6, 61440, 9, 0, 2, 24, 4})},
  };
  ASSERT_EQ(Catalog::BuiltIn().products().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const Product& product = Catalog::BuiltIn().products()[i];
    EXPECT_EQ(product.name, expected[i].first);
    EXPECT_EQ(product.budget, expected[i].second) << product.name;
    EXPECT_EQ(product.max_vnpus, 16) << product.name;
    EXPECT_EQ(product.opt_in, product.family == Family::kA3) << product.name;
    const VGroups vgroups = product.family == Family::k310P ? VGroups{4, 2} : VGroups{};
    EXPECT_EQ(product.vgroups, vgroups) << product.name;
    const bool unconfirmed =
        product.family == Family::kA3 || product.name == "910B-bin0" || product.name == "910B-bin3";
    EXPECT_EQ(product.uncertain,
              unconfirmed ? std::set<Resource>{Resource::kAicpu} : std::set<Resource>{})
        << product.name;
  }
}

TEST(Find, TakesThe910BByItsBoard) {
  const auto all = [](std::initializer_list<uint32_t> boards, const std::string& product) {
    for (const uint32_t board : boards) {
      // Whatever else it says: 0x37 and 0x29 have 64 GB and the templates of 32.
      EXPECT_EQ(ProductOf(Family::k910B, board, 20, 65536), product) << board;
      EXPECT_EQ(ProductOf(Family::k910B, board, 0, 0), product) << board;
    }
  };
  all({0x31, 0x3a, 0x51, 0x13, 0x43}, "910B-bin0");
  all({0x30, 0x39, 0x50}, "910B-bin3");
  all({0x32, 0x3b, 0x12, 0x10, 0x53, 0x42, 0x38, 0x3e}, "910B-bin1");
  all({0x33, 0x3c, 0x34, 0x3d, 0x37, 0x11, 0x52, 0x40, 0x41, 0x54, 0x28, 0x29}, "910B-bin2");
  all({0, 0x2a, 0x35, 0x99}, "");
}

TEST(Find, TakesOthersByFamilyCoresAndMemory) {
  EXPECT_EQ(ProductOf(Family::k310P, 0x1e, 8, 24576), "310P-24g");
  EXPECT_EQ(ProductOf(Family::k310P, 0x77, 8, 49152), "310P-48g");
  EXPECT_EQ(ProductOf(Family::k310P, 0x1e, 8, 21527), "");
  EXPECT_EQ(ProductOf(Family::k910A, 0x02, 32, 32768), "910A-32g");
  EXPECT_EQ(ProductOf(Family::k910A, 0x02, 30, 32768), "910A-32g-30c");
  EXPECT_EQ(ProductOf(Family::k910A, 0x02, 32, 16384), "910A-16g");
  EXPECT_EQ(ProductOf(Family::k910A, 0x02, 30, 16384), "910A-16g-30c");
  EXPECT_EQ(ProductOf(Family::k910A, 0x02, 0, 32768), "");
  EXPECT_EQ(ProductOf(Family::kA3, 0xb1, 24, 65536), "A3-24c");
  EXPECT_EQ(ProductOf(Family::kA3, 0xb1, 20, 65536), "A3-20c");
  // The board is 910B's bin2, too: the family comes first.
  EXPECT_EQ(ProductOf(Family::k950, 0x28, 36, 131072), "");
  EXPECT_EQ(ProductOf(Family::k310, 0x33, 2, 8192), "");
  EXPECT_EQ(ProductOf(Family::kUnknown, 0x33, 20, 32768), "");
}

Chip Reporting(const Product& product, Amounts total) {
  Chip chip =
      MakeChip(product.family, 0x32, static_cast<int>(product.budget[Resource::kAicore]), 65536);
  chip.partitioning.emplace().total = total;
  return chip;
}

TEST(BudgetOf, IsTheTableWhereTheChipSaysNothing) {
  const Product& product = Named(Catalog::BuiltIn(), "910B-bin1");
  EXPECT_THAT(BudgetOf(product, Reporting(product, {})), IsOkAndHolds(product.budget));
  Chip chip = Reporting(product, {});
  chip.partitioning.reset();
  EXPECT_THAT(BudgetOf(product, chip), IsOkAndHolds(product.budget));
  chip.aicore_count = 0;
  EXPECT_THAT(BudgetOf(product, chip), IsOkAndHolds(product.budget));
}

TEST(BudgetOf, TakesLessFromTheChipAndMoreOnlyWhereTheTableIsUncertain) {
  const Product& sure = Named(Catalog::BuiltIn(), "910B-bin1");
  // Memory is what the chip has, not what it can hand out; venc is no resource of the budget.
  EXPECT_THAT(BudgetOf(sure, Reporting(sure, Of({20, 6, 65536, 8, 5, 3, 24, 4}))),
              IsOkAndHolds(Of({20, 6, 61440, 8, 0, 2, 24, 4})));
  EXPECT_THAT(BudgetOf(sure, Reporting(sure, Of({20, 8, 1024, 0, 0, 0, 0, 0}))),
              IsOkAndHolds(sure.budget));
  const Product& uncertain = Named(Catalog::BuiltIn(), "910B-bin0");
  EXPECT_THAT(BudgetOf(uncertain, Reporting(uncertain, Of({24, 7, 0, 11, 0, 0, 0, 0}))),
              IsOkAndHolds(Of({24, 7, 61440, 10, 0, 2, 28, 4})));
  EXPECT_THAT(BudgetOf(uncertain, Reporting(uncertain, Of({24, 5, 0, 0, 0, 0, 0, 0}))),
              IsOkAndHolds(Of({24, 5, 61440, 10, 0, 2, 28, 4})));
}

TEST(BudgetOf, RefusesAChipWithOtherCores) {
  const Product& product = Named(Catalog::BuiltIn(), "910B-bin1");
  const auto refused =
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("chip 3"), HasSubstr("0x32"), HasSubstr("reports 24 AI cores"),
                     HasSubstr("910B-bin1"), HasSubstr("has 20"), HasSubstr("template-info")));
  EXPECT_THAT(BudgetOf(product, Reporting(product, Of({24, 7, 0, 0, 0, 0, 0, 0}))), refused);
  Chip chip = Reporting(product, {});
  chip.aicore_count = 24;  // the only one to say it
  EXPECT_THAT(BudgetOf(product, chip), refused);
  // What is said about partitions counts more than what is said about the chip.
  chip.partitioning->total[Resource::kAicore] = 20;
  EXPECT_THAT(BudgetOf(product, chip), IsOkAndHolds(product.budget));
}

constexpr char kFull[] = R"(
- product: site-310p
  family: 310P
  boards: [0x1e, 31]
  aicore: [8]
  memory: [24576]
  budget: {aicore: 8, aicpu: 7, memory: 24576}
  uncertain: [aicpu]
  vgroups: {count: 4, aicore: 2}
  maxVnpus: 8
  optIn: true
  templates:
    - {name: vir04, aicore: 4, aicpu: 4, memory: 12288, vpc: 0, advertisedMemory: 12300}
    - {name: vir01, aicore: 1, aicpu: 1, memory: 3072}
)";

TEST(WithOverrides, ReadsEveryKey) {
  const absl::StatusOr<Catalog> catalog = Catalog::WithOverrides(kFull);
  ASSERT_THAT(catalog, IsOk());
  Product expected;
  expected.name = "site-310p";
  expected.family = Family::k310P;
  expected.boards = {30, 31};
  expected.aicore_counts = {8};
  expected.memory_mib = {24576};
  expected.budget = Of({8, 7, 24576, 0, 0, 0, 0, 0});
  expected.uncertain = {Resource::kAicpu};
  expected.vgroups = {.count = 4, .aicore = 2};
  expected.max_vnpus = 8;
  expected.opt_in = true;
  expected.templates = {{"vir01", Of({1, 1, 3072, 0, 0, 0, 0, 0}), 3072},
                        {"vir04", Of({4, 4, 12288, 0, 0, 0, 0, 0}), 12300}};
  ASSERT_EQ(catalog->products().size(), Catalog::BuiltIn().products().size() + 1);
  EXPECT_EQ(catalog->products()[0], expected);
  // The operator's is looked at first; chips that it does not describe keep the built-in one.
  const Product* found = catalog->Find(MakeChip(Family::k310P, 0x1e, 8, 24576));
  ASSERT_THAT(found, NotNull());
  EXPECT_EQ(found->name, "site-310p");
  found = catalog->Find(MakeChip(Family::k310P, 0x20, 8, 24576));
  ASSERT_THAT(found, NotNull());
  EXPECT_EQ(found->name, "310P-24g");
}

TEST(WithOverrides, ReplacesABuiltInProductOfTheSameName) {
  const absl::StatusOr<Catalog> catalog = Catalog::WithOverrides(R"(
- product: 910B-bin2
  family: 910B
  boards: [0x33]
  budget: {aicore: 20, memory: 28672}
  templates: [{name: vir10_3c_16g, aicore: 10, memory: 14336}]
)");
  ASSERT_THAT(catalog, IsOk());
  EXPECT_EQ(catalog->products().size(), Catalog::BuiltIn().products().size());
  const Product* found = catalog->Find(MakeChip(Family::k910B, 0x33, 20, 32768));
  ASSERT_THAT(found, NotNull());
  EXPECT_EQ(found->templates.size(), 1U);
  EXPECT_EQ(found->max_vnpus, 16);
  EXPECT_FALSE(found->opt_in);
  EXPECT_EQ(found->vgroups, VGroups());
  EXPECT_THAT(found->uncertain, IsEmpty());
  EXPECT_EQ(found->templates[0].advertised_memory_mib, 14336);
  EXPECT_THAT(catalog->Find(MakeChip(Family::k910B, 0x37, 20, 65536)), IsNull());
}

TEST(WithOverrides, AddsABoardThatIsNotBuiltIn) {
  const absl::StatusOr<Catalog> catalog = Catalog::WithOverrides(R"(
- {product: mine, family: 910B, boards: [0x99], budget: {aicore: 20, memory: 61440},
   templates: [{name: vir10_3c_32g, aicore: 10, memory: 30720}]}
)");
  ASSERT_THAT(catalog, IsOk());
  ASSERT_THAT(catalog->Find(MakeChip(Family::k910B, 0x99, 20, 65536)), NotNull());
  EXPECT_EQ(ProductOf(Family::k910B, 0x99, 20, 65536), "");
}

TEST(WithOverrides, OfAnEmptyTextIsTheBuiltInCatalog) {
  for (const char* text : {"", "\n", "# nothing\n", "---\n", "[]"}) {
    const absl::StatusOr<Catalog> catalog = Catalog::WithOverrides(text);
    ASSERT_THAT(catalog, IsOk()) << text;
    EXPECT_EQ(catalog->products(), Catalog::BuiltIn().products()) << text;
  }
}

TEST(WithOverrides, SortsTemplatesBySize) {
  const absl::StatusOr<Catalog> catalog = Catalog::WithOverrides(R"(
- product: x
  family: 910A
  budget: {aicore: 32, memory: 32768}
  maxVnpus: 4
  templates:
    - {name: d, aicore: 2, aicpu: 1, memory: 1}
    - {name: e, aicore: 1, aicpu: 2, memory: 2}
    - {name: c, aicore: 1, aicpu: 1, memory: 3}
    - {name: b, aicore: 1, aicpu: 1, memory: 2, vpc: 1}
    - {name: a2, aicore: 1, aicpu: 1, memory: 2}
    - {name: a1, aicore: 1, aicpu: 1, memory: 2}
)");
  ASSERT_THAT(catalog, IsOk());
  std::vector<std::string> names;
  for (const Template& t : catalog->products()[0].templates) names.push_back(t.name);
  EXPECT_THAT(names, ElementsAre("a1", "a2", "b", "c", "e", "d"));
}

struct Mistake {
  const char* from;  // of kFull
  const char* to;
  const char* error;
};

class WithOverridesRefuses : public ::testing::TestWithParam<Mistake> {};

TEST_P(WithOverridesRefuses, WithTheLineAndWhatIsWrong) {
  const Mistake& mistake = GetParam();
  const std::string text = absl::StrReplaceAll(kFull, {{mistake.from, mistake.to}});
  ASSERT_NE(text, kFull) << mistake.from;
  EXPECT_THAT(Catalog::WithOverrides(text),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(mistake.error), HasSubstr("line "))));
}

constexpr Mistake kMistakes[] = {
    {"  optIn: true", "  optin: true",
     "product site-310p: line 11: a product has no key \"optin\""},
    {"  optIn: true", "  maxVnpus: 8", "line 11: key maxVnpus appears twice"},
    {"  optIn: true", "  optIn: often", "optIn must be true or false"},
    {"  optIn: true", "  optIn: []", "optIn must be true or false"},
    {"product: site-310p\n  ", "", "line 2: a product needs product"},
    {"  family: 310P\n", "", "needs family"},
    {"  budget: {aicore: 8, aicpu: 7, memory: 24576}\n", "", "needs budget"},
    {"- product: site-310p", "- product: [site]", "product must be a name"},
    {"- product: site-310p", "- product: ''", "product must be a name"},
    {"- product: site-310p", "- product: a/b", "product must be a name"},
    {"family: 310P", "family: 311P", "line 3: family must be one of"},
    {"family: 310P", "family: unknown", "family must be one of"},
    {"family: 310P", "family: 910A", "line 9: only 310P has vgroups"},
    {"[0x1e, 31]", "0x1e", "boards must be a list"},
    {"[0x1e, 31]", "[0x1e, 30]", "boards lists 30 twice"},
    {"[0x1e, 31]", "[0x1g]", "boards must be a whole number from 1 to 4294967295"},
    {"[0x1e, 31]", "[0x100000000]", "boards must be a whole number"},
    {"[0x1e, 31]", "[0]", "boards must be a whole number"},
    {"aicore: [8]", "aicore: [7]", "aicore 8 is not among"},
    {"aicore: [8]", "aicore: [eight]", "aicore must be a whole number"},
    {"memory: [24576]", "memory: [-1]", "memory must be a whole number"},
    {"{aicore: 8, aicpu: 7, memory: 24576}", "[8, 7]", "budget must be a mapping"},
    {"{aicore: 8, aicpu: 7, memory: 24576}", "{aicore: 8}", "budget needs memory"},
    {"aicpu: 7", "aicpus: 7", "budget has no key \"aicpus\""},
    {"aicpu: 7", "pngd: 7", "budget has no key \"pngd\""},
    {"aicpu: 7", "aicpu: 0", "aicpu must be a whole number from 1"},
    {"aicpu: 7", "aicpu: 7.5", "aicpu must be a whole number"},
    {"aicpu: 7", "aicpu: 9999999999", "aicpu must be a whole number"},
    {"aicpu: 7, ", "", "uncertain must list resources of the budget"},
    {"uncertain: [aicpu]", "uncertain: aicpu", "uncertain must be a list"},
    {"uncertain: [aicpu]", "uncertain: [aicore]", "neither aicore nor memory"},
    {"uncertain: [aicpu]", "uncertain: [memory]", "neither aicore nor memory"},
    {"uncertain: [aicpu]", "uncertain: [cpus]", "uncertain must list resources"},
    {"uncertain: [aicpu]", "uncertain: [aicpu, aicpu]", "uncertain lists aicpu twice"},
    {"{count: 4, aicore: 2}", "{count: 4}", "vgroups needs aicore"},
    {"{count: 4, aicore: 2}", "{count: 0, aicore: 2}", "vgroups.count must be"},
    {"{count: 4, aicore: 2}", "{count: 5, aicore: 1}", "vgroups.count must be"},
    {"{count: 4, aicore: 2}", "{count: 4, aicore: 3}", "vgroups: 4 of 3 cores are more"},
    {"{count: 4, aicore: 2}", "{count: 1, aicore: 2}", "template vir04 does not fit the vgroups"},
    {"maxVnpus: 8", "maxVnpus: 0", "maxVnpus must be a whole number from 1 to 16"},
    {"maxVnpus: 8", "maxVnpus: 17", "maxVnpus must be a whole number from 1 to 16"},
    {"name: vir01", "name: vir04", "line 14: template vir04 appears twice"},
    {"name: vir01", "name: Vir01", "name must be a template's"},
    {"name: vir01", "name: 1vir", "name must be a template's"},
    {"name: vir01", "name: vir-01", "name must be a template's"},
    {"name: vir01", "name: v23456789012345678901234567890123", "name must be a template's"},
    {"name: vir01, ", "", "a template needs name"},
    {"aicore: 1, ", "", "a template needs aicore"},
    {"aicore: 1, ", "aicore: 0, ", "aicore must be a whole number from 1"},
    {"aicore: 1, ", "aicore: 9, ", "line 14: template vir01: aicore 9 is more than the budget's 8"},
    {"memory: 3072", "memory: 24577",
     "template vir01: memory 24577 is more than the budget's 24576"},
    {"memory: 3072", "memory: 3072, cores: 1", "a template has no key \"cores\""},
    {"memory: 3072", "memory: 3072, vpc: -1", "vpc must be a whole number from 0"},
    {"advertisedMemory: 12300", "advertisedMemory: 12287", "advertisedMemory must be"},
    {"  templates:\n", "  templates: []\n  x:\n", "a product has no key \"x\""},
};
INSTANTIATE_TEST_SUITE_P(Mistakes, WithOverridesRefuses, ::testing::ValuesIn(kMistakes));

TEST(WithOverrides, RefusesOtherDocuments) {
  const auto refused = [](const std::string& text, const std::string& error) {
    EXPECT_THAT(Catalog::WithOverrides(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error)));
  };
  refused("a: b", "line 1: the catalog must be a list");
  refused("text", "the catalog must be a list");
  refused("- text", "a product must be a mapping");
  refused("- {[a]: b}", "keys must be strings");
  refused("- [", "not valid YAML");
  refused("- *missing", "not valid YAML");
  refused(absl::StrCat(kFull, "---", kFull), "more than one YAML document");
  refused(absl::StrCat(kFull, kFull), "line 16: product site-310p appears twice");
  refused("- {product: x, family: A3, budget: {aicore: 1, memory: 1}, templates: []}",
          "templates must not be empty");
  refused("- {product: x, family: A3, budget: {aicore: 1, memory: 1}, templates: {}}",
          "templates must be a list");
  // 4 x 16 partitions and the chip do not fit one slice.
  refused(R"(
- product: x
  family: A3
  budget: {aicore: 16, memory: 16}
  templates:
    - {name: a, aicore: 1, memory: 1}
    - {name: b, aicore: 1, memory: 1}
    - {name: c, aicore: 1, memory: 1}
    - {name: d, aicore: 1, memory: 1}
)",
          "the templates make 64 partitions possible on a chip, more than the 63");
}

TEST(ReadProducts, TakesTheTextThatIsCompiledIn) {
  const absl::StatusOr<std::vector<Product>> products = ReadProducts(BuiltInCatalogYaml());
  ASSERT_THAT(products, IsOk());
  EXPECT_EQ(*products, Catalog::BuiltIn().products());
}

}  // namespace
}  // namespace ascend::vnpu
