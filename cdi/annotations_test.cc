#include "cdi/annotations.h"

#include <string>

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::cdi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(AnnotationsTest, KeysAreThoseOfKubernetes) {
  EXPECT_THAT(ValidateAnnotations({}), IsOk());
  for (const std::string& key :
       {std::string("a"), std::string("npu.huawei.com/uuid"), std::string("UP.com/X_y.z-1"),
        std::string(63, 'a'), "x.y/" + std::string(63, 'a')}) {
    EXPECT_THAT(ValidateAnnotations({{key, "v"}}), IsOk()) << key;
  }
  for (const std::string& key :
       {std::string(), std::string("a/b/c"), std::string("x/"), std::string("/x"),
        std::string("inva$$lid"), std::string("-a"), std::string("a_"), std::string("x_y/a"),
        std::string(64, 'a'), std::string("\xC3\xA9"), std::string(254, 'a') + "/b"}) {
    EXPECT_THAT(ValidateAnnotations({{key, "v"}}), StatusIs(absl::StatusCode::kInvalidArgument))
        << key;
  }
  EXPECT_THAT(ValidateAnnotations({{"good", ""}, {"not good", ""}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"not good\"")));
}

TEST(AnnotationsTest, TheTotalSizeIsLimited) {
  constexpr size_t kLimit = 256 << 10;
  EXPECT_THAT(ValidateAnnotations({{"a", std::string(kLimit - 1, 'x')}}), IsOk());
  EXPECT_THAT(ValidateAnnotations({{"a", std::string(kLimit - 2, 'x')}, {"b", ""}}), IsOk());
  EXPECT_THAT(ValidateAnnotations({{"a", std::string(kLimit - 1, 'x')}, {"b", ""}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("262144")));
}

TEST(AnnotationsTest, ContainerKeysAreShort) {
  EXPECT_THAT(AnnotationKey(std::string(31, 'p'), std::string(31, 'd')), IsOk());
  EXPECT_THAT(AnnotationKey(std::string(31, 'p'), std::string(32, 'd')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("63")));
  EXPECT_THAT(AnnotationKey("a/b", "c"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(AnnotationKey("a", ""), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(AnnotationsTest, WhatIsAddedIsRead) {
  std::map<std::string, std::string> annotations = {{"other", "value"}};
  EXPECT_THAT(AddAnnotation("npu.huawei.com", "b", {"huawei.com/npu=1"}, &annotations), IsOk());
  EXPECT_THAT(AddAnnotation("npu.huawei.com", "a/x", {"huawei.com/npu=2", "v.w/c=0"}, &annotations),
              IsOk());
  EXPECT_EQ(annotations["cdi.k8s.io/npu.huawei.com_a_x"], "huawei.com/npu=2,v.w/c=0");
  EXPECT_THAT(DevicesOfAnnotations(annotations),
              IsOkAndHolds(ElementsAre("huawei.com/npu=2", "v.w/c=0", "huawei.com/npu=1")));
  EXPECT_THAT(DevicesOfAnnotations({{"other", "value"}}), IsOkAndHolds(IsEmpty()));
}

TEST(AnnotationsTest, AFailedAdditionChangesNothing) {
  std::map<std::string, std::string> annotations;
  ASSERT_THAT(AddAnnotation("p", "d", {"huawei.com/npu=1"}, &annotations), IsOk());
  const auto before = annotations;
  EXPECT_THAT(AddAnnotation("p", "d", {"huawei.com/npu=2"}, &annotations),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("cdi.k8s.io/p_d")));
  EXPECT_THAT(AddAnnotation("p", "e", {"/dev/davinci0"}, &annotations),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/dev/davinci0")));
  EXPECT_THAT(AddAnnotation("p", "e", {}, &annotations),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(AddAnnotation("p", "", {"huawei.com/npu=2"}, &annotations),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(annotations, before);
}

TEST(AnnotationsTest, OneWrongDeviceSpoilsAll) {
  EXPECT_THAT(DevicesOfAnnotations({{"cdi.k8s.io/a_b", "huawei.com/npu=1"},
                                    {"cdi.k8s.io/c_d", "huawei.com/npu=1,,"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cdi.k8s.io/c_d")));
  EXPECT_THAT(DevicesOfAnnotations({{"cdi.k8s.io/c_d", ""}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace ascend::cdi
