// The figures of a run: a table with goals for people, flat JSON for programs.
#ifndef ASCEND_DRA_TEST_BENCH_REPORT_H_
#define ASCEND_DRA_TEST_BENCH_REPORT_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace ascend::bench {

struct Figure {
  std::string key;   // in the JSON
  std::string name;  // in the table; empty = not shown there
  double value = 0;
  std::string unit;
  std::optional<double> at_most, at_least;  // the goal
};

class Report {
 public:
  void Add(Figure figure) { figures_.push_back(std::move(figure)); }
  // A fact that is text: the machine, a file system.
  void AddFact(std::string key, std::string text) {
    facts_.emplace_back(std::move(key), std::move(text));
  }

  // Named figures in the order of Add, with goal and "met" or "missed".
  std::string Table() const;
  // {"<key>": value, ...}, all on one level. Figures are rounded to six significant digits.
  nlohmann::json Json() const;
  // Keys of the figures whose goal is missed.
  std::vector<std::string> Missed() const;
  size_t goals() const;

 private:
  std::vector<Figure> figures_;
  std::vector<std::pair<std::string, std::string>> facts_;
};

}  // namespace ascend::bench

#endif  // ASCEND_DRA_TEST_BENCH_REPORT_H_
