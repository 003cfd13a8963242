// How the commands print: nothing that comes from a file or a name reaches a terminal as it is.
#ifndef ASCEND_DRA_CLI_OUTPUT_H_
#define ASCEND_DRA_CLI_OUTPUT_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

namespace ascend::cli {

// The program's exit codes, the same for every command.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFindings = 1;  // the command did its work and found something wrong
inline constexpr int kExitUsage = 2;
inline constexpr int kExitCannotRead = 3;  // what was asked for is not there or cannot be read

struct Output {
  std::ostream& text;
  std::ostream& errors;  // for people, never for scripts
  bool json = false;
};

// The text with control characters, and all of it if it is not UTF-8, escaped as in C.
std::string Printable(absl::string_view text);

// Indented, a line end behind it. Only ASCII: everything else is escaped, bytes that are not UTF-8
// are replaced.
void PrintJson(const nlohmann::ordered_json& json, const Output& out);

// Columns as wide as their widest cell, two spaces between them. Every row has as many cells as the
// header.
void PrintTable(const std::vector<std::string>& header,
                const std::vector<std::vector<std::string>>& rows, const Output& out);

// "ascend-dra: <message>"
void Complain(const absl::Status& status, const Output& out);

}  // namespace ascend::cli

#endif  // ASCEND_DRA_CLI_OUTPUT_H_
