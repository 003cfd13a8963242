#include "test/sim/quantity.h"

#include "base/core/status_matchers.h"
#include "gtest/gtest.h"

namespace ascend::sim {
namespace {

TEST(Quantity, IsWrittenInCanonicalForm) {
  for (const auto& [text, canonical] :
       std::vector<std::pair<std::string, std::string>>{{"64Gi", "64Gi"},
                                                        {"65536Mi", "64Gi"},
                                                        {"1024Ki", "1Mi"},
                                                        {"1.5Gi", "1536Mi"},
                                                        {"20", "20"},
                                                        {"1000", "1k"},
                                                        {"1024", "1024"},
                                                        {"1500m", "1500m"},
                                                        {"2000m", "2"},
                                                        {"0", "0"},
                                                        {"0Gi", "0"},
                                                        {"-5", "-5"},
                                                        {"+3k", "3k"},
                                                        {"1e3", "1k"},
                                                        {"0.5", "500m"},
                                                        {"7E", "7E"}}) {
    EXPECT_THAT(CanonicalQuantity(text), IsOkAndHolds(canonical)) << text;
  }
}

TEST(Quantity, OtherTextIsRefused) {
  for (const char* text : {"", "Gi", "64 Gi", "64GB", "1.2.3", "64gi", "e3", "1e", "0x10",
                           "99999999999999999999999999999999", "99999999999999Ei"}) {
    EXPECT_THAT(CanonicalQuantity(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

}  // namespace
}  // namespace ascend::sim
