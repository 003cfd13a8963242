#include "test/bench/report.h"

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "test/sim/table.h"

namespace ascend::bench {
namespace {

bool HasGoal(const Figure& figure) { return figure.at_most || figure.at_least; }

bool IsMissed(const Figure& figure) {
  // Not `value > at_most`: what is not a number meets nothing.
  return (figure.at_most && !(figure.value <= *figure.at_most)) ||
         (figure.at_least && !(figure.value >= *figure.at_least));
}

std::string Show(double value, const std::string& unit) {
  const std::string number = value == 0 || (value >= 100 && value < 1e6)
                                 ? absl::StrFormat("%.0f", value)
                                 : absl::StrFormat("%.3g", value);
  return unit.empty() ? number : absl::StrCat(number, " ", unit);
}

std::string Goal(const Figure& figure) {
  std::string text;
  if (figure.at_least) absl::StrAppend(&text, "≥ ", Show(*figure.at_least, figure.unit));
  if (figure.at_most) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "≤ ", Show(*figure.at_most, figure.unit));
  }
  return text;
}

}  // namespace

std::string Report::Table() const {
  std::vector<std::vector<std::string>> rows = {{"FIGURE", "VALUE", "GOAL", ""}};
  for (const Figure& figure : figures_) {
    if (figure.name.empty()) continue;
    rows.push_back({figure.name, Show(figure.value, figure.unit), Goal(figure),
                    !HasGoal(figure)   ? ""
                    : IsMissed(figure) ? "missed"
                                       : "met"});
  }
  return sim::FormatTable(rows);
}

nlohmann::json Report::Json() const {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [key, text] : facts_) json[key] = text;
  for (const Figure& figure : figures_) {
    double rounded = figure.value;
    if (absl::SimpleAtod(absl::StrFormat("%.6g", figure.value), &rounded))
      json[figure.key] = rounded;
  }
  return json;
}

std::vector<std::string> Report::Missed() const {
  std::vector<std::string> keys;
  for (const Figure& figure : figures_) {
    if (IsMissed(figure)) keys.push_back(figure.key);
  }
  return keys;
}

size_t Report::goals() const { return static_cast<size_t>(absl::c_count_if(figures_, HasGoal)); }

}  // namespace ascend::bench
