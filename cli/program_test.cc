// The program itself: its command line and exit codes.
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/claims/test_node.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace ascend::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Result {
  int code;
  std::string text;  // both streams
};

class ProgramTest : public ::testing::Test {
 protected:
  // By a shell; `arguments` go behind the node's directories.
  Result Run(const std::string& arguments) const {
    return RunAlone(absl::StrCat("--kubelet-root ", node_.root(), "/kubelet --cdi-root ",
                                 node_.root(), "/cdi --boot-id-file ", node_.root(), "/boot_id ",
                                 arguments));
  }
  static Result RunAlone(const std::string& arguments) {
    Result result;
    FILE* pipe = ::popen(absl::StrCat(ASCEND_DRA_PATH, " ", arguments, " 2>&1").c_str(), "r");
    char chunk[4096];
    while (const size_t size = std::fread(chunk, 1, sizeof(chunk), pipe)) {
      result.text.append(chunk, size);
    }
    const int status = ::pclose(pipe);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
  }

  TestNode node_;
};

TEST_F(ProgramTest, EveryCommandAnswers) {
  node_.Prepare(TestNode::Record("a", {0}));
  Result result = Run("claims list");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.text, HasSubstr("default/a"));
  EXPECT_EQ(Run("claims show default/a").code, 0);
  result = Run("claims verify");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.text, "1 record, 0 findings\n");
  // Common flags may follow.
  result = Run("claims list --json");
  EXPECT_EQ(nlohmann::json::parse(result.text)[0]["uid"], "uid-a");
}

TEST_F(ProgramTest, FindingsAreOne) {
  node_.WriteRecord(TestNode::Record("a", {0}));
  EXPECT_EQ(Run("claims list").code, 0);
  EXPECT_EQ(Run("claims verify").code, 1);
  EXPECT_EQ(Run("claims verify --json").code, 1);
}

TEST_F(ProgramTest, WrongUsageIsTwo) {
  for (const char* arguments :
       {"", "claims", "frobnicate", "claims frobnicate", "claims show", "chips", "chips isolate 3",
        "chips isolate three --reason x", "chips release -1",
        "chips list --driver-name 'Not A Name'", "claims list --no-such-flag",
        "claims list surplus", "claims list --driver-name 'Not A Name'",
        "claims list --kubelet-root relative"}) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 2) << arguments << ": " << result.text;
    EXPECT_THAT(result.text, StartsWith("ascend-dra: ")) << arguments;
  }
}

TEST_F(ProgramTest, WhatCannotBeReadIsThree) {
  EXPECT_EQ(Run("claims show nobody").code, 3);
  const Result result = Run("claims list --kubelet-root /nonexistent");
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.text, HasSubstr("/nonexistent/plugins/npu.huawei.com/claims"));
  node_.Prepare(TestNode::Record("a", {0}));
  EXPECT_EQ(Run("claims list >/dev/full").code, 3);
}

TEST_F(ProgramTest, HelpHasExamplesAndExitCodes) {
  const Result result = RunAlone("--help");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.text, AllOf(HasSubstr("ascend-dra claims show default/job-1"),
                                 HasSubstr("Exit codes: 0 ok"), HasSubstr("claims")));
  EXPECT_THAT(RunAlone("claims --help").text,
              AllOf(HasSubstr("list"), HasSubstr("show"), HasSubstr("verify")));
  EXPECT_EQ(RunAlone("--version").code, 0);
}

}  // namespace
}  // namespace ascend::cli
