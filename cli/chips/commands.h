// `ascend-dra chips ...`, apart from the command line. Each prints to `out` and returns the
// program's exit code. They work on the plugin's files, whether it runs or not.
#ifndef ASCEND_DRA_CLI_CHIPS_COMMANDS_H_
#define ASCEND_DRA_CLI_CHIPS_COMMANDS_H_

#include <string>

#include "absl/time/time.h"
#include "cli/output.h"
#include "kubeletplugin/health/chip_orders.h"
#include "kubeletplugin/paths.h"

namespace ascend::cli {

// `list`: every chip that the plugin knows of, and how it is. kExitFindings if one is not to be
// used, kExitCannotRead if the plugin has never run here.
int ListChips(const kubeletplugin::Paths& paths, const Output& out);

// `isolate`, `release`: writes the order, waits up to `patience` for a plugin to carry it out and
// says which of both it is. An order that nobody has carried out yet is no failure.
// kExitCannotRead if there is no such chip or the order cannot be written, kExitUsage for a reason
// that cannot be shown.
int OrderChip(const kubeletplugin::Paths& paths, kubeletplugin::ChipOrder order,
              absl::Duration patience, const Output& out);

}  // namespace ascend::cli

#endif  // ASCEND_DRA_CLI_CHIPS_COMMANDS_H_
