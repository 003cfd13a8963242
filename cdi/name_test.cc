#include "cdi/name.h"

#include <string>

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::cdi {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kUid[] = "dab5ab50-d59a-42a6-af16-cfd4628c0f7a";

TEST(NameTest, AClaimDeviceIsAQualifiedName) {
  const QualifiedName name = {"k8s.npu.huawei.com", "claim", std::string(kUid) + "-npu-0"};
  EXPECT_THAT(ParseQualifiedName(name.ToString()), IsOkAndHolds(name));
}

TEST(NameTest, ErrorsSayWhatIsWrong) {
  EXPECT_THAT(ParseQualifiedName("/dev/davinci0"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("vendor/class=device")));
  EXPECT_THAT(ParseQualifiedName("huawei.com/npu=a\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("device name"), HasSubstr("a\\n"))));
  EXPECT_THAT(ParseQualifiedName("1huawei.com/npu=a"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("vendor")));
  EXPECT_THAT(ParseQualifiedName("huawei.com/npu_=a"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("class")));
}

TEST(NameTest, KindsAreCutAtTheFirstSlash) {
  EXPECT_EQ(SplitKind("huawei.com/npu").vendor, "huawei.com");
  EXPECT_EQ(SplitKind("huawei.com/npu").device_class, "npu");
  EXPECT_EQ(SplitKind("a/b/c").device_class, "b/c");
  for (const char* kind : {"", "/", "huawei.com", "huawei.com/", "/npu"}) {
    EXPECT_EQ(SplitKind(kind).vendor, "") << kind;
    EXPECT_EQ(SplitKind(kind).device_class, "") << kind;
  }
}

TEST(NameTest, FileNames) {
  EXPECT_EQ(SpecFileName("huawei.com", "npu"), "huawei.com-npu");
  EXPECT_THAT(SafeTransientFileName("k8s.npu.huawei.com", "claim", kUid),
              IsOkAndHolds("k8s.npu.huawei.com-claim_" + std::string(kUid) + ".json"));
  EXPECT_THAT(SafeTransientFileName("huawei.com", "npu", "a"),
              IsOkAndHolds("huawei.com-npu_a.json"));
  EXPECT_THAT(SafeTransientFileName("huawei.com", "npu", std::string(64, 'a')), IsOk());
  EXPECT_THAT(SafeTransientFileName("huawei.com", "npu", "a.b-c"), IsOk());
}

TEST(NameTest, DangerousIdsAreNoFileNames) {
  for (const std::string& id :
       {std::string(), std::string("."), std::string(".."), std::string("../../etc/x"),
        std::string("a/b"), std::string("a b"), std::string("a_b"), std::string("-a"),
        std::string("a-"), std::string(".a"), std::string("a."), std::string("a\n"),
        std::string("a\0b", 3), std::string("\xC3\xA9"), std::string("a.json"),
        std::string("a.YAML"), std::string("a*"), std::string(65, 'a')}) {
    EXPECT_THAT(SafeTransientFileName("huawei.com", "npu", id),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << id;
  }
  EXPECT_THAT(SafeTransientFileName("../huawei.com", "npu", "a"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(SafeTransientFileName("huawei.com", "n/pu", "a"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(SafeTransientFileName(std::string(200, 'a'), "npu", std::string(64, 'a')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("longer")));
}

}  // namespace
}  // namespace ascend::cdi
