// replay.
#include "cdi/replay.h"

#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "cdi/cmd/commands.h"
#include "cdi/cmd/json_text.h"
#include "cdi/cmd/output.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi::cmd {
namespace {

using Json = nlohmann::ordered_json;

// Empty if the recorded result came out.
std::vector<std::string> Differences(const absl::StatusOr<Json>& test_case) {
  if (!test_case.ok()) return {std::string(test_case.status().message())};
  absl::StatusOr<std::vector<std::string>> differences = ReplayCase(nlohmann::json(*test_case));
  if (!differences.ok()) return {std::string(differences.status().message())};
  return *std::move(differences);
}

// The case's id, or where it is if it has none.
std::string NameOf(const absl::StatusOr<Json>& test_case, const std::string& file, int number) {
  if (test_case.ok() && test_case->is_object()) {
    const auto id = test_case->find("id");
    if (id != test_case->end() && id->is_string()) return id->get<std::string>();
  }
  return absl::StrCat(file, ":", number);
}

}  // namespace

int Replay(const std::vector<std::string>& files, const Output& out) {
  int passed = 0;
  int failed = 0;
  Json failures = Json::array();
  for (const std::string& file : files) {
    std::ifstream stream(file);
    if (!stream) {
      out.errors << "ascend-cdi: cannot read " << Printable(file) << "\n";
      return kExitError;
    }
    int number = 0;
    for (std::string line; std::getline(stream, line);) {
      ++number;
      if (line.empty()) continue;
      const absl::StatusOr<Json> test_case = ParseJsonText(line);
      const std::vector<std::string> differences = Differences(test_case);
      if (differences.empty()) {
        ++passed;
        continue;
      }
      ++failed;
      const std::string name = NameOf(test_case, file, number);
      if (out.json) {
        failures.push_back({{"id", name}, {"differences", differences}});
        continue;
      }
      for (const std::string& difference : differences) {
        out.text << Printable(name) << ": " << Printable(difference) << "\n";
      }
    }
    if (stream.bad()) {
      out.errors << "ascend-cdi: cannot read " << Printable(file) << "\n";
      return kExitError;
    }
  }
  if (out.json) {
    PrintJson({{"passed", passed}, {"failed", failed}, {"failures", failures}}, out.text);
  } else {
    out.text << passed << " passed, " << failed << " failed\n";
  }
  return failed == 0 ? kExitOk : kExitNo;
}

}  // namespace ascend::cdi::cmd
