#include "test/sim/stack_flags.h"

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"

namespace ascend::sim {

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

}  // namespace ascend::sim
