#include "test/sim/child_process.h"

#include <signal.h>

#include <thread>

#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::sim {
namespace {

std::unique_ptr<ChildProcess> Shell(const TempDir& dir, const std::string& script) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> child =
      ChildProcess::Start({"/bin/sh", "-c", script}, dir.File("log"), {{"WORD", "hello"}});
  EXPECT_THAT(child.status(), IsOk());
  return *std::move(child);
}

TEST(ChildProcess, OutputAndExitCode) {
  TempDir dir;
  const auto child = Shell(dir, "echo $WORD; echo bad >&2; exit 3");
  const std::optional<int> end = child->WaitForEnd(absl::Seconds(10));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(DescribeEnd(*end), "ended with exit code 3");
  EXPECT_EQ(child->log(), "hello\nbad\n");
  EXPECT_FALSE(child->running());
  child->Kill(SIGKILL);  // nobody left to hit
}

TEST(ChildProcess, TerminationIsForcedInTheEnd) {
  TempDir dir;
  const auto willing = Shell(dir, "exec sleep 1000");
  EXPECT_TRUE(willing->running());
  // There is none to read while exec replaces it.
  absl::StatusOr<ProcessMemory> memory = willing->Memory();
  for (; !memory.ok(); memory = willing->Memory()) std::this_thread::yield();
  EXPECT_GE(memory->rss_kib, memory->anonymous_kib);
  EXPECT_EQ(DescribeEnd(willing->Terminate()), "was ended by signal 15");

  const auto stubborn = Shell(dir, "trap '' TERM; echo ready; exec sleep 1000");
  while (stubborn->log().find("ready") == std::string::npos) std::this_thread::yield();
  EXPECT_EQ(DescribeEnd(stubborn->Terminate(absl::Milliseconds(50))), "was ended by signal 9");
}

TEST(ChildProcess, MissingProgram) {
  TempDir dir;
  EXPECT_THAT(ChildProcess::Start({dir.File("none")}, dir.File("log")),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace ascend::sim
