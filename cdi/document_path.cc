#include "cdi/document_path.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"

namespace ascend::cdi {
namespace {

constexpr size_t kMaxQuoted = 80;

bool IsPlainWord(absl::string_view key) {
  for (const char c : key) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return !key.empty();
}

}  // namespace

DocumentPath DocumentPath::Member(absl::string_view key) const {
  if (!IsPlainWord(key)) return DocumentPath(absl::StrCat(text_, "[", Quote(key), "]"));
  return DocumentPath(absl::StrCat(text_, text_.empty() ? "" : ".", key));
}

DocumentPath DocumentPath::Element(size_t index) const {
  return DocumentPath(absl::StrCat(text_, "[", index, "]"));
}

std::string Quote(absl::string_view text) {
  if (text.size() <= kMaxQuoted) return absl::StrCat("\"", absl::CHexEscape(text), "\"");
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMaxQuoted)), "\"... (", text.size(),
                      " bytes)");
}

}  // namespace ascend::cdi
