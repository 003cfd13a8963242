// Replays the recorded injections of the reference library, for every version that was recorded.
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/status_matchers.h"
#include "cdi/replay.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi {
namespace {

using Json = nlohmann::json;
using ::testing::IsEmpty;

const char* const kVersions[] = {"v0.5.4", "v0.6.2",  "v0.7.2", "v0.8.1", "v1.0.1",
                                 "v1.1.0", "05ae4b5", "v1.1.1", "v1.1.2"};

std::vector<Json> Load() {
  std::ifstream stream(absl::StrCat(CDI_TESTDATA, "/inject.jsonl"));
  EXPECT_TRUE(stream.good());
  std::vector<Json> cases;
  for (std::string line; std::getline(stream, line);) cases.push_back(Json::parse(line));
  EXPECT_EQ(cases.size(), 31u);
  return cases;
}

TEST(InjectVectorsTest, Newest) {
  for (const Json& test : Load()) {
    SCOPED_TRACE(test["title"].get<std::string>());
    EXPECT_THAT(ReplayCase(test), IsOkAndHolds(IsEmpty()));
  }
}

TEST(InjectVectorsTest, EveryRecordedVersion) {
  int replayed = 0;
  std::map<std::string, std::set<std::string>> not_loaded;  // versions by case
  for (const Json& test : Load()) {
    const std::string title = test["title"];
    for (const char* version : kVersions) {
      SCOPED_TRACE(absl::StrCat(title, ", ", version));
      const auto differences = ReplayCase(test, {.version = version});
      if (absl::IsUnimplemented(differences.status())) {
        not_loaded[title].insert(version);
        continue;
      }
      EXPECT_THAT(differences, IsOkAndHolds(IsEmpty()));
      ++replayed;
    }
  }
  // Fields of newer specs: these versions refuse the file, which is no matter of the injector.
  const std::map<std::string, std::set<std::string>> expected = {
      {"inj-rdt-last-wins", {"v0.5.4", "v0.6.2"}},
      {"inj-net", {"v0.5.4", "v0.6.2", "v0.7.2", "v0.8.1", "v1.0.1"}}};
  EXPECT_EQ(not_loaded, expected);
  EXPECT_EQ(replayed, 31 * 9 - 7);
}

// The switches do something: without them, no older result comes out.
TEST(InjectVectorsTest, OlderVersionsDiffer) {
  int differing = 0;
  for (Json test : Load()) {
    for (const std::string& version : RecordedVersions(test)) {
      SCOPED_TRACE(absl::StrCat(test["title"].get<std::string>(), ", ", version));
      for (const Json& entry : test["byVersion"]) {
        const auto versions = entry["versions"].get<std::set<std::string>>();
        if (versions.count(version) == 0) continue;
        Json as_newest = test;
        as_newest["expect"] = entry["expect"];
        EXPECT_THAT(ReplayCase(as_newest), IsOkAndHolds(::testing::Not(IsEmpty())));
        ++differing;
      }
    }
  }
  EXPECT_EQ(differing, 69);
}

}  // namespace
}  // namespace ascend::cdi
