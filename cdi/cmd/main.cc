// ascend-cdi: looks at CDI files as a container runtime does. This file only reads the command
// line.
#include <csignal>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "cdi/cmd/commands.h"
#include "cdi/cmd/output.h"
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

// Registries watch absolute paths only.
std::vector<std::string> Absolute(const std::vector<std::string>& directories, const Output& out) {
  std::vector<std::string> result;
  for (const std::string& directory : directories) {
    std::error_code error;
    result.push_back(std::filesystem::absolute(directory, error).lexically_normal().string());
    if (error || !std::filesystem::is_directory(result.back(), error)) {
      out.errors << "ascend-cdi: note: " << Printable(directory) << " is no directory\n";
    }
  }
  return result;
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
      ->type_name("DIR")
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
  compat->add_option("--runtime", runtime,
                     "Only this one, like containerd or \"podman 4.3\"; refused = exit code 1");

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
  directories = Absolute(directories, out);
  int code = kExitOk;
  if (list->parsed()) code = List(*Scan(directories), filter, out);
  if (show->parsed()) code = Show(*Scan(directories), names, out);
  if (validate->parsed()) code = Validate(files, strict, out);
  if (inject->parsed()) code = InjectDevices(*Scan(directories), names, library, std::cin, out);
  if (min_version->parsed()) code = PrintMinimumVersions(files, out);
  if (compat->parsed()) code = PrintCompatibility(files, runtime, out);
  if (replay->parsed()) code = Replay(files, out);
  if (monitor->parsed()) {
    BlockSignals();
    code = Monitor(directories, events, out);
  }
  if (!std::cout.flush()) {
    std::cerr << "ascend-cdi: cannot write to standard output\n";
    return kExitError;
  }
  return code;
}

}  // namespace
}  // namespace ascend::cdi::cmd

int main(int argc, char** argv) {
  try {
    return ascend::cdi::cmd::Main(argc, argv);
  } catch (const std::exception& error) {  // no memory
    std::cerr << "ascend-cdi: " << error.what() << "\n";
    return ascend::cdi::cmd::kExitError;
  }
}
