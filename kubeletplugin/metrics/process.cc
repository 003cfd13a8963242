#include "kubeletplugin/metrics/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/core/file.h"

namespace ascend::kubeletplugin {
namespace {

// Field 22 of proc(5)'s stat, counted behind the program's name: that may hold anything.
constexpr size_t kStartTimeAfterName = 19;

std::optional<double> StartTime() {
  const absl::StatusOr<std::string> stat = ReadFile("/proc/self/stat");
  const absl::StatusOr<std::string> system = ReadFile("/proc/stat", 16 << 20);
  if (!stat.ok() || !system.ok()) return std::nullopt;
  const size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields =
      absl::StrSplit(stat->substr(name_end + 1), ' ', absl::SkipEmpty());
  int64_t ticks = 0, boot = 0;
  if (fields.size() <= kStartTimeAfterName ||
      !absl::SimpleAtoi(fields[kStartTimeAfterName], &ticks)) {
    return std::nullopt;
  }
  for (absl::string_view line : absl::StrSplit(*system, '\n')) {
    if (absl::ConsumePrefix(&line, "btime ") && absl::SimpleAtoi(line, &boot)) {
      return static_cast<double>(boot) +
             static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
    }
  }
  return std::nullopt;
}

// Pages: all of the address space, then what is resident.
std::vector<double> MemoryBytes() {
  const absl::StatusOr<std::string> statm = ReadFile("/proc/self/statm");
  std::vector<double> bytes;
  if (!statm.ok()) return bytes;
  for (absl::string_view field : absl::StrSplit(*statm, ' ')) {
    int64_t pages = 0;
    if (bytes.size() == 2 || !absl::SimpleAtoi(field, &pages)) break;
    bytes.push_back(static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  }
  return bytes;
}

double CpuSeconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return absl::ToDoubleSeconds(absl::DurationFromTimeval(usage.ru_utime) +
                               absl::DurationFromTimeval(usage.ru_stime));
}

prometheus::MetricFamily One(std::string name, std::string help, prometheus::MetricType type,
                             double value) {
  prometheus::ClientMetric metric;
  if (type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  return {.name = std::move(name), .help = std::move(help), .type = type, .metric = {metric}};
}

}  // namespace

std::vector<prometheus::MetricFamily> ProcessFamilies() {
  using prometheus::MetricType;
  std::vector<prometheus::MetricFamily> families;
  families.push_back(One("process_cpu_seconds_total", "User and system CPU time spent.",
                         MetricType::Counter, CpuSeconds()));
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    families.push_back(One("process_max_fds", "Maximum number of open file descriptors.",
                           MetricType::Gauge, static_cast<double>(limit.rlim_cur)));
  }
  if (const auto fds = ListDirectory("/proc/self/fd"); fds.ok()) {
    // Without the one that lists them.
    families.push_back(One("process_open_fds", "Number of open file descriptors.",
                           MetricType::Gauge, static_cast<double>(fds->size()) - 1));
  }
  if (const std::vector<double> memory = MemoryBytes(); memory.size() == 2) {
    families.push_back(One("process_virtual_memory_bytes", "Size of the address space.",
                           MetricType::Gauge, memory[0]));
    families.push_back(One("process_resident_memory_bytes", "Resident memory size.",
                           MetricType::Gauge, memory[1]));
  }
  if (const std::optional<double> start = StartTime()) {
    families.push_back(One("process_start_time_seconds",
                           "Start time of the process since the Unix epoch.", MetricType::Gauge,
                           *start));
  }
  return families;
}

}  // namespace ascend::kubeletplugin
