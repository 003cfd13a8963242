// Where in a document something is, for error messages: devices[2].containerEdits.env[0].
#ifndef ASCEND_DRA_CDI_DOCUMENT_PATH_H_
#define ASCEND_DRA_CDI_DOCUMENT_PATH_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ascend::cdi {

// A step from an outer path: making one costs nothing, the text is only put together for an error.
// So a path refers to the one it came from, and to the key: both must outlive it. The outer path
// must have a name (a path of a temporary does not compile), except for the document itself.
class DocumentPath {
 public:
  DocumentPath() = default;  // the document itself

  DocumentPath Member(absl::string_view key) const& { return {this, key, 0}; }
  DocumentPath Element(size_t index) const& { return {this, {}, index}; }
  DocumentPath Member(absl::string_view key) const&& = delete;
  DocumentPath Element(size_t index) const&& = delete;

  // Keys that are not plain words are quoted: annotations["a/b"]. Empty for the document itself.
  std::string ToString() const;

  // kInvalidArgument with "<path>: <parts>".
  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    const std::string text = ToString();
    return absl::InvalidArgumentError(absl::StrCat(text, text.empty() ? "" : ": ", parts...));
  }

 private:
  DocumentPath(const DocumentPath* outer, absl::string_view key, size_t index)
      : outer_(outer), key_(key), index_(index) {}

  const DocumentPath* outer_ = nullptr;
  absl::string_view key_;  // data() is null for an element
  size_t index_ = 0;
};

// Adds a step to the text of a path.
void AppendMember(absl::string_view key, std::string* path);
void AppendElement(size_t index, std::string* path);

// `text` in double quotes for a message: control characters escaped, long text cut.
std::string Quote(absl::string_view text);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_DOCUMENT_PATH_H_
