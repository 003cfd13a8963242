// ascend-cdi: looks at CDI files as a container runtime does. This file only reads the command
// line.
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "cdi/cmd/commands.h"
#include "cdi/registry.h"

namespace ascend::cdi::cmd {
namespace {

constexpr char kFooter[] =
    "Exit codes: 0 yes; 1 no (an invalid file, an unknown device, a failed case);\n"
    "2 wrong usage; 3 the command could not do its work.";

// sigwait() in Monitor() needs them blocked in every thread.
void BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

int Main(int argc, char** argv) {
  CLI::App app("Looks at Container Device Interface files as a container runtime does",
               "ascend-cdi");
  app.require_subcommand(1);
  app.fallthrough();  // common flags may follow the command
  app.footer(kFooter);
  app.set_version_flag("--version", ASCEND_DRA_VERSION);
  std::vector<std::string> directories;
  bool json = false;
  app.add_option("--spec-dir", directories,
                 "Directory of CDI files; repeat it, later ones take precedence "
                 "[/etc/cdi /var/run/cdi]")
      ->take_all()
      ->allow_extra_args(false);
  app.add_flag("--json", json, "Print JSON, for scripts");

  ListFilter filter;
  CLI::App* list = app.add_subcommand("list", "List all devices and the files they come from");
  list->add_option("--vendor", filter.vendor, "Only devices of this vendor, like huawei.com");
  list->add_option("--class", filter.device_class, "Only devices of this class, like npu");

  std::vector<std::string> names;
  CLI::App* show = app.add_subcommand("show", "Print what devices do to a container");
  show->add_option("DEVICE", names, "Qualified name, like huawei.com/npu=0")->required();

  std::vector<std::string> files;
  bool strict = false;
  CLI::App* validate = app.add_subcommand("validate", "Check files by the rules of runtimes");
  validate->add_option("FILE", files, "A .json or .yaml file")->required();
  validate->add_flag("--strict", strict,
                     "Also by the specification's rules that runtimes do not enforce");

  std::string library;
  CLI::App* inject = app.add_subcommand(
      "inject", "Put devices into the OCI runtime configuration on standard input");
  inject->add_option("--device", names, "Qualified name; repeat it")
      ->required()
      ->allow_extra_args(false);
  inject->add_option("--as-library", library,
                     "Do as this release of the reference library, like v0.5.4 [v1.1.2]");

  CLI::App* min_version =
      app.add_subcommand("min-version", "Print the least cdiVersion that carries a file's content");
  min_version->add_option("FILE", files, "A .json or .yaml file")->required();

  std::string runtime;
  CLI::App* compat = app.add_subcommand("compat", "Tell which container runtimes accept a file");
  compat->add_option("FILE", files, "A .json or .yaml file")->required();
  compat->add_option("--runtime", runtime, "Only this one: containerd, cri-o, podman or docker");

  CLI::App* replay = app.add_subcommand(
      "replay", "Compare with recorded behaviour of the reference library (JSON Lines)");
  replay->add_option("FILE", files, "File of recorded cases")->required();

  int events = 0;
  CLI::App* monitor = app.add_subcommand("monitor", "Print devices as they come and go");
  monitor->add_option("--events", events, "End after so many changes [never]")
      ->check(CLI::PositiveNumber);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::cerr << "ascend-cdi: " << error.what() << " (see --help)\n";
    return kExitUsage;
  }

  const Output out = {.text = std::cout, .errors = std::cerr, .json = json};
  if (list->parsed()) return List(*Scan(directories), filter, out);
  if (show->parsed()) return Show(*Scan(directories), names, out);
  if (validate->parsed()) return Validate(files, strict, out);
  if (inject->parsed()) return InjectDevices(*Scan(directories), names, library, std::cin, out);
  if (min_version->parsed()) return PrintMinimumVersions(files, out);
  if (compat->parsed()) return PrintCompatibility(files, runtime, out);
  if (replay->parsed()) return Replay(files, out);
  BlockSignals();
  return Monitor(directories, events, out);
}

}  // namespace
}  // namespace ascend::cdi::cmd

int main(int argc, char** argv) { return ascend::cdi::cmd::Main(argc, argv); }
