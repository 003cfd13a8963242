#include "cli/output.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace ascend::cli {
namespace {

TEST(OutputTest, Printable) {
  EXPECT_EQ(Printable("plain text"), "plain text");
  EXPECT_EQ(Printable("\xe5\xad\x97"), "\xe5\xad\x97");
  EXPECT_EQ(Printable("a\nb\x1b\x7f"), "a\\nb\\x1b\\x7f");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b"
            "31m");
  EXPECT_EQ(Printable("cut \xe5\xad"), "cut \\xe5\\xad");
}

TEST(OutputTest, Json) {
  std::ostringstream text, errors;
  PrintJson({{"a", "\xe5\xad\x97\x1b\xc2\x9b\x7f\xff"}}, {.text = text, .errors = errors});
  EXPECT_EQ(text.str(), "{\n  \"a\": \"\\u5b57\\u001b\\u009b\\u007f\\ufffd\"\n}\n");
}

TEST(OutputTest, Table) {
  std::ostringstream text, errors;
  PrintTable({"A", "B"}, {{"\xe5\xad\x97\xe5\xad\x97\xe5\xad\x97", "x"}, {"", "y\n"}},
             {.text = text, .errors = errors});
  EXPECT_EQ(text.str(), "A    B\n\xe5\xad\x97\xe5\xad\x97\xe5\xad\x97  x\n-    y\\n\n");
}

}  // namespace
}  // namespace ascend::cli
