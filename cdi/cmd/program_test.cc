// The program itself: its command line and exit codes.
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::cdi::cmd {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Result {
  int code;
  std::string text;  // both streams
};

class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() {
    std::ofstream(dir_.File("npu.json"))
        << R"({"cdiVersion": "0.5.0", "kind": "huawei.com/npu",)"
           R"( "devices": [{"name": "0", "containerEdits": {"env": ["NPU=0"]}}]})";
  }

  // Runs "ascend-cdi <arguments>" by a shell in the directory of the files.
  Result Run(const std::string& arguments, const std::string& input = "{}") {
    std::ofstream(dir_.File("input")) << input;
    const std::string command = absl::StrCat("cd ", dir_.path(), " && ", ASCEND_CDI, " ", arguments,
                                             absl::StrContains(arguments, '<') ? "" : " <input",
                                             absl::StrContains(arguments, '>') ? "" : " 2>&1");
    Result result;
    FILE* pipe = ::popen(command.c_str(), "r");
    char chunk[4096];
    while (const size_t size = std::fread(chunk, 1, sizeof(chunk), pipe)) {
      result.text.append(chunk, size);
    }
    const int status = ::pclose(pipe);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
  }

  TempDir dir_;
};

TEST_F(ProgramTest, EveryCommandAnswers) {
  EXPECT_EQ(Run("list --spec-dir .").code, 0);
  EXPECT_EQ(Run("show huawei.com/npu=0 --spec-dir .").code, 0);
  EXPECT_EQ(Run("validate npu.json").code, 0);
  EXPECT_EQ(Run("min-version npu.json").text, "0.5.0\n");
  EXPECT_EQ(Run("compat npu.json").code, 0);
  EXPECT_EQ(Run("compat --runtime 'podman 4.1' npu.json").code, 1);
  EXPECT_EQ(Run("compat --runtime 'podman 4.3' npu.json").code, 0);
  EXPECT_THAT(Run("inject --device huawei.com/npu=0 --spec-dir .").text, HasSubstr("NPU=0"));
}

TEST_F(ProgramTest, WrongUsageIsTwo) {
  EXPECT_EQ(Run("").code, 2);
  EXPECT_EQ(Run("frobnicate").code, 2);
  EXPECT_EQ(Run("validate").code, 2);
  EXPECT_EQ(Run("inject --device a --as-library v9.9.9").code, 2);
  EXPECT_EQ(Run("compat --runtime lxd npu.json").code, 2);
  EXPECT_EQ(Run("--help").code, 0);
  EXPECT_EQ(Run("--version").code, 0);
}

TEST_F(ProgramTest, WhatCannotBeLookedAtIsThree) {
  EXPECT_EQ(Run("validate none.json").code, 3);
  EXPECT_EQ(Run("compat none.json").code, 3);
  EXPECT_EQ(Run("replay none.jsonl").code, 3);
  EXPECT_EQ(Run("inject --device huawei.com/npu=0 --spec-dir . <.").code, 3);
}

TEST_F(ProgramTest, LostOutputIsNoSuccess) {
  EXPECT_EQ(Run("list --spec-dir . >/dev/full 2>&1").code, 3);
  EXPECT_EQ(Run("inject --device huawei.com/npu=0 --spec-dir . >/dev/full 2>&1").code, 3);
  EXPECT_EQ(Run("monitor --spec-dir . >/dev/full 2>&1").code, 3);
}

TEST_F(ProgramTest, HostileInputIsAnAnswer) {
  const std::string deep = absl::StrCat(std::string(100000, '['), std::string(100000, ']'));
  const Result result = Run("inject --device huawei.com/npu=0 --spec-dir .", deep);
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.text, HasSubstr("nested deeper"));
  EXPECT_EQ(Run("inject --device huawei.com/npu=0 --spec-dir . </dev/zero").code, 1);
}

TEST_F(ProgramTest, NamesReachNoTerminalAsTheyAre) {
  std::ofstream(dir_.File("a\x1b]0;title\a\n.json")) << "{";
  std::ofstream(dir_.File("\xff.json")) << "{";
  const Result human = Run("list --spec-dir .");
  EXPECT_EQ(human.code, 0);
  EXPECT_EQ(human.text.find('\x1b'), std::string::npos);
  EXPECT_THAT(human.text, HasSubstr("\\xff.json"));
  EXPECT_EQ(Run("list --json --spec-dir .").code, 0);
}

TEST_F(ProgramTest, AMissingDirectoryIsNamed) {
  EXPECT_THAT(Run("list --spec-dir missing").text, HasSubstr("missing is no directory"));
}

TEST_F(ProgramTest, OldReleasesDoNotLoadNewerFiles) {
  EXPECT_EQ(Run("inject --device huawei.com/npu=0 --spec-dir . --as-library v0.5.4").code, 0);
  const Result result = Run("inject --device huawei.com/npu=0 --spec-dir . --as-library v0.4.0");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.text, HasSubstr("knows no cdiVersion 0.5.0"));
}

TEST_F(ProgramTest, MonitorPrintsWhatIsThereAndWhatChanges) {
  // The second file is written once the first device has been printed.
  const Result result = Run(
      "monitor --spec-dir . --events 1 2>&1 </dev/null | while read -r line; do echo \"$line\";"
      " [ -e second.json ] || sed s/\\\"0\\\"/\\\"1\\\"/ npu.json >t && mv t second.json; done");
  EXPECT_THAT(result.text, StartsWith("present huawei.com/npu=0\nadded huawei.com/npu=1\n"));
}

}  // namespace
}  // namespace ascend::cdi::cmd
