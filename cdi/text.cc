#include "cdi/text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace ascend::cdi {
namespace {

// How many bytes of printable ASCII the text begins with: nearly all, in most texts.
size_t PrintableAscii(absl::string_view text) {
  size_t length = 0;
  while (length < text.size() && text[length] >= 0x20 && text[length] < 0x7F) ++length;
  return length;
}

}  // namespace

size_t DecodeUtf8(absl::string_view text, char32_t* character) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) {
    *character = first;
    return 1;
  }
  size_t length;
  char32_t least;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
    least = 0x80;
    *character = first & 0x1F;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    least = 0x800;
    *character = first & 0x0F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    least = 0x10000;
    *character = first & 0x07;
  } else {
    return 0;
  }
  if (text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return 0;
    *character = (*character << 6) | (byte & 0x3F);
  }
  const bool surrogate = *character >= 0xD800 && *character <= 0xDFFF;
  return *character < least || *character > 0x10FFFF || surrogate ? 0 : length;
}

bool IsValidUtf8(absl::string_view text) {
  while (true) {
    text.remove_prefix(PrintableAscii(text));
    if (text.empty()) return true;
    char32_t character;
    const size_t length = DecodeUtf8(text, &character);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
}

bool IsControlCharacter(char32_t character) {
  return character < 0x20 || (character >= 0x7F && character <= 0x9F) || character == 0xFFFE ||
         character == 0xFFFF;
}

bool HasControlCharacter(absl::string_view valid_utf8) {
  while (true) {
    valid_utf8.remove_prefix(PrintableAscii(valid_utf8));
    if (valid_utf8.empty()) return false;
    char32_t character;
    const size_t length = DecodeUtf8(valid_utf8, &character);
    if (length == 0) return false;
    if (IsControlCharacter(character)) return true;
    valid_utf8.remove_prefix(length);
  }
}

absl::Status TextError(absl::string_view text, size_t offset, absl::string_view problem) {
  const absl::string_view before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  const size_t column = newline == absl::string_view::npos ? offset : offset - newline - 1;
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", problem));
}

}  // namespace ascend::cdi
