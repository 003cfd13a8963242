// ascend-dra-sim: the driver on a mock node with a simulated API server and kubelet. This file only
// reads the command line.
#include <iostream>
#include <string>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "test/sim/cdi_files.h"
#include "test/sim/demo.h"
#include "test/sim/stack_flags.h"

namespace ascend::sim {
namespace {

constexpr int kExitUsage = 2;

int Main(int argc, char** argv) {
  CLI::App app("Runs the driver on a mock node with a simulated API server and kubelet",
               "ascend-dra-sim");
  app.require_subcommand(1);
  StackOptions demo;
  AddStackFlags(*app.add_subcommand("demo", "Show the product at work"), &demo);
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
  return RunDemo(demo);
}

}  // namespace
}  // namespace ascend::sim

int main(int argc, char** argv) { return ascend::sim::Main(argc, argv); }
