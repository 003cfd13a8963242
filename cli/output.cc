#include "cli/output.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "cdi/text.h"
#include "nlohmann/json.hpp"

namespace ascend::cli {
namespace {

size_t Characters(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // not inside of a UTF-8 character
  });
}

}  // namespace

std::string Printable(absl::string_view text) {
  if (!cdi::IsValidUtf8(text)) return absl::CHexEscape(text);
  if (!cdi::HasControlCharacter(text)) return std::string(text);
  std::string escaped;
  while (!text.empty()) {
    char32_t character = 0;
    const size_t length = cdi::DecodeUtf8(text, &character);
    const absl::string_view bytes = text.substr(0, length);
    // Also those above U+0080, which some terminals obey.
    absl::StrAppend(&escaped, cdi::IsControlCharacter(character) ? absl::CHexEscape(bytes)
                                                                 : std::string(bytes));
    text.remove_prefix(length);
  }
  return escaped;
}

void PrintJson(const nlohmann::ordered_json& json, const Output& out) {
  out.text << json.dump(2, ' ', /*ensure_ascii=*/true,
                        nlohmann::ordered_json::error_handler_t::replace)
           << "\n";
}

void PrintTable(const std::vector<std::string>& header,
                const std::vector<std::vector<std::string>>& rows, const Output& out) {
  std::vector<std::vector<std::string>> lines = {header};
  lines.insert(lines.end(), rows.begin(), rows.end());
  std::vector<size_t> widths(header.size(), 0);
  for (std::vector<std::string>& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      line[i] = line[i].empty() ? "-" : Printable(line[i]);
      widths[i] = std::max(widths[i], Characters(line[i]));
    }
  }
  for (const std::vector<std::string>& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      out.text << line[i];
      if (i + 1 == line.size()) continue;
      out.text << std::string(widths[i] + 2 - Characters(line[i]), ' ');
    }
    out.text << "\n";
  }
}

void Complain(const absl::Status& status, const Output& out) {
  out.errors << "ascend-dra: " << Printable(status.message()) << "\n";
}

}  // namespace ascend::cli
