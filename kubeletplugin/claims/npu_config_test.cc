#include "kubeletplugin/claims/npu_config.h"

#include <string>

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::HasSubstr;

constexpr char kDriver[] = "npu.huawei.com";
constexpr char kGood[] = R"({"apiVersion":"npu.huawei.com/v1alpha1","kind":"NpuConfig"})";

absl::Status Check(const std::string& parameters, std::vector<std::string> requests = {},
                   const std::string& request = "npu", const std::string& driver = kDriver) {
  kube::OpaqueConfig config;
  config.requests = std::move(requests);
  config.driver = driver;
  config.parameters_json = parameters;
  return CheckNpuConfigs({config}, kDriver, {{.request = request, .driver = kDriver}});
}

TEST(NpuConfigTest, AcceptsTheEmptyConfiguration) {
  EXPECT_THAT(Check(kGood), IsOk());
  EXPECT_THAT(CheckNpuConfigs({}, kDriver, {{.request = "npu"}}), IsOk());
}

TEST(NpuConfigTest, NamesWhatIsWrong) {
  const auto invalid = [](const char* part) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(part));
  };
  EXPECT_THAT(
      Check(R"({"apiVersion":"npu.huawei.com/v1alpha1","kind":"NpuConfig","sharing":"yes"})"),
      invalid("unknown field \"sharing\""));
  EXPECT_THAT(Check(R"({"apiVersion":"npu.huawei.com/v2","kind":"NpuConfig"})"),
              invalid("field apiVersion is \"npu.huawei.com/v2\""));
  EXPECT_THAT(Check(R"({"apiVersion":"npu.huawei.com/v1alpha1","kind":"GpuConfig"})"),
              invalid("field kind is \"GpuConfig\""));
  EXPECT_THAT(Check(R"({"kind":"NpuConfig"})"), invalid("apiVersion is missing"));
  EXPECT_THAT(Check(R"({"apiVersion":1,"kind":"NpuConfig"})"), invalid("field apiVersion is 1"));
  EXPECT_THAT(Check("[]"), invalid("no JSON object"));
  EXPECT_THAT(Check("{"), invalid("no JSON object"));
  EXPECT_THAT(Check(""), invalid("no JSON object"));
}

TEST(NpuConfigTest, OtherDriversAndOtherRequestsAreIgnored) {
  EXPECT_THAT(Check("{}", {}, "npu", "gpu.example.com"), IsOk());
  EXPECT_THAT(Check("{}", {"other"}), IsOk());
  EXPECT_THAT(Check("{}", {"npu/small"}, "npu/large"), IsOk());
}

TEST(NpuConfigTest, RequestsMatchByBaseNameAndByFullName) {
  EXPECT_FALSE(Check("{}", {"npu"}, "npu/large").ok());
  EXPECT_FALSE(Check("{}", {"npu/large"}, "npu/large").ok());
  EXPECT_FALSE(Check("{}", {"other", "npu"}).ok());
}

}  // namespace
}  // namespace ascend::kubeletplugin
