// ascend-dra: looks at the driver from a shell on the node. This file only reads the command line.
#include <exception>
#include <iostream>
#include <string>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/time/clock.h"
#include "cli/chips/commands.h"
#include "cli/claims/commands.h"
#include "cli/claims/node_files.h"
#include "cli/output.h"

namespace ascend::cli {
namespace {

// A plugin that runs carries an order out at once.
constexpr absl::Duration kOrderPatience = absl::Seconds(3);

constexpr char kFooter[] =
    "Examples:\n"
    "  ascend-dra claims list\n"
    "  ascend-dra claims show default/job-1\n"
    "  ascend-dra claims verify --json\n"
    "  ascend-dra chips list\n"
    "  ascend-dra chips isolate 3 --reason 'fan is loud'\n"
    "  kubectl -n ascend-dra-system exec POD -c plugin -- ascend-dra claims list\n"
    "\n"
    "Exit codes: 0 ok; 1 something is wrong (findings); 2 wrong usage;\n"
    "3 what was asked for is not there or cannot be read.";

int RunChips(const kubeletplugin::Paths::Options& options, bool list, bool isolate,
             kubeletplugin::ChipOrder order, const Output& out) {
  const absl::StatusOr<kubeletplugin::Paths> paths = kubeletplugin::Paths::Create(options);
  if (!paths.ok()) {
    Complain(paths.status(), out);
    return kExitUsage;
  }
  if (list) return ListChips(*paths, out);
  order.action = isolate ? kubeletplugin::ChipOrder::Action::kIsolate
                         : kubeletplugin::ChipOrder::Action::kRelease;
  order.at = absl::Now();
  return OrderChip(*paths, order, kOrderPatience, out);
}

int RunClaims(const NodeFilesOptions& options, bool list, bool verify, const std::string& claim,
              const Output& out) {
  const absl::StatusOr<NodeFiles> files = ReadNodeFiles(options);
  if (!files.ok()) {
    Complain(files.status(), out);
    return absl::IsInvalidArgument(files.status()) ? kExitUsage : kExitCannotRead;
  }
  if (list) return ListClaims(*files, out);
  return verify ? VerifyClaims(*files, out) : ShowClaim(*files, claim, out);
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Looks at the driver for Huawei Ascend NPUs on this node; changes nothing, but what "
      "chips isolate and chips release say",
      "ascend-dra");
  app.require_subcommand(1);
  app.fallthrough();  // common flags may follow the command
  app.footer(kFooter);
  app.set_version_flag("--version", ASCEND_DRA_VERSION);
  NodeFilesOptions options;
  bool json = false;
  // As in a script that adds to common ones: the last of several counts.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--kubelet-root", options.paths.kubelet_root, "The kubelet's root directory")
      ->capture_default_str();
  app.add_option("--driver-name", options.paths.driver_name, "Name of the driver")
      ->capture_default_str();
  app.add_option("--cdi-root", options.paths.cdi_root, "Where CDI files are")
      ->capture_default_str();
  app.add_option("--boot-id-file", options.boot_id_file, "Where this boot's id is read")
      ->capture_default_str();
  app.add_flag("--json", json, "Print JSON, for scripts");

  CLI::App* claims = app.add_subcommand(
      "claims",
      "Claims prepared on this node, from the driver's records: works without the driver");
  claims->require_subcommand(1);
  claims->fallthrough();
  CLI::App* list = claims->add_subcommand("list", "List the claims with their devices and state");
  std::string claim;
  CLI::App* show = claims->add_subcommand("show", "Print all that is known of a claim");
  show->add_option("CLAIM", claim, "NAMESPACE/NAME, a name that only one claim has, or a UID")
      ->required();
  CLI::App* verify = claims->add_subcommand(
      "verify", "Check records, CDI files and locks; say what is wrong and what to do");
  CLI::App* chips = app.add_subcommand("chips", "The node's chips and how they are");
  chips->require_subcommand(1);
  chips->fallthrough();
  CLI::App* list_chips = chips->add_subcommand(
      "list", "List the chips with their health; exits 1 if one is not to be used");
  kubeletplugin::ChipOrder order;
  CLI::App* isolate = chips->add_subcommand(
      "isolate", "Keep new pods away from a chip until it is released, over restarts and reboots");
  isolate->add_option("CHIP", order.physical_id, "Its physical id")
      ->required()
      ->check(CLI::NonNegativeNumber);
  isolate->add_option("--reason", order.reason, "Why; shown to whoever asks about the chip")
      ->required();
  CLI::App* release = chips->add_subcommand(
      "release", "End an isolation, by hand or for faults that came too often");
  release->add_option("CHIP", order.physical_id, "Its physical id")
      ->required()
      ->check(CLI::NonNegativeNumber);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::cerr << "ascend-dra: " << Printable(error.what()) << " (see --help)\n";
    return kExitUsage;
  }

  const Output out = {.text = std::cout, .errors = std::cerr, .json = json};
  options.now = absl::Now();
  const int code =
      chips->parsed() ? RunChips(options.paths, list_chips->parsed(), isolate->parsed(), order, out)
                      : RunClaims(options, list->parsed(), verify->parsed(), claim, out);
  if (!std::cout.flush()) {
    std::cerr << "ascend-dra: cannot write to standard output\n";
    return kExitCannotRead;
  }
  return code;
}

}  // namespace
}  // namespace ascend::cli

int main(int argc, char** argv) {
  try {
    return ascend::cli::Main(argc, argv);
  } catch (const std::exception& error) {  // no memory
    std::cerr << "ascend-dra: " << error.what() << "\n";
    return ascend::cli::kExitCannotRead;
  }
}
