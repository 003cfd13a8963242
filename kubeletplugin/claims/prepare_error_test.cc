#include "kubeletplugin/claims/prepare_error.h"

#include <set>
#include <string>

#include "base/core/status_macros.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

TEST(PrepareErrorTest, EveryReasonHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const PrepareError error : kPrepareErrors) {
    EXPECT_TRUE(names.insert(Name(error)).second) << Name(error);
    EXPECT_THAT(Name(error), ::testing::MatchesRegex("[a-z_]+"));
  }
}

TEST(PrepareErrorTest, TheCodeTellsTheReason) {
  EXPECT_EQ(ReasonOf(absl::NotFoundError("x")), PrepareError::kClaimNotFound);
  EXPECT_EQ(ReasonOf(absl::FailedPreconditionError("x")), PrepareError::kClaimRejected);
  EXPECT_EQ(ReasonOf(absl::DataLossError("x")), PrepareError::kRecordUnreadable);
  EXPECT_EQ(ReasonOf(absl::UnavailableError("x")), PrepareError::kUnavailable);
  EXPECT_EQ(ReasonOf(absl::DeadlineExceededError("x")), PrepareError::kDeadline);
  EXPECT_EQ(ReasonOf(absl::UnauthenticatedError("x")), PrepareError::kPermission);
  EXPECT_EQ(ReasonOf(absl::ResourceExhaustedError("x")), PrepareError::kNoSpace);
  EXPECT_EQ(ReasonOf(absl::AbortedError("x")), PrepareError::kSuperseded);
  EXPECT_EQ(ReasonOf(absl::UnknownError("x")), PrepareError::kInternal);
}

TEST(PrepareErrorTest, AGivenReasonWinsAndStays) {
  const absl::Status given =
      WithReason(absl::FailedPreconditionError("chip 3"), PrepareError::kChipHeld);
  EXPECT_EQ(ReasonOf(given), PrepareError::kChipHeld);
  EXPECT_EQ(ReasonOf(Annotate(given, "claim a/b")), PrepareError::kChipHeld);
  // The first one is nearest to the cause.
  EXPECT_EQ(ReasonOf(WithReason(given, PrepareError::kCdiFile)), PrepareError::kChipHeld);
  EXPECT_EQ(given.message(), "chip 3");
}

TEST(PrepareErrorTest, SuccessHasNone) {
  EXPECT_EQ(WithReason(absl::OkStatus(), PrepareError::kCdiFile), absl::OkStatus());
  EXPECT_THAT(WithReason(absl::StatusOr<int>(3), PrepareError::kCdiFile), IsOkAndHolds(3));
  const absl::StatusOr<int> failed =
      WithReason(absl::StatusOr<int>(absl::InternalError("x")), PrepareError::kCdiFile);
  EXPECT_EQ(ReasonOf(failed.status()), PrepareError::kCdiFile);
}

}  // namespace
}  // namespace ascend::kubeletplugin
