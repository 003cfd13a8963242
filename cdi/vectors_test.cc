// Replays the recorded answers of the reference library: cdi/testdata/README.md.
#include <fstream>
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

// Returns how many cases there were.
int Replay(const std::string& file) {
  std::ifstream stream(absl::StrCat(CDI_TESTDATA, "/", file));
  EXPECT_TRUE(stream.good()) << file;
  int cases = 0;
  for (std::string line; std::getline(stream, line); ++cases) {
    const Json test = Json::parse(line);
    SCOPED_TRACE(
        absl::StrCat(test["id"].get<std::string>(), ", ", test["title"].get<std::string>()));
    EXPECT_THAT(ReplayCase(test), IsOkAndHolds(IsEmpty()));
  }
  return cases;
}

TEST(VectorsTest, QualifiedNames) { EXPECT_EQ(Replay("qualified-name.jsonl"), 33); }
TEST(VectorsTest, AnnotationKeys) { EXPECT_EQ(Replay("annotation-key.jsonl"), 7); }
TEST(VectorsTest, TransientNames) { EXPECT_EQ(Replay("transient-name.jsonl"), 5); }
TEST(VectorsTest, Specs) { EXPECT_EQ(Replay("spec.jsonl"), 175); }

}  // namespace
}  // namespace ascend::cdi
