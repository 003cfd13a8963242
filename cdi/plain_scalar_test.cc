#include "cdi/plain_scalar.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::cdi {
namespace {

using ::testing::Optional;

TEST(ParsePlainBooleanTest, TakesTheWordsOfYaml11) {
  for (const char* text :
       {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"}) {
    EXPECT_THAT(ParsePlainBoolean(text), Optional(true)) << text;
  }
  for (const char* text :
       {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"}) {
    EXPECT_THAT(ParsePlainBoolean(text), Optional(false)) << text;
  }
  for (const char* text : {"", "1", "0", "tRue", "yEs", "true ", "t"}) {
    EXPECT_EQ(ParsePlainBoolean(text), std::nullopt) << text;
  }
}

TEST(ParsePlainIntegerTest, TakesEveryBase) {
  const struct {
    const char* text;
    int64_t value;
  } kTests[] = {{"0", 0},
                {"-0", 0},
                {"+5", 5},
                {"-5", -5},
                {"0666", 438},
                {"0o666", 438},
                {"0O17", 15},
                {"-017", -15},
                {"0x1b6", 438},
                {"-0X1F", -31},
                {"0b11", 3},
                {"+0B1", 1},
                {"1_000", 1000},
                {"0x_1", 1},
                {"0_", 0},
                {"00", 0},
                {"1__0", 10},
                {"9223372036854775807", std::numeric_limits<int64_t>::max()},
                {"-9223372036854775808", std::numeric_limits<int64_t>::min()}};
  for (const auto& test : kTests) {
    EXPECT_THAT(ParsePlainInteger(test.text), Optional(test.value)) << test.text;
  }
}

TEST(ParsePlainIntegerTest, RefusesAllElse) {
  for (const char* text : {"",
                           "-",
                           "+",
                           "_",
                           "_1",
                           "0x",
                           "0o",
                           "0b",
                           "08",
                           "0o8",
                           "0b2",
                           "0xg",
                           "1.0",
                           "1.",
                           "1e3",
                           "1:30",
                           "--5",
                           "+-5",
                           "-+5",
                           "0x-5",
                           "0-5",
                           "5 ",
                           " 5",
                           "5a",
                           ".5",
                           ".inf",
                           "2001-01-01",
                           "9223372036854775808",
                           "-9223372036854775809",
                           "18446744073709551616"}) {
    EXPECT_EQ(ParsePlainInteger(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace ascend::cdi
