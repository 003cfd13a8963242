// Measures the CDI library. `--write-inputs=DIR` writes what it works on there and exits, so that
// the reference library can be measured on the same; all other options are Google Benchmark's.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/core/file.h"
#include "base/core/unique_fd.h"
#include "benchmark/benchmark.h"
#include "cdi/bench/inputs.h"
#include "cdi/injector.h"
#include "cdi/json.h"
#include "cdi/registry.h"
#include "cdi/scanner.h"
#include "cdi/spec_file.h"
#include "cdi/store.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi {
namespace {

// A failure here makes every number worthless.
template <typename T>
T Must(absl::StatusOr<T> result) {
  if (!result.ok()) {
    std::cerr << result.status() << "\n";
    std::exit(1);
  }
  return *std::move(result);
}

void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << status << "\n";
  std::exit(1);
}

// A directory of this run below `parent`.
class WorkDirectory {
 public:
  explicit WorkDirectory(const std::string& parent) {
    path_ = JoinPath(parent, "cdi-bench-XXXXXX");
    if (::mkdtemp(path_.data()) == nullptr) {
      std::perror(path_.c_str());
      std::exit(1);
    }
  }
  ~WorkDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr char kTmpfs[] = "/dev/shm";
std::string Disk() { return std::filesystem::temp_directory_path().string(); }

void ParseMemory(benchmark::State& state) {
  const std::string text = Must(WriteJson(ClaimSpec()));
  for (auto unused : state) benchmark::DoNotOptimize(Must(ReadJson(text)));
  state.SetBytesProcessed(static_cast<int64_t>(text.size()) * state.iterations());
}
BENCHMARK(ParseMemory)->Name("parse_memory")->Unit(benchmark::kMicrosecond);

void ParseFile(benchmark::State& state) {
  const WorkDirectory work(Disk());
  const std::string path = JoinPath(work.path(), "claim.json");
  Must(WriteFileAtomically(path, Must(WriteJson(ClaimSpec())), {.mode = 0644, .durable = false}));
  for (auto unused : state) benchmark::DoNotOptimize(Must(ReadSpecFile(path)));
}
BENCHMARK(ParseFile)->Name("parse_file")->Unit(benchmark::kMicrosecond);

void Format(benchmark::State& state) {
  const Spec spec = ClaimSpec();
  for (auto unused : state) benchmark::DoNotOptimize(Must(WriteJson(spec)));
}
BENCHMARK(Format)->Name("format_and_check")->Unit(benchmark::kMicrosecond);

void ScanAll(benchmark::State& state) {
  const WorkDirectory work(Disk());
  Must(WriteScannedFiles(work.path()));
  for (auto unused : state) {
    const auto snapshot = Scan({work.path()});
    if (snapshot->devices().size() != kScannedFiles) state.SkipWithError("devices are missing");
  }
}
BENCHMARK(ScanAll)->Name("scan")->Unit(benchmark::kMillisecond);

// After one of the files was replaced, as when a claim comes.
void Refresh(benchmark::State& state) {
  const WorkDirectory work(Disk());
  Must(WriteScannedFiles(work.path()));
  const std::string text = Must(WriteJson(ScannedSpec(kScannedFiles)));
  // What a registry uses. Files that were written a moment ago are not trusted to show a change in
  // their times, and by this clock the moment is long over.
  Scanner scanner({work.path()}, [] {
    timespec now;
    ::clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec += 60;
    return now;
  });
  scanner.Scan();
  for (auto unused : state) {
    Must(WriteFileAtomically(JoinPath(work.path(), "new.json"), text,
                             {.mode = 0644, .durable = false}));
    const auto start = std::chrono::steady_clock::now();
    const auto snapshot = scanner.Scan();
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    if (snapshot->devices().size() != kScannedFiles + 1) state.SkipWithError("devices are missing");
  }
}
BENCHMARK(Refresh)->Name("refresh")->UseManualTime()->Unit(benchmark::kMillisecond);

// A snapshot that resolves the devices of the claim among many others.
std::shared_ptr<const Snapshot> ClaimSnapshot() {
  const WorkDirectory work(Disk());
  Must(WriteInputs(work.path()));
  const std::string claim = JoinPath(work.path(), "claim");
  Must(MakeDirectories(claim));
  std::filesystem::rename(JoinPath(work.path(), "claim.json"), JoinPath(claim, "claim.json"));
  return Scan({claim, JoinPath(work.path(), "scan")});
}

// Into configurations that were parsed before, many at a time, as the reference's benchmark does: a
// copy that was made just now would still be in the processor's cache.
void InjectParsed(benchmark::State& state) {
  constexpr size_t kBatch = 100;
  const auto snapshot = ClaimSnapshot();
  const std::vector<std::string> names = ClaimDevices();
  const std::string text = Must(ReadConfig());
  std::vector<OciConfig> configs;
  size_t next = 0;
  for (auto unused : state) {
    if (next == configs.size()) {
      configs.clear();
      while (configs.size() < kBatch) configs.push_back(OciConfig::parse(text));
      next = 0;
    }
    OciConfig& config = configs[next++];
    const auto start = std::chrono::steady_clock::now();
    Must(Inject(*snapshot, names, config));
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
}
BENCHMARK(InjectParsed)->Name("inject")->UseManualTime()->Unit(benchmark::kMicrosecond);

void InjectText(benchmark::State& state) {
  const auto snapshot = ClaimSnapshot();
  const std::vector<std::string> names = ClaimDevices();
  const std::string text = Must(ReadConfig());
  for (auto unused : state) {
    OciConfig config = OciConfig::parse(text);
    Must(Inject(*snapshot, names, config));
    benchmark::DoNotOptimize(config.dump());
  }
}
BENCHMARK(InjectText)->Name("inject_json")->Unit(benchmark::kMicrosecond);

void StoreWrite(benchmark::State& state, const std::string& parent, bool durable) {
  const WorkDirectory work(parent);
  const Store store({.directory = work.path()});
  const Spec spec = ClaimSpec();
  for (auto unused : state) {
    Must(store.Write("claim.json", spec, {.rewrite_identical = true, .durable = durable}));
  }
}

// The least that any writer of whole files has to do: what the file system itself takes.
void RawWrite(benchmark::State& state, const std::string& parent, bool durable) {
  const WorkDirectory work(parent);
  const std::string text = Must(WriteJson(ClaimSpec()));
  const std::string temp = JoinPath(work.path(), ".claim.tmp");
  const std::string path = JoinPath(work.path(), "claim.json");
  const UniqueFd directory(::open(work.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (auto unused : state) {
    const UniqueFd fd(::open(temp.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    bool ok = ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ok = ok && (!durable || ::fsync(fd.get()) == 0);
    ok = ok && ::rename(temp.c_str(), path.c_str()) == 0;
    ok = ok && (!durable || ::fsync(directory.get()) == 0);
    if (!ok) state.SkipWithError("a system call failed");
  }
}

void RawFsync(benchmark::State& state) {
  const WorkDirectory work(Disk());
  const std::string text = Must(WriteJson(ClaimSpec()));
  const UniqueFd fd(
      ::open(JoinPath(work.path(), "file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  for (auto unused : state) {
    const bool ok =
        ::pwrite(fd.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
        ::fsync(fd.get()) == 0;
    if (!ok) state.SkipWithError("a system call failed");
  }
}

void RegisterWrites() {
  const auto add = [](const char* name, auto function, const std::string& parent, bool durable) {
    benchmark::RegisterBenchmark(name, function, parent, durable)
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  };
  if (::access(kTmpfs, W_OK) == 0) {
    add("write_tmpfs", StoreWrite, kTmpfs, false);
    add("raw_write_rename_tmpfs", RawWrite, kTmpfs, false);
  }
  add("write_disk", StoreWrite, Disk(), false);
  add("raw_write_rename_disk", RawWrite, Disk(), false);
  add("write_disk_durable", StoreWrite, Disk(), true);
  add("raw_write_fsync_rename_fsync_disk", RawWrite, Disk(), true);
  benchmark::RegisterBenchmark("raw_fsync_disk", RawFsync)
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace
}  // namespace ascend::cdi

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view directory = argv[i];
    if (!absl::ConsumePrefix(&directory, "--write-inputs=")) continue;
    ascend::cdi::Must(ascend::cdi::WriteInputs(std::string(directory)));
    return 0;
  }
  ascend::cdi::RegisterWrites();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
