#include "test/sim/table.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"

namespace ascend::sim {
namespace {

size_t Width(const std::string& text) {
  return static_cast<size_t>(absl::c_count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string FormatTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    if (row.size() > widths.size()) widths.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      text += "  " + row[i];
      if (i + 1 < row.size()) text.append(widths[i] - Width(row[i]), ' ');
    }
    text += "\n";
  }
  return text;
}

std::string FormatMilliseconds(double milliseconds) {
  if (milliseconds >= 1000) return absl::StrFormat("%.1f s", milliseconds / 1000);
  if (milliseconds >= 10) return absl::StrFormat("%.0f ms", milliseconds);
  return absl::StrFormat("%.1f ms", milliseconds);
}

}  // namespace ascend::sim
