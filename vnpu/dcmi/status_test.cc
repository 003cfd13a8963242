#include "vnpu/dcmi/status.h"

#include "base/core/status_macros.h"
#include "base/core/status_matchers.h"
#include "gtest/gtest.h"

namespace ascend::dcmi {
namespace {

using ::testing::HasSubstr;

TEST(DcmiStatusTest, NamesFunctionAndCode) {
  EXPECT_THAT(StatusFromCode(0, "dcmi_init"), IsOk());
  EXPECT_THAT(StatusFromCode(-8012, "dcmi_get_device_health"),
              StatusIs(absl::StatusCode::kUnavailable,
                       "dcmi_get_device_health returned -8012 (NOT_READY)"));
  EXPECT_THAT(StatusFromCode(-4711, "dcmi_init"),
              StatusIs(absl::StatusCode::kUnknown, "dcmi_init returned -4711 (UNKNOWN)"));
}

TEST(DcmiStatusTest, CodesFallIntoTheClassesThatCallersBranchOn) {
  for (const int code : {-8255, -8013, -99998}) {
    EXPECT_THAT(StatusFromCode(code, "f"), StatusIs(absl::StatusCode::kUnimplemented)) << code;
  }
  for (const int code : {-8009, -8010, -8011, -8012, -8017}) {
    EXPECT_THAT(StatusFromCode(code, "f"), StatusIs(absl::StatusCode::kUnavailable)) << code;
  }
  for (const int code : {-8007, -8008}) {
    EXPECT_THAT(StatusFromCode(code, "f"), StatusIs(absl::StatusCode::kNotFound)) << code;
  }
  EXPECT_THAT(StatusFromCode(-8006, "f"), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(StatusFromCode(-8020, "f"), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(StatusFromCode(-8002, "f"), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(StatusFromCode(-8001, "f"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(StatusFromCode(-8005, "f"), StatusIs(absl::StatusCode::kInternal));
}

TEST(DcmiStatusTest, BusyHasAnotherNameWhereAChipIsChanged) {
  for (const char* function :
       {"dcmi_create_vdevice", "dcmi_set_destroy_vdevice", "dcmi_set_device_reset"}) {
    EXPECT_THAT(StatusFromCode(-8013, function),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("-8013")))
        << function;
    EXPECT_THAT(StatusFromCode(-8255, function), StatusIs(absl::StatusCode::kUnimplemented));
  }
}

TEST(DcmiStatusTest, TheCodeSurvivesContext) {
  EXPECT_EQ(ReturnCodeOf(Annotate(StatusFromCode(-8012, "f"), "chip 3")), -8012);
  EXPECT_EQ(ReturnCodeOf(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(ReturnCodeOf(absl::UnavailableError("other")), std::nullopt);
}

}  // namespace
}  // namespace ascend::dcmi
