// What YAML scalars without quotes mean, as the reference's parser takes them.
#ifndef ASCEND_DRA_CDI_PLAIN_SCALAR_H_
#define ASCEND_DRA_CDI_PLAIN_SCALAR_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace ascend::cdi {

// true, yes, on, y and their opposites, each in lower case, in upper case or capitalised.
std::optional<bool> ParsePlainBoolean(absl::string_view text);

// Decimal, 0x, 0o or 0b, and with a bare leading 0 octal, as file modes are often written; a sign
// and underscores are allowed. Nothing for what is no integer or needs more than 64 bits.
std::optional<int64_t> ParsePlainInteger(absl::string_view text);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_PLAIN_SCALAR_H_
