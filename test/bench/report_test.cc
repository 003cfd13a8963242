#include "test/bench/report.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace ascend::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(ReportTest, GoalsIncludeTheirLimit) {
  Report report;
  report.Add({.key = "a", .name = "A", .value = 1.3, .at_most = 1.3});
  report.Add({.key = "b", .name = "B", .value = 14, .at_least = 14});
  EXPECT_THAT(report.Missed(), IsEmpty());
  EXPECT_EQ(report.goals(), 2u);
  EXPECT_THAT(report.Table(), HasSubstr("met"));
  EXPECT_THAT(report.Table(), Not(HasSubstr("missed")));
}

TEST(ReportTest, NamesWhatIsMissed) {
  Report report;
  report.Add({.key = "above", .name = "Above", .value = 1.31, .at_most = 1.3});
  report.Add({.key = "below", .name = "Below", .value = 13.9, .unit = "x", .at_least = 14});
  report.Add({.key = "free", .name = "Free", .value = 1e9});
  EXPECT_THAT(report.Missed(), ElementsAre("above", "below"));
  EXPECT_EQ(report.goals(), 2u);
  EXPECT_THAT(report.Table(), HasSubstr("≥ 14 x  missed"));
}

TEST(ReportTest, WhatIsNotANumberIsMissed) {
  Report report;
  report.Add({.key = "nan",
              .name = "Nothing",
              .value = std::numeric_limits<double>::quiet_NaN(),
              .at_most = 1});
  EXPECT_THAT(report.Missed(), ElementsAre("nan"));
}

TEST(ReportTest, JsonIsFlatAndRounded) {
  Report report;
  report.AddFact("kernel", "6.1");
  report.Add({.key = "prepare_1_p50_ms", .value = 1.23456789});
  report.Add({.key = "zero", .name = "Zero", .value = 0});
  EXPECT_EQ(report.Json().dump(), R"({"kernel":"6.1","prepare_1_p50_ms":1.23457,"zero":0.0})");
  EXPECT_THAT(report.Table(), Not(HasSubstr("prepare_1")));
}

}  // namespace
}  // namespace ascend::bench
