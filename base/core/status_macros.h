// Early return on error, with the noun the caller knows prepended.
//
//   ASCEND_RETURN_IF_ERROR(WriteRecord(r));
//   ASCEND_RETURN_IF_ERROR(WriteRecord(r)).With("claim ", uid);
//   ASCEND_ASSIGN_OR_RETURN(auto text, ReadFile(path));
//   ASCEND_ASSIGN_OR_RETURN(auto text, ReadFile(path), "kubeconfig ", path);
//
// The result of a failing statement is the same status code with "noun: " before its message.
#ifndef ASCEND_DRA_BASE_CORE_STATUS_MACROS_H_
#define ASCEND_DRA_BASE_CORE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace ascend {

// The same status, payloads included, with "`context`: " before its message; an OK status is
// returned unchanged.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

// Maps an errno value to a Status whose message is "`what`: <strerror>". ENOENT is kNotFound,
// EEXIST kAlreadyExists, EACCES/EPERM/EROFS kPermissionDenied, ENOSPC/EDQUOT/EMFILE/ENFILE
// kResourceExhausted, all else kInternal.
absl::Status ErrnoToStatus(int error_number, absl::string_view what);

namespace internal {

// Carries a failed status to the `return` of the macro; With() adds context on the way.
class StatusReturn {
 public:
  explicit StatusReturn(absl::Status status) : status_(std::move(status)) {}
  template <typename... Parts>
  StatusReturn&& With(const Parts&... parts) && {
    status_ = Annotate(status_, absl::StrCat(parts...));
    return std::move(*this);
  }
  operator absl::Status() && { return std::move(status_); }  // NOLINT: implicit by design
  template <typename T>
  operator absl::StatusOr<T>() && {  // NOLINT: implicit by design
    return std::move(status_);
  }

 private:
  absl::Status status_;
};

inline absl::Status AddContext(const absl::Status& status) { return status; }
template <typename... Parts>
absl::Status AddContext(const absl::Status& status, const Parts&... parts) {
  return Annotate(status, absl::StrCat(parts...));
}

}  // namespace internal
}  // namespace ascend

#define ASCEND_RETURN_IF_ERROR(expr)                               \
  if (absl::Status ascend_status_ = (expr); ascend_status_.ok()) { \
  } else /* NOLINT */                                              \
    return ::ascend::internal::StatusReturn(std::move(ascend_status_))

#define ASCEND_CONCAT_INNER_(a, b) a##b
#define ASCEND_CONCAT_(a, b) ASCEND_CONCAT_INNER_(a, b)
#define ASCEND_ASSIGN_OR_RETURN(lhs, expr, ...) \
  ASCEND_ASSIGN_OR_RETURN_IMPL_(ASCEND_CONCAT_(ascend_result_, __LINE__), lhs, expr, __VA_ARGS__)
#define ASCEND_ASSIGN_OR_RETURN_IMPL_(result, lhs, expr, ...)                          \
  auto result = (expr);                                                                \
  if (!result.ok()) {                                                                  \
    return ::ascend::internal::AddContext(result.status() __VA_OPT__(, ) __VA_ARGS__); \
  }                                                                                    \
  lhs = std::move(result).value()

#endif  // ASCEND_DRA_BASE_CORE_STATUS_MACROS_H_
