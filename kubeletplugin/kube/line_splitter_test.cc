#include "kubeletplugin/kube/line_splitter.h"

#include <vector>

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LineSplitterTest : public ::testing::Test {
 protected:
  absl::Status Feed(absl::string_view data) {
    return splitter_.Feed(data, [this](absl::string_view line) {
      lines_.emplace_back(line);
      return line == "stop" ? absl::AbortedError("stopped") : absl::OkStatus();
    });
  }
  LineSplitter splitter_{8};
  std::vector<std::string> lines_;
};

TEST_F(LineSplitterTest, CutsAtEveryPossiblePlace) {
  const std::string text = "one\ntwo\r\n\n\r\nthree\n";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    lines_.clear();
    ASSERT_THAT(Feed(absl::string_view(text).substr(0, cut)), IsOk());
    ASSERT_THAT(Feed(absl::string_view(text).substr(cut)), IsOk());
    EXPECT_THAT(lines_, ElementsAre("one", "two", "three")) << cut;
    EXPECT_FALSE(splitter_.HasPartialLine());
  }
}

TEST_F(LineSplitterTest, HoldsAnUnfinishedLine) {
  ASSERT_THAT(Feed("on"), IsOk());
  EXPECT_TRUE(splitter_.HasPartialLine());
  EXPECT_THAT(lines_, ElementsAre());
  splitter_.Reset();
  EXPECT_FALSE(splitter_.HasPartialLine());
}

TEST_F(LineSplitterTest, RefusesALineOverTheLimit) {
  ASSERT_THAT(Feed("12345678\n1234"), IsOk());
  EXPECT_THAT(Feed("56789"), StatusIs(absl::StatusCode::kInternal, HasSubstr("longer than 8")));
  splitter_.Reset();
  EXPECT_THAT(Feed("123456789\n"), StatusIs(absl::StatusCode::kInternal));
}

TEST_F(LineSplitterTest, StopsAtTheFirstError) {
  EXPECT_THAT(Feed("a\nstop\nb\n"), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(lines_, ElementsAre("a", "stop"));
}

}  // namespace
}  // namespace ascend::kube
