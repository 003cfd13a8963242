// replay.
#include "cdi/replay.h"

#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "cdi/cmd/commands.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi::cmd {
namespace {

using Json = nlohmann::ordered_json;

// Empty if the recorded result came out.
std::vector<std::string> Differences(const nlohmann::json& test_case) {
  if (test_case.is_discarded()) return {"not JSON"};
  absl::StatusOr<std::vector<std::string>> differences = ReplayCase(test_case);
  if (!differences.ok()) return {std::string(differences.status().message())};
  return *std::move(differences);
}

// The case's id, or where it is if it has none.
std::string NameOf(const nlohmann::json& test_case, const std::string& file, int number) {
  if (test_case.is_object() && test_case.contains("id") && test_case["id"].is_string()) {
    return test_case["id"];
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
      out.errors << "ascend-cdi: cannot read " << file << "\n";
      return kExitError;
    }
    int number = 0;
    for (std::string line; std::getline(stream, line);) {
      ++number;
      if (line.empty()) continue;
      const auto test_case = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
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
        out.text << name << ": " << difference << "\n";
      }
    }
    if (stream.bad()) {
      out.errors << "ascend-cdi: cannot read " << file << "\n";
      return kExitError;
    }
  }
  if (out.json) {
    out.text << Json{{"passed", passed}, {"failed", failed}, {"failures", failures}}.dump(
                    2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace)
             << "\n";
  } else {
    out.text << passed << " passed, " << failed << " failed\n";
  }
  return failed == 0 ? kExitOk : kExitNo;
}

}  // namespace ascend::cdi::cmd
