// What has to be looked up in the text of a YAML file because yaml-cpp does not tell or check it.
#ifndef ASCEND_DRA_CDI_YAML_TEXT_H_
#define ASCEND_DRA_CDI_YAML_TEXT_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ascend::cdi {

// Refuses the characters that the reference's parser refuses, those that it takes for line breaks
// but yaml-cpp for text, and directives: other than %YAML 1.1 and %TAG, or in places where yaml-cpp
// would take them for the end of the document. kInvalidArgument with line and column.
absl::Status CheckYamlText(absl::string_view text);

// A scalar as it is written.
struct ScalarSource {
  bool plain;  // not quoted, no block
  // Empty, or why it must be refused: an escape that yaml-cpp and the reference do not decode
  // alike, or no closing quote, which yaml-cpp does not always miss.
  absl::string_view problem;
};

// The scalar of which the parser said that it begins at `offset`: its anchor and tag, if it has
// any, come first there.
ScalarSource LookAtScalar(absl::string_view text, size_t offset);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_YAML_TEXT_H_
