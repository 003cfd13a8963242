#include "base/core/status_macros.h"

#include <cerrno>
#include <memory>

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return absl::InvalidArgumentError("odd");
  return n / 2;
}

absl::StatusOr<int> Quarter(int n) {
  ASCEND_ASSIGN_OR_RETURN(int half, Half(n), "number ", n);
  ASCEND_ASSIGN_OR_RETURN(int quarter, Half(half));
  return quarter;
}

absl::Status Check(int n) {
  ASCEND_RETURN_IF_ERROR(Half(n).status()).With("check of ", n);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<int>> MoveOnly(bool ok) {
  if (!ok) return absl::NotFoundError("none");
  return std::make_unique<int>(7);
}

absl::StatusOr<int> UseMoveOnly(bool ok) {
  ASCEND_ASSIGN_OR_RETURN(std::unique_ptr<int> value, MoveOnly(ok));
  return *value;
}

TEST(StatusMacrosTest, ValuePassesThrough) {
  EXPECT_THAT(Quarter(8), IsOkAndHolds(2));
  EXPECT_THAT(Check(8), IsOk());
  EXPECT_THAT(UseMoveOnly(true), IsOkAndHolds(7));
}

TEST(StatusMacrosTest, ErrorKeepsCodeAndGainsContext) {
  EXPECT_THAT(Quarter(7), StatusIs(absl::StatusCode::kInvalidArgument, "number 7: odd"));
  EXPECT_THAT(Quarter(6), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
  EXPECT_THAT(Check(3), StatusIs(absl::StatusCode::kInvalidArgument, "check of 3: odd"));
  EXPECT_THAT(UseMoveOnly(false), StatusIs(absl::StatusCode::kNotFound, "none"));
}

TEST(StatusMacrosTest, ErrnoBecomesTheMatchingCode) {
  EXPECT_THAT(ErrnoToStatus(ENOENT, "open /x"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("open /x: No such file")));
  EXPECT_THAT(ErrnoToStatus(EROFS, "w"), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(ErrnoToStatus(ENOSPC, "w"), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(ErrnoToStatus(EIO, "w"), StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace ascend
