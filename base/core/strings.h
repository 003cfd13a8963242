// Small helpers for text. Debian builds Abseil with its own absl::string_view, which does not
// convert into that of std; our interfaces use absl::string_view throughout.
#ifndef ASCEND_DRA_BASE_CORE_STRINGS_H_
#define ASCEND_DRA_BASE_CORE_STRINGS_H_

#include <cstddef>
#include <string_view>

#include "absl/strings/string_view.h"

namespace ascend {

inline std::string_view ToStd(absl::string_view text) { return {text.data(), text.size()}; }
inline absl::string_view FromStd(std::string_view text) { return {text.data(), text.size()}; }

// The longest prefix of at most `max` bytes that does not end inside a UTF-8 character.
inline absl::string_view CutUtf8(absl::string_view text, size_t max) {
  if (text.size() <= max) return text;
  size_t end = max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace ascend

#endif  // ASCEND_DRA_BASE_CORE_STRINGS_H_
