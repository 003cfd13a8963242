// ascend-mock-node: makes a mock NPU node and breaks it. See README.md.
#include <cstdio>
#include <string>

#include "vnpu/dcmi/mock/commands.h"

int main(int argc, char** argv) {
  namespace mock = ascend::dcmi::mock;
  constexpr int kUsageError = 2;
  CLI::App app(
      "Makes a mock NPU node (device nodes, driver files, a description for the mock "
      "libdcmi.so) and changes it while it is in use.",
      "ascend-mock-node");
  app.set_version_flag("--version", ASCEND_DRA_VERSION);
  app.require_subcommand(1);
  mock::Commands commands;
  mock::AddNodeCommands(app, commands);
  mock::AddChipCommands(app, commands);
  mock::AddVnpuCommands(app, commands);
  mock::AddFaultCommands(app, commands);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::Error& error) {
    std::fprintf(stderr, "ascend-mock-node: %s\n", error.what());
    return kUsageError;
  }
  const absl::Status status = commands.Run();
  if (!status.ok()) {
    std::fprintf(stderr, "ascend-mock-node: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
