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

void AppendMember(absl::string_view key, std::string* path) {
  if (IsPlainWord(key)) {
    absl::StrAppend(path, path->empty() ? "" : ".", key);
  } else {
    absl::StrAppend(path, "[", Quote(key), "]");
  }
}

void AppendElement(size_t index, std::string* path) { absl::StrAppend(path, "[", index, "]"); }

std::string DocumentPath::ToString() const {
  if (outer_ == nullptr) return "";
  std::string text = outer_->ToString();
  if (key_.data() == nullptr) {
    AppendElement(index_, &text);
  } else {
    AppendMember(key_, &text);
  }
  return text;
}

std::string Quote(absl::string_view text) {
  if (text.size() <= kMaxQuoted) return absl::StrCat("\"", absl::CHexEscape(text), "\"");
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMaxQuoted)), "\"... (", text.size(),
                      " bytes)");
}

}  // namespace ascend::cdi
