#include "cdi/plain_scalar.h"

#include <charconv>
#include <initializer_list>
#include <string>
#include <system_error>

#include "absl/strings/ascii.h"

namespace ascend::cdi {
namespace {

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// In the spellings that YAML 1.1 knows: not "yEs".
bool IsWord(absl::string_view text, absl::string_view lower_case) {
  std::string capitalised(lower_case);
  capitalised[0] = absl::ascii_toupper(static_cast<unsigned char>(capitalised[0]));
  return text == lower_case || text == capitalised || text == absl::AsciiStrToUpper(lower_case);
}

bool IsOneOf(absl::string_view text, std::initializer_list<absl::string_view> words) {
  for (const absl::string_view word : words) {
    if (IsWord(text, word)) return true;
  }
  return false;
}

int TakeBase(absl::string_view* digits) {
  if (digits->size() < 2 || (*digits)[0] != '0') return 10;
  const char letter = absl::ascii_tolower(static_cast<unsigned char>((*digits)[1]));
  const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  digits->remove_prefix(base == 0 ? 1 : 2);
  return base == 0 ? 8 : base;
}

}  // namespace

std::optional<bool> ParsePlainBoolean(absl::string_view text) {
  if (IsOneOf(text, {"true", "yes", "on", "y"})) return true;
  if (IsOneOf(text, {"false", "no", "off", "n"})) return false;
  return std::nullopt;
}

std::optional<int64_t> ParsePlainInteger(absl::string_view text) {
  if (text.empty() || (!IsDigit(text[0]) && text[0] != '+' && text[0] != '-')) return std::nullopt;
  std::string number;
  for (const char c : text) {
    if (c != '_') number.push_back(c);
  }
  absl::string_view digits = number;
  const bool negative = digits[0] == '-';
  if (negative || digits[0] == '+') digits.remove_prefix(1);
  const int base = TakeBase(&digits);
  // A second sign is no digit, but from_chars would take it.
  if (digits.empty() || digits[0] == '-') return std::nullopt;
  std::string signed_digits(negative ? "-" : "");
  signed_digits.append(digits.data(), digits.size());
  int64_t value = 0;
  const char* const end = signed_digits.data() + signed_digits.size();
  const auto [stop, error] = std::from_chars(signed_digits.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace ascend::cdi
