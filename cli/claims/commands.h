// `ascend-dra claims ...`, apart from the command line. Each prints to `out` and returns the
// program's exit code.
#ifndef ASCEND_DRA_CLI_CLAIMS_COMMANDS_H_
#define ASCEND_DRA_CLI_CLAIMS_COMMANDS_H_

#include <string>

#include "cli/claims/node_files.h"
#include "cli/output.h"

namespace ascend::cli {

// `list`: every record. For one that cannot be read, the chips that are withheld because of it.
int ListClaims(const NodeFiles& files, const Output& out);

// `show`: all that is known of a claim, given as UID, "namespace/name", or a name that only one
// claim has. kExitCannotRead if there is no such record, kExitFindings if it cannot be read.
int ShowClaim(const NodeFiles& files, const std::string& claim, const Output& out);

// `verify`: what is wrong and what to do about it; kExitFindings if anything is.
int VerifyClaims(const NodeFiles& files, const Output& out);

}  // namespace ascend::cli

#endif  // ASCEND_DRA_CLI_CLAIMS_COMMANDS_H_
