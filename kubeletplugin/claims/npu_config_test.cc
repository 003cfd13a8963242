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

kube::OpaqueConfig Entry(const std::string& parameters, std::vector<std::string> requests = {},
                         const std::string& driver = kDriver) {
  kube::OpaqueConfig config;
  config.requests = std::move(requests);
  config.driver = driver;
  config.parameters_json = parameters;
  return config;
}

kube::DeviceResult Result(const std::string& request) {
  kube::DeviceResult result;
  result.request = request;
  result.driver = kDriver;
  return result;
}

absl::Status Check(const std::string& parameters, std::vector<std::string> requests = {},
                   const std::string& request = "npu", const std::string& driver = kDriver) {
  return NpuConfigFor({Entry(parameters, std::move(requests), driver)}, kDriver, Result(request))
      .status();
}

std::string SharedUse(const std::string& value) {
  return R"({"apiVersion":"npu.huawei.com/v1alpha1","kind":"NpuConfig","sharedUse":")" + value +
         "\"}";
}

TEST(NpuConfigTest, AcceptsTheEmptyConfiguration) {
  EXPECT_THAT(Check(kGood), IsOk());
  EXPECT_THAT(NpuConfigFor({}, kDriver, Result("npu")), IsOkAndHolds(NpuConfig()));
}

TEST(NpuConfigTest, ClaimWinsOverClassAndLaterOverEarlier) {
  const auto of_class = [](const std::string& value, std::vector<std::string> requests = {}) {
    kube::OpaqueConfig config = Entry(SharedUse(value), std::move(requests));
    config.source = kube::OpaqueConfig::Source::kClass;
    return config;
  };
  const auto of_claim = [](const std::string& value, std::vector<std::string> requests = {}) {
    return Entry(SharedUse(value), std::move(requests));
  };
  const NpuConfig expected = {.shared_use_expected = true}, warn;
  struct Case {
    std::vector<kube::OpaqueConfig> configs;
    NpuConfig npu_large;
  };
  const std::vector<Case> cases = {
      {{of_class("Expected")}, expected},
      {{of_claim("Expected")}, expected},
      {{of_class("Expected"), of_claim("Warn")}, warn},
      {{of_class("Warn"), of_claim("Expected")}, expected},
      {{of_claim("Expected"), of_class("Warn")}, expected},  // whatever the order in the list
      {{of_claim("Warn"), of_claim("Expected")}, expected},
      {{of_claim("Expected"), of_claim("Warn")}, warn},
      {{of_claim("Expected", {"npu/large"}), of_claim("Warn", {"npu/small"})}, expected},
      {{of_claim("Expected", {"npu"}), of_claim("Warn", {"other"})}, expected},
      {{of_claim("Expected"), of_claim("Warn", {"npu/large"})}, warn},
      // An entry that does not set the field leaves it.
      {{of_class("Expected"), Entry(kGood)}, expected},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(NpuConfigFor(c.configs, kDriver, Result("npu/large")), IsOkAndHolds(c.npu_large))
        << &c - cases.data();
  }
}

TEST(NpuConfigTest, SaysWhoseConfigurationIsWrong) {
  kube::OpaqueConfig config = Entry(SharedUse("Maybe"));
  EXPECT_THAT(NpuConfigFor({config}, kDriver, Result("npu")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("configuration of the claim (expected")));
  config.source = kube::OpaqueConfig::Source::kClass;
  EXPECT_THAT(NpuConfigFor({config}, kDriver, Result("npu")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("configuration of the DeviceClass (expected")));
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
  EXPECT_THAT(Check(SharedUse("expected")), invalid("sharedUse is \"expected\", neither"));
  EXPECT_THAT(
      Check(R"({"apiVersion":"npu.huawei.com/v1alpha1","kind":"NpuConfig","sharedUse":true})"),
      invalid("sharedUse is true, neither"));
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
