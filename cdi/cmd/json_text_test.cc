#include "cdi/cmd/json_text.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi::cmd {
namespace {

using ::testing::HasSubstr;

TEST(JsonTextTest, KeepsTheOrderOfMembers) {
  const auto json = ParseJsonText(R"({"b": 1, "a": [true, null, 18446744073709551615, 1e3]})");
  ASSERT_THAT(json, IsOk());
  EXPECT_EQ(json->dump(), R"({"b":1,"a":[true,null,18446744073709551615,1000.0]})");
}

TEST(JsonTextTest, RefusesWhatWouldBeLost) {
  const auto refused = [](const std::string& text, const std::string& why) {
    EXPECT_THAT(ParseJsonText(text), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)))
        << text;
  };
  refused(R"({"a": {"b": 1, "b": 2}})", "the key \"b\" is there twice");
  refused(R"([18446744073709551616])", "too large");
  refused(R"([1e999])", "");
  refused(std::string("{}\0{}", 5), "NUL");
  refused("{} {}", "line 1, column 4");
  refused("{\n  \"a\": \xff}", "line 2");
  refused("", "not JSON");
  refused("{\"a\": \"\\ud83d\"}", "not JSON");
}

TEST(JsonTextTest, MembersAreLimited) {
  const auto object = [](size_t members) {
    std::string text = "{\"0\": 0";
    for (size_t i = 1; i < members; ++i) absl::StrAppend(&text, ", \"", i, "\": 0");
    return text + "}";
  };
  EXPECT_THAT(ParseJsonText(object(kMaxJsonMembers)), IsOk());
  EXPECT_THAT(ParseJsonText(object(kMaxJsonMembers + 1)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4096 members")));
}

TEST(JsonTextTest, DepthIsLimited) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_THAT(ParseJsonText(nested(kMaxJsonDepth)), IsOk());
  EXPECT_THAT(ParseJsonText(nested(kMaxJsonDepth + 1)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nested deeper")));
  EXPECT_THAT(ParseJsonText(nested(1000000)), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace ascend::cdi::cmd
