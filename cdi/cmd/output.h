// How the commands print: nothing that comes from a file or a name reaches a terminal or a JSON
// text as it is.
#ifndef ASCEND_DRA_CDI_CMD_OUTPUT_H_
#define ASCEND_DRA_CDI_CMD_OUTPUT_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cdi/cmd/commands.h"
#include "cdi/registry.h"
#include "nlohmann/json_fwd.hpp"

namespace ascend::cdi::cmd {

// The text with control characters, and all of it if it is not UTF-8, escaped as in C.
std::string Printable(absl::string_view text);

// Prints indented JSON and a line end. Invalid UTF-8 in strings is replaced.
void PrintJson(const nlohmann::ordered_json& json, std::ostream& stream);

// "ascend-cdi: <path>: <message>", with the path only once.
void Complain(const Output& out, const std::string& path, const absl::Status& status);

// What is wrong with files and directories of the snapshot, a line each.
void PrintErrors(const Snapshot& snapshot, const Output& out);

// kExitNo for a file that is wrong, kExitError for one that could not be looked at.
int ExitCodeOf(const absl::Status& status);

}  // namespace ascend::cdi::cmd

#endif  // ASCEND_DRA_CDI_CMD_OUTPUT_H_
