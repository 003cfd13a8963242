// JSON that comes from outside, read strictly.
#ifndef ASCEND_DRA_CDI_CMD_JSON_TEXT_H_
#define ASCEND_DRA_CDI_CMD_JSON_TEXT_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

namespace ascend::cdi::cmd {

// Deeper documents would exhaust the stack of whoever walks them.
inline constexpr int kMaxJsonDepth = 256;
// Keeping members in order makes looking one up linear.
inline constexpr size_t kMaxJsonMembers = 4096;

// Parses one JSON document. Nothing is dropped or rounded: refused are a key that is there twice,
// integers above 64 bits, nesting beyond kMaxJsonDepth, more than kMaxJsonMembers in one object, a
// NUL and text behind the document. kInvalidArgument with the place: "line 3, column 7: ...".
absl::StatusOr<nlohmann::ordered_json> ParseJsonText(absl::string_view text);

}  // namespace ascend::cdi::cmd

#endif  // ASCEND_DRA_CDI_CMD_JSON_TEXT_H_
