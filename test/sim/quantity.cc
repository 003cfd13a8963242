#include "test/sim/quantity.h"

#include <array>
#include <cstdint>

#include "absl/numeric/int128.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace ascend::sim {
namespace {

constexpr std::array<absl::string_view, 7> kBinary = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
// From 10^-9 in steps of a thousand.
constexpr std::array<absl::string_view, 10> kDecimal = {"n", "u", "m", "",  "k",
                                                        "M", "G", "T", "P", "E"};
constexpr int kUnity = 3;  // index of "" in kDecimal

std::string ToText(absl::uint128 value) {
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value != 0);
  return digits;
}

}  // namespace

absl::StatusOr<std::string> CanonicalQuantity(absl::string_view text) {
  const auto bad = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text,
                     "\" is not a quantity: must match the regular expression "
                     "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"));
  };
  absl::string_view rest = text;
  const bool negative = absl::ConsumePrefix(&rest, "-");
  if (!negative) absl::ConsumePrefix(&rest, "+");
  // All in units of 10^-9, the smallest that a quantity can hold.
  absl::uint128 nano = 0;
  bool digits = false, point = false;
  int decimals = 0;
  while (!rest.empty() && (absl::ascii_isdigit(rest[0]) || (rest[0] == '.' && !point))) {
    if (rest[0] == '.') {
      point = true;
    } else if (decimals < 9) {
      nano = nano * 10 + (rest[0] - '0');
      digits = true;
      decimals += point;
    } else {
      return bad();
    }
    if ((nano >> 90) != 0) return bad();
    rest.remove_prefix(1);
  }
  if (!digits) return bad();
  for (int i = decimals; i < 9; ++i) nano *= 10;

  bool binary = false, found = false;
  for (size_t i = 1; i < kBinary.size() && !found; ++i) {
    if (rest == kBinary[i]) {
      if (nano > (absl::Uint128Max() >> (10 * i))) return bad();
      nano <<= 10 * i;
      binary = found = true;
    }
  }
  for (int i = 0; i < static_cast<int>(kDecimal.size()) && !found; ++i) {
    if (rest != kDecimal[i]) continue;
    for (int k = kUnity; k < i; ++k) {
      if (nano > absl::Uint128Max() / 1000) return bad();
      nano *= 1000;
    }
    for (int k = i; k < kUnity; ++k) nano = (nano + 999) / 1000;  // rounded up, as upstream
    found = true;
  }
  int exponent;
  if (!found && rest.size() > 1 && (rest[0] == 'e' || rest[0] == 'E') &&
      absl::SimpleAtoi(rest.substr(1), &exponent) && exponent >= 0 && exponent <= 18) {
    for (int i = 0; i < exponent; ++i) {
      if (nano > absl::Uint128Max() / 10) return bad();
      nano *= 10;
    }
    found = true;
  }
  if (!found) return bad();
  if (nano == 0) return "0";

  constexpr uint64_t kOne = 1'000'000'000;
  const std::string sign = negative ? "-" : "";
  if (binary && nano % kOne == 0) {
    absl::uint128 value = nano / kOne;
    size_t suffix = 0;
    while (suffix + 1 < kBinary.size() && value % 1024 == 0) {
      value /= 1024;
      ++suffix;
    }
    return absl::StrCat(sign, ToText(value), kBinary[suffix]);
  }
  size_t suffix = 0;
  while (suffix + 1 < kDecimal.size() && nano % 1000 == 0) {
    nano /= 1000;
    ++suffix;
  }
  return absl::StrCat(sign, ToText(nano), kDecimal[suffix]);
}

}  // namespace ascend::sim
