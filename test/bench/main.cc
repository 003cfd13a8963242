// ascend-dra-bench: the driver's times on a mock node. This file only reads the command line.
#include <unistd.h>

#include <iostream>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "test/bench/driver_bench.h"
#include "test/bench/machine.h"
#include "test/sim/stack_flags.h"

namespace ascend::bench {
namespace {

constexpr int kExitUsage = 2;
constexpr char kMemoryDirectory[] = "/dev/shm";
// On a disk, unlike /tmp on many machines, and quiet: the driver watches the way to its
// directories, and whatever comes and goes beside them wakes it.
constexpr char kDiskDirectory[] = "/var/tmp";

// Nodes have /var/run in memory.
std::string DefaultCdiWorkDir() {
  const absl::StatusOr<std::string> type = FileSystemType(kMemoryDirectory);
  const bool usable = type.ok() && *type == "tmpfs" && ::access(kMemoryDirectory, W_OK) == 0;
  return usable ? kMemoryDirectory : "";
}

int Main(int argc, char** argv) {
  CLI::App app("Times the driver on a mock node beside what no driver can be faster than",
               "ascend-dra-bench");
  BenchOptions options;
  options.stack.mock_node = "16x910B2C";
  if (::access(kDiskDirectory, W_OK) == 0) options.stack.work_dir = kDiskDirectory;
  options.stack.cdi_work_dir = DefaultCdiWorkDir();
  options.stack.api_server.token = "bench";
  sim::AddStackFlags(app, &options.stack);
  app.add_option("--cdi-work-dir", options.stack.cdi_work_dir,
                 "Where the CDI files go (default: in memory, as on a node)");
  app.add_option("--starts", options.starts, "Starts of the driver")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--cycles", options.cycles, "Prepares and Unprepares of one chip by one caller")
      ->check(CLI::Range(10, 1000000))
      ->capture_default_str();
  app.add_option("--claims", options.claims, "Claims between two looks at the memory")
      ->check(CLI::Range(16, 1000000))
      ->capture_default_str();
  int idle_seconds = 10;
  app.add_option("--idle-seconds", idle_seconds, "How long the idle processes are watched")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  app.add_option("--results", options.results, "JSON file for the figures");
  app.add_flag("--check", options.check, "Exit with 1 if a goal is missed");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::cerr << "ascend-dra-bench: " << error.what() << " (see --help)\n";
    return kExitUsage;
  }
  options.idle = absl::Seconds(idle_seconds);
  sim::CleanUpOnSignals();
  return RunBench(options);
}

}  // namespace
}  // namespace ascend::bench

int main(int argc, char** argv) { return ascend::bench::Main(argc, argv); }
