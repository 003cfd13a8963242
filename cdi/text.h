// Questions about UTF-8 text.
#ifndef ASCEND_DRA_CDI_TEXT_H_
#define ASCEND_DRA_CDI_TEXT_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace ascend::cdi {

// Decodes the first character of `text`, which must not be empty. Returns its length in bytes, 0 if
// the text does not begin with a well-formed character (overlong, surrogate, above U+10FFFF, cut).
size_t DecodeUtf8(absl::string_view text, char32_t* character);

bool IsValidUtf8(absl::string_view text);

// U+0000 to U+001F and U+007F to U+009F.
bool IsControlCharacter(char32_t character);

// Also U+FFFE and U+FFFF, which no YAML file may hold. `text` is valid UTF-8.
bool HasControlCharacter(absl::string_view text);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_TEXT_H_
