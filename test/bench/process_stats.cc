#include "test/bench/process_stats.h"

#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"

namespace ascend::bench {
namespace {

absl::Status Gone(const std::string& path) {
  return absl::UnavailableError(
      absl::StrCat(path, " cannot be read: the process has ended or belongs to another user"));
}

// False if the thread has just ended.
bool ReadThread(const std::string& directory, ThreadStats* stats) {
  std::ifstream status(JoinPath(directory, "status"));
  std::string line;
  bool any = false;
  while (std::getline(status, line)) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "Name:") {
      words >> stats->name;
    } else if (absl::EndsWith(key, "voluntary_ctxt_switches:")) {
      int64_t count = 0;
      words >> count;
      stats->switches += count;
      any = true;
    }
  }
  // Nanoseconds on a core come first.
  int64_t cpu_ns = 0;
  std::ifstream(JoinPath(directory, "schedstat")) >> cpu_ns;
  stats->cpu = absl::Nanoseconds(cpu_ns);
  return any;
}

}  // namespace

absl::StatusOr<ProcessStats> LookAt(pid_t pid) {
  const std::string root = absl::StrCat("/proc/", pid);
  ProcessStats stats;
  stats.when = absl::Now();
  const absl::StatusOr<std::vector<std::string>> files = ListDirectory(JoinPath(root, "fd"));
  if (!files.ok()) return Gone(JoinPath(root, "fd"));
  stats.open_files = static_cast<int>(files->size());
  const absl::StatusOr<std::vector<std::string>> tasks = ListDirectory(JoinPath(root, "task"));
  if (!tasks.ok()) return Gone(JoinPath(root, "task"));
  for (const std::string& task : *tasks) {
    pid_t thread = 0;
    ThreadStats thread_stats;
    if (absl::SimpleAtoi(task, &thread) &&
        ReadThread(absl::StrCat(root, "/task/", task), &thread_stats)) {
      stats.threads[thread] = thread_stats;
    }
  }
  if (stats.threads.empty()) return Gone(JoinPath(root, "task"));
  return stats;
}

Activity Between(const ProcessStats& before, const ProcessStats& after) {
  const double seconds = absl::ToDoubleSeconds(after.when - before.when);
  Activity activity;
  if (seconds <= 0) return activity;
  absl::Duration cpu;
  for (const auto& [thread, now] : after.threads) {
    ThreadStats then;
    if (const auto found = before.threads.find(thread); found != before.threads.end()) {
      then = found->second;
    }
    cpu += now.cpu - then.cpu;
    const int64_t switches = now.switches - then.switches;
    if (switches == 0) continue;
    activity.wakeups_per_second += static_cast<double>(switches) / seconds;
    activity.by_thread[now.name] += static_cast<double>(switches) / seconds;
  }
  activity.cpu_percent = 100 * absl::ToDoubleSeconds(cpu) / seconds;
  return activity;
}

}  // namespace ascend::bench
