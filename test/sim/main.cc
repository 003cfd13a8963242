// ascend-dra-sim: the driver on a mock node with a simulated API server and kubelet. This file only
// reads the command line.
#include <iostream>
#include <string>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "test/sim/cdi_files.h"
#include "test/sim/demo.h"
#include "test/sim/measure.h"

namespace ascend::sim {
namespace {

constexpr int kExitUsage = 2;

void AddStackFlags(CLI::App& app, StackOptions* options) {
  app.add_option("--bin-dir", options->bin_dirs,
                 "Where the driver's programs are; repeat it for several directories")
      ->required();
  app.add_option("--mock-lib", options->mock_library,
                 "The mock libdcmi.so (default: ../lib/ascend-dra/mock of a --bin-dir)");
  app.add_option("--mock-nodes-dir", options->mock_nodes_dir,
                 "Descriptions of mock nodes (default: those of ascend-mock-node)");
  app.add_option("--mock-node", options->mock_node, "The node to be")->capture_default_str();
  app.add_option("--node-name", options->node_name, "Its name")->capture_default_str();
  app.add_option("--work-dir", options->work_dir,
                 "Where the files go, on the file system that is to be measured")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  app.add_option("--plugin-flag", options->plugin_flags,
                 "A further flag for ascend-dra-kubeletplugin, as --plugin-flag=--v=4");
}

int Main(int argc, char** argv) {
  CLI::App app("Runs the driver on a mock node with a simulated API server and kubelet",
               "ascend-dra-sim");
  app.require_subcommand(1);
  MeasureOptions measure;
  StackOptions demo;
  CLI::App* demo_command = app.add_subcommand("demo", "Show the product at work");
  AddStackFlags(*demo_command, &demo);
  CLI::App* measure_command =
      app.add_subcommand("measure", "Time of start, Prepare and Unprepare, and memory");
  AddStackFlags(*measure_command, &measure.stack);
  measure_command->add_option("--starts", measure.starts, "Starts of the driver")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  measure_command->add_option("--cycles", measure.cycles, "Prepares and Unprepares")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  StackOptions cdi;
  std::string cdi_directory;
  CLI::App* cdi_command = app.add_subcommand(
      "cdi-files", "Write the CDI files of a claim for one device and of one for all others");
  AddStackFlags(*cdi_command, &cdi);
  cdi_command->add_option("--out", cdi_directory, "Where they go")
      ->check(CLI::ExistingDirectory)
      ->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::cerr << "ascend-dra-sim: " << error.what() << " (see --help)\n";
    return kExitUsage;
  }
  CleanUpOnSignals();
  if (cdi_command->parsed()) return WriteCdiFiles(cdi, cdi_directory);
  return demo_command->parsed() ? RunDemo(demo) : RunMeasure(measure);
}

}  // namespace
}  // namespace ascend::sim

int main(int argc, char** argv) { return ascend::sim::Main(argc, argv); }
