// GoogleMock matchers for absl::Status and absl::StatusOr: IsOk(), IsOkAndHolds(m),
// StatusIs(code) and StatusIs(code, message matcher).
#ifndef ASCEND_DRA_BASE_CORE_STATUS_MATCHERS_H_
#define ASCEND_DRA_BASE_CORE_STATUS_MATCHERS_H_

#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"

namespace ascend {
namespace internal {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

}  // namespace internal

MATCHER(IsOk, negation ? "is an error" : "is OK") {
  const absl::Status& status = internal::StatusOf(arg);
  *result_listener << status.ToString();
  return status.ok();
}

MATCHER_P2(StatusIs, code, message, "") {
  const absl::Status& status = internal::StatusOf(arg);
  *result_listener << status.ToString();
  return status.code() == code &&
         ::testing::SafeMatcherCast<std::string>(message).Matches(std::string(status.message()));
}

template <typename Code>
auto StatusIs(Code code) {
  return StatusIs(code, ::testing::_);
}

MATCHER_P(IsOkAndHolds, value, "") {
  if (!arg.ok()) {
    *result_listener << arg.status().ToString();
    return false;
  }
  return ::testing::ExplainMatchResult(value, *arg, result_listener);
}

}  // namespace ascend

#endif  // ASCEND_DRA_BASE_CORE_STATUS_MATCHERS_H_
