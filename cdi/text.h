// Questions about UTF-8 text.
#ifndef ASCEND_DRA_CDI_TEXT_H_
#define ASCEND_DRA_CDI_TEXT_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ascend::cdi {

// Decodes the first character of `text`, which must not be empty. Returns its length in bytes, 0 if
// the text does not begin with a well-formed character (overlong, surrogate, above U+10FFFF, cut).
size_t DecodeUtf8(absl::string_view text, char32_t* character);

bool IsValidUtf8(absl::string_view text);

// U+0000 to U+001F, U+007F to U+009F, and U+FFFE and U+FFFF, which are none but which no YAML file
// may hold either.
bool IsControlCharacter(char32_t character);

bool HasControlCharacter(absl::string_view valid_utf8);

// kInvalidArgument with "line 3, column 7: <problem>". Columns count bytes, both count from 1.
absl::Status TextError(absl::string_view text, size_t offset, absl::string_view problem);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_TEXT_H_
