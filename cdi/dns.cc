#include "cdi/dns.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace ascend::cdi {
namespace {

bool IsLowerAlnum(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return absl::ascii_islower(byte) || absl::ascii_isdigit(byte);
}

bool IsLabel(absl::string_view label) {
  if (label.empty() || label.size() > 63) return false;
  if (!IsLowerAlnum(label.front()) || !IsLowerAlnum(label.back())) return false;
  for (const char c : label) {
    if (!IsLowerAlnum(c) && c != '-') return false;
  }
  return true;
}

}  // namespace

bool IsDnsSubdomain(absl::string_view name) {
  if (name.size() > 253) return false;
  for (const absl::string_view label : absl::StrSplit(name, '.')) {
    if (!IsLabel(label)) return false;
  }
  return true;
}

}  // namespace ascend::cdi
