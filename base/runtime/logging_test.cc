#include "base/runtime/logging.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace ascend {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

class LoggingTest : public ::testing::Test {
 protected:
  ~LoggingTest() override { InitLogging({}); }

  template <typename F>
  std::string Capture(F&& write) {
    ::testing::internal::CaptureStderr();
    write();
    return ::testing::internal::GetCapturedStderr();
  }
};

TEST_F(LoggingTest, TextLineHasTimeLevelMessageAndFields) {
  const std::string line = Capture([] {
    LogInfo("claim prepared", {{"claim", "default/job"}, {"devices", 8}, {"admin", false}});
  });
  EXPECT_THAT(line, MatchesRegex("time=[0-9T:.-]+Z level=info msg=\"claim prepared\" "
                                 "claim=default/job devices=8 admin=false\n"));
}

TEST_F(LoggingTest, SilentWritesNothingUntilItEnds) {
  InitLogging({.silent = true});
  EXPECT_THAT(Capture([] { LogError("x"); }), IsEmpty());
  InitLogging({});
  EXPECT_THAT(Capture([] { LogError("x"); }), HasSubstr("msg=x"));
}

TEST_F(LoggingTest, HostileValuesStayOnOneLine) {
  const std::string line =
      Capture([] { LogWarning("x", {{"error", "a \"b\"\nc\x01"}, {"empty", ""}}); });
  EXPECT_THAT(line, EndsWith("level=warning msg=x error=\"a \\\"b\\\"\\nc\\x01\" empty=\"\"\n"));
}

TEST_F(LoggingTest, JsonLineParses) {
  InitLogging({.json = true});
  const std::string line =
      Capture([] { LogError("bad \xff", {{"path", "/a b"}, {"status", absl::OkStatus()}}); });
  const auto object = nlohmann::json::parse(line);
  EXPECT_EQ(object["level"], "error");
  EXPECT_EQ(object["path"], "/a b");
  EXPECT_EQ(object["status"], "OK");
  EXPECT_THAT(object["msg"].get<std::string>(), HasSubstr("bad"));
}

TEST_F(LoggingTest, VerbosityLimitsVerboseLines) {
  EXPECT_THAT(Capture([] { LogVerbose(2, "hidden"); }), IsEmpty());
  InitLogging({.verbosity = 2});
  EXPECT_THAT(Capture([] { LogVerbose(2, "shown"); }), HasSubstr("msg=shown"));
  EXPECT_THAT(Capture([] { LogVerbose(4, "hidden"); }), Not(HasSubstr("hidden")));
}

}  // namespace
}  // namespace ascend
