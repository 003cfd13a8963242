// Where in a document something is, for error messages: devices[2].containerEdits.env[0].
#ifndef ASCEND_DRA_CDI_DOCUMENT_PATH_H_
#define ASCEND_DRA_CDI_DOCUMENT_PATH_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ascend::cdi {

class DocumentPath {
 public:
  DocumentPath() = default;  // the document itself
  DocumentPath Member(absl::string_view key) const;
  DocumentPath Element(size_t index) const;

  // Keys that are not plain words are quoted: annotations["a/b"]. Empty for the document itself.
  const std::string& ToString() const { return text_; }

  // kInvalidArgument with "<path>: <parts>".
  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(text_, text_.empty() ? "" : ": ", parts...));
  }

 private:
  explicit DocumentPath(std::string text) : text_(std::move(text)) {}

  std::string text_;
};

// `text` in double quotes for a message: control characters escaped, long text cut.
std::string Quote(absl::string_view text);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_DOCUMENT_PATH_H_
