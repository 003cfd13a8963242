#include "cdi/cmd/output.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cdi/text.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi::cmd {

std::string Printable(absl::string_view text) {
  if (!IsValidUtf8(text)) return absl::CHexEscape(text);
  if (HasControlCharacter(text)) return absl::Utf8SafeCHexEscape(text);
  return std::string(text);
}

void PrintJson(const nlohmann::ordered_json& json, std::ostream& stream) {
  stream << json.dump(2, ' ', /*ensure_ascii=*/false,
                      nlohmann::ordered_json::error_handler_t::replace)
         << "\n";
}

void Complain(const Output& out, const std::string& path, const absl::Status& status) {
  const bool named = path.empty() || absl::StrContains(status.message(), path);
  out.errors << "ascend-cdi: "
             << Printable(absl::StrCat(named ? "" : path, named ? "" : ": ", status.message()))
             << "\n";
}

void PrintErrors(const Snapshot& snapshot, const Output& out) {
  for (const auto& [path, statuses] : snapshot.errors()) {
    for (const absl::Status& status : statuses) Complain(out, path, status);
  }
}

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:          // too large
    case absl::StatusCode::kFailedPrecondition:  // no regular file
      return kExitNo;
    default:
      return kExitError;
  }
}

}  // namespace ascend::cdi::cmd
