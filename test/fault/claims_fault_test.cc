// Runs the scenario under the preloaded harness once per point and kind of harm, and after each run
// checks what is left. See docs/faults.md.
//
//   ASCEND_FAULT_ALL=1              every point with every harm; without it a fixed choice
//   ASCEND_FAULT_ONLY=fail:17:EIO   this one alone, with all it says
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/testing/fake_host.h"
#include "test/sim/child_process.h"

namespace ascend::fault {
namespace {

constexpr int kWorkers = 2;
constexpr absl::Duration kLongestRun = absl::Seconds(60);
#ifdef ASCEND_FAULT_SLOW  // instrumented programs
constexpr size_t kThinning = 4;
#else
constexpr size_t kThinning = 1;
#endif
constexpr char kBoot[] = "boot-1";
constexpr char kNextBoot[] = "boot-2";

// A system call of the unharmed scenario.
struct Point {
  int number = 0;
  std::string text;  // name, kind, step and path, as the trace has it
  std::string step;
  bool first_of_step = false;
  bool changes = false, needs_room = false, writes = false, interruptible = false;
};

struct Job {
  std::string fault;
  Point point;
  bool dies = false;
  std::string boot_after = kBoot;
};

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool RunAllPoints() {
  return Variable("ASCEND_FAULT_ALL") == "1" || !Variable("ASCEND_FAULT_ONLY").empty();
}

std::vector<Point> ParseTrace(const std::string& trace) {
  std::vector<Point> points;
  for (absl::string_view line : absl::StrSplit(trace, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(line, '\t');
    Point point;
    if (words.size() != 6 || words[0] != "point" || !absl::SimpleAtoi(words[1], &point.number)) {
      ADD_FAILURE() << "not a point: " << line;
      continue;
    }
    const std::string& kind = words[3];
    point.text = absl::StrJoin(words.begin() + 2, words.end(), "\t");
    point.step = words[4];
    point.first_of_step = points.empty() || points.back().step != point.step;
    point.changes = absl::StrContains(kind, 'c');
    point.needs_room = absl::StrContains(kind, 'r');
    point.writes = absl::StrContains(kind, 'w');
    point.interruptible = absl::StrContains(kind, 'i');
    points.push_back(std::move(point));
  }
  return points;
}

std::string ProblemsIn(const std::string& log) {
  std::vector<std::string> problems;
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    if (absl::ConsumePrefix(&line, "problem\t")) problems.emplace_back(line);
  }
  return absl::StrJoin(problems, "\n  ");
}

class ClaimsFaultTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!kubeletplugin::FakeHost::CanMakeNodes()) return;
    shared_ = new Shared;
    shared_->host.InstallDriver();
    for (int i = 0; i < 8; ++i) shared_->host.Chip(i, i);
    shared_->host.Node("/dev/vdavinci180", kubeletplugin::FakeHost::kMajor, 180);
    const std::string first = CountPoints("count-1");
    shared_->points = ParseTrace(first);
    // Without this no point would mean the same in the next run.
    EXPECT_EQ(CountPoints("count-2"), first);
  }

  static void TearDownTestSuite() {
    if (shared_ == nullptr) return;
    std::cout << "fault: " << shared_->points.size() << " points, " << shared_->runs
              << " runs: " << shared_->runs - shared_->failures << " passed, " << shared_->failures
              << " failed" << std::endl;
    EXPECT_GT(shared_->runs, 0u) << "there is no such fault";
    delete shared_;
    shared_ = nullptr;
  }

  void SetUp() override {
    if (shared_ == nullptr) GTEST_SKIP() << "mknod is refused: needs root with CAP_MKNOD";
    ASSERT_GT(shared_->points.size(), 100u);
  }

  // Points with a property; outside of a full run every `stride`-th.
  template <typename Property>
  static std::vector<Point> Choose(size_t stride, Property property) {
    std::vector<Point> chosen;
    size_t index = 0;
    for (const Point& point : shared_->points) {
      if (!property(point)) continue;
      if (RunAllPoints() || index++ % (stride * kThinning) == 0) chosen.push_back(point);
    }
    return chosen;
  }
  static std::vector<Point> Choose(size_t stride) {
    return Choose(stride, [](const Point&) { return true; });
  }
  // In a full run all; else where the disk, or what has been promised, differs from the last one.
  static std::vector<Point> Boundaries() {
    return Choose(1, [](const Point& p) { return RunAllPoints() || p.changes || p.first_of_step; });
  }

  static std::vector<Job> Jobs(const std::vector<Point>& points, const std::string& harm,
                               const std::vector<std::string>& variants, bool dies,
                               const std::string& boot_after = kBoot) {
    std::vector<Job> jobs;
    size_t index = 0;
    for (const Point& point : points) {
      for (const std::string& variant : variants) {
        // Outside of a full run one variant a point, in turn.
        if (!RunAllPoints() && &variant != &variants[index % variants.size()]) continue;
        std::string fault = absl::StrCat(harm, ":", point.number);
        if (!variant.empty()) absl::StrAppend(&fault, ":", variant);
        jobs.push_back(
            {.fault = std::move(fault), .point = point, .dies = dies, .boot_after = boot_after});
      }
      ++index;
    }
    return jobs;
  }

  static void Run(std::vector<Job> jobs) {
    const std::string only = Variable("ASCEND_FAULT_ONLY");
    if (!only.empty()) {
      std::erase_if(jobs, [&](const Job& job) { return job.fault != only; });
    }
    std::atomic<size_t> next = 0;
    Mutex mutex;
    std::vector<std::string> failures;
    std::vector<std::thread> workers;
    for (int i = 0; i < kWorkers; ++i) {
      workers.emplace_back([&] {
        for (size_t index; (index = next++) < jobs.size();) {
          const std::string failure = RunOne(jobs[index]);
          if (failure.empty()) continue;
          MutexLock lock(&mutex);
          failures.push_back(absl::StrCat(
              jobs[index].fault, " (",
              absl::StrJoin(absl::StrSplit(jobs[index].point.text, '\t'), " "), ")\n  ", failure));
        }
      });
    }
    for (std::thread& worker : workers) worker.join();
    shared_->runs += jobs.size();
    shared_->failures += failures.size();
    constexpr size_t kShown = 20;
    std::sort(failures.begin(), failures.end());
    for (size_t i = 0; i < std::min(failures.size(), kShown); ++i) ADD_FAILURE() << failures[i];
    if (failures.size() > kShown) ADD_FAILURE() << failures.size() - kShown << " more";
  }

 private:
  struct Shared {
    TempDir directory;
    kubeletplugin::FakeHost host{directory.File("host")};
    std::vector<Point> points;
    size_t runs = 0, failures = 0;
  };
  static Shared* shared_;

  struct Places {
    explicit Places(const std::string& name)
        : directory(shared_->directory.File(name)),
          state(JoinPath(directory, "state")),
          answers(JoinPath(directory, "run")),
          verdict(JoinPath(directory, "check")),
          trace(JoinPath(directory, "trace")) {
      std::filesystem::create_directories(state);
    }
    ~Places() { std::filesystem::remove_all(directory); }
    const std::string directory, state, answers, verdict, trace;
  };

  static std::optional<int> Execute(const std::vector<std::string>& arguments,
                                    const std::string& log,
                                    const std::map<std::string, std::string>& environment) {
    std::vector<std::string> argv = {ASCEND_CLAIMS_RUN};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const auto child = sim::ChildProcess::Start(argv, log, environment);
    if (!child.ok()) return std::nullopt;
    const std::optional<int> end = (*child)->WaitForEnd(kLongestRun);
    if (!end) (*child)->Kill(SIGKILL);
    return end;
  }

  static std::optional<int> RunScenario(const Places& places, const std::string& fault) {
    return Execute({"run", places.state, shared_->host.root(), kBoot}, places.answers,
                   {{"LD_PRELOAD", ASCEND_FAULT_PRELOAD},
                    {"ASAN_OPTIONS", "verify_asan_link_order=0"},
                    {"ASCEND_FAULT_ROOTS", places.state},
                    {"ASCEND_FAULT_TRACE", places.trace},
                    {"ASCEND_FAULT", fault}});
  }

  static std::string CountPoints(const std::string& name) {
    const Places places(name);
    EXPECT_EQ(RunScenario(places, "count"), 0) << ReadFile(places.answers).value_or("no output");
    return ReadFile(places.trace, size_t{16} << 20).value_or("");
  }

  // What went wrong; empty if nothing.
  static std::string RunOne(const Job& job) {
    const Places places(absl::StrReplaceAll(job.fault, {{":", "-"}}));
    const std::optional<int> end = RunScenario(places, job.fault);
    const std::string answers = ReadFile(places.answers).value_or("");
    std::vector<std::string> wrong;
    const auto fail = [&](const std::string& what) { wrong.push_back(what); };
    if (!end) {
      fail("the scenario did not end");
    } else if (job.dies && !(WIFSIGNALED(*end) && WTERMSIG(*end) == SIGKILL)) {
      fail("the scenario was not killed, it " + sim::DescribeEnd(*end));
    } else if (!job.dies && *end != 0) {
      fail(absl::StrCat("the scenario ", sim::DescribeEnd(*end), "\n  ", ProblemsIn(answers)));
    }
    const std::string expected =
        absl::StrCat("fault\t", job.point.number, "\t", job.point.text, "\n");
    const std::string trace = ReadFile(places.trace).value_or("");
    if (trace != expected) fail("another call was harmed: " + trace);

    const std::optional<int> check =
        Execute({"check", places.state, shared_->host.root(), job.boot_after, places.answers},
                places.verdict, {});
    const std::string verdict = ReadFile(places.verdict).value_or("");
    if (check != 0) {
      fail(absl::StrCat("the check ", check ? sim::DescribeEnd(*check) : "did not end", "\n  ",
                        ProblemsIn(verdict)));
    }
    if (!Variable("ASCEND_FAULT_ONLY").empty()) {
      std::cout << "--- " << job.fault << "\n" << answers << "--- check\n" << verdict;
    }
    return absl::StrJoin(wrong, "\n  ");
  }
};

ClaimsFaultTest::Shared* ClaimsFaultTest::shared_ = nullptr;

// REC-10, ORD-10, ORD-15, CDI-19: killed anywhere.
TEST_F(ClaimsFaultTest, KilledBeforeACall) {
  Run(Jobs(Boundaries(), "kill-before", {""}, /*dies=*/true));
}

TEST_F(ClaimsFaultTest, KilledAfterACall) {
  Run(Jobs(Choose(3, [](const Point& p) { return RunAllPoints() || p.changes; }), "kill-after",
           {""}, /*dies=*/true));
}

TEST_F(ClaimsFaultTest, KilledInTheMiddleOfAWrite) {
  Run(Jobs(Choose(1, [](const Point& p) { return p.writes; }), "torn", {""}, /*dies=*/true));
}

// REC-10: a power cut is a reboot, too.
TEST_F(ClaimsFaultTest, PowerLost) {
  Run(Jobs(RunAllPoints() ? Boundaries()
                          : Choose(3, [](const Point& p) { return p.changes || p.first_of_step; }),
           "power", {"lost", "kept", "mixed"}, /*dies=*/true, kNextBoot));
}

// What could not be synced must be synced by the repetition, before it is answered.
TEST_F(ClaimsFaultTest, PowerLostAfterARepetition) {
  Run(Jobs(Choose(1,
                  [](const Point& p) {
                    // A CDI file that cannot be restored does not fail the start.
                    return absl::StartsWith(p.text, "fsync") && !absl::StrContains(p.text, "/cdi");
                  }),
           "unsynced", {""}, /*dies=*/true, kNextBoot));
}

// ORD-10, ORD-15: an error that names the path, and the next try works.
TEST_F(ClaimsFaultTest, AChangingCallFails) {
  Run(Jobs(Choose(2, [](const Point& p) { return p.changes; }), "fail",
           {"ENOSPC", "EIO", "EROFS", "EDQUOT"}, /*dies=*/false));
}

TEST_F(ClaimsFaultTest, AReadingCallFails) {
  Run(Jobs(Choose(5, [](const Point& p) { return !p.changes; }), "fail", {"EIO"},
           /*dies=*/false));
}

// Nobody notices.
TEST_F(ClaimsFaultTest, AWriteTakesHalf) {
  Run(Jobs(Choose(3, [](const Point& p) { return p.writes; }), "short", {""}, /*dies=*/false));
}

TEST_F(ClaimsFaultTest, ACallIsInterrupted) {
  Run(Jobs(Choose(7, [](const Point& p) { return p.interruptible; }), "interrupt", {""},
           /*dies=*/false));
}

// REC-03, ORD-10: everything that can do without room goes on, and all is well once there is some.
TEST_F(ClaimsFaultTest, TheDiskIsFull) {
  Run(Jobs(Choose(2, [](const Point& p) { return p.needs_room; }), "full", {""}, /*dies=*/false));
}

// Waits follow the monotonic clock: one that followed the wall clock would go on for a day. The
// calls after the wait for a held chip are others than in the scenario without it.
TEST_F(ClaimsFaultTest, TheWallClockJumps) {
  bool waited = false;
  Run(Jobs(Choose(4,
                  [&](const Point& p) {
                    const bool wait = p.step == "refuse thief";
                    waited |= wait && absl::StartsWith(p.text, "close") &&
                              absl::EndsWith(p.text, "/chip-0");
                    return !waited && (wait || p.number % 8 == 0);
                  }),
           "jump", {"-86400", "86400"}, /*dies=*/false));
}

}  // namespace
}  // namespace ascend::fault
