#include "kubeletplugin/health/health_file.h"

#include <string>

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::HasSubstr;

class HealthFileTest : public ::testing::Test {
 protected:
  TempDir temp_;
  const std::string path_ = temp_.path() + "/health.json";
};

TEST_F(HealthFileTest, IsReadAsWritten) {
  HealthFile file;
  file.policy = R"({"chips":[{"uuid":"A"}]})";
  file.verdicts[3] = {.physical_id = 3,
                      .uuid = "A",
                      .level = vnpu::HealthLevel::kSeparateNpu,
                      .effect = vnpu::TaintEffect::kNoExecute,
                      .state = vnpu::HealthState::kUnhealthy,
                      .message = "fault 80E18402 (多比特错误)",
                      .since = absl::FromUnixMillis(1'790'000'000'123)};
  file.verdicts[4] = {.physical_id = 4, .since = absl::UnixEpoch()};
  file.orders_done[4] = absl::FromUnixMillis(1'790'000'000'456);
  ASSERT_TRUE(WriteHealthFile(path_, file).ok());
  const auto read = ReadHealthFile(path_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->policy, file.policy);
  EXPECT_EQ(read->verdicts, file.verdicts);
  EXPECT_EQ(read->orders_done, file.orders_done);
}

TEST_F(HealthFileTest, NoneIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(ReadHealthFile(path_).status()));
}

TEST_F(HealthFileTest, DamageIsAnErrorThatNamesTheFile) {
  for (const char* text :
       {"", "[]", "{", R"({"version": 2, "chips": [], "memory": {}})",
        R"({"version": 1, "memory": {}})", R"({"version": 1, "chips": [], "mem": {}})",
        R"({"version": 1, "chips": [7], "memory": {}})",
        R"({"version": 1, "chips": [{"physicalID": 1, "level": "bad"}], "memory": {}})"}) {
    ASSERT_TRUE(WriteFileAtomically(path_, text).ok());
    const auto read = ReadHealthFile(path_);
    EXPECT_TRUE(absl::IsDataLoss(read.status())) << text;
    EXPECT_THAT(read.status().message(), HasSubstr(path_));
  }
}

}  // namespace
}  // namespace ascend::kubeletplugin
