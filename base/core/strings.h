// Conversions between the string views of std and Abseil. Debian builds Abseil with its own
// absl::string_view, so the two types do not convert into each other; our interfaces use
// absl::string_view throughout.
#ifndef ASCEND_DRA_BASE_CORE_STRINGS_H_
#define ASCEND_DRA_BASE_CORE_STRINGS_H_

#include <string_view>

#include "absl/strings/string_view.h"

namespace ascend {

inline std::string_view ToStd(absl::string_view text) { return {text.data(), text.size()}; }
inline absl::string_view FromStd(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace ascend

#endif  // ASCEND_DRA_BASE_CORE_STRINGS_H_
