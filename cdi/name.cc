#include "cdi/name.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/core/status_macros.h"
#include "cdi/document_path.h"

namespace ascend::cdi {
namespace {

bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }
bool IsAlnum(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

constexpr size_t kMaxSafeIdLength = 64;

// `extra`: what is allowed between the ends besides letters and digits.
absl::Status CheckName(absl::string_view what, absl::string_view name, bool digit_first,
                       absl::string_view extra) {
  if (name.empty()) return absl::InvalidArgumentError(absl::StrCat("empty ", what));
  if (!IsLetter(name.front()) && !(digit_first && IsAlnum(name.front()))) {
    return absl::InvalidArgumentError(absl::StrCat(what, " ", Quote(name), " must begin with a ",
                                                   digit_first ? "letter or digit" : "letter"));
  }
  if (!IsAlnum(name.back())) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " ", Quote(name), " must end with a letter or digit"));
  }
  for (const char c : name) {
    if (!IsAlnum(c) && !absl::StrContains(extra, c)) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " ", Quote(name), " may hold only letters, digits and ", extra));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string QualifiedName::ToString() const {
  return absl::StrCat(vendor, "/", device_class, "=", name);
}

QualifiedName SplitQualifiedName(absl::string_view text) {
  const QualifiedName unqualified = {"", "", std::string(text)};
  const size_t equals = text.find('=');
  if (absl::StartsWith(text, "/") || equals == absl::string_view::npos) return unqualified;
  Kind kind = SplitKind(text.substr(0, equals));
  const absl::string_view name = text.substr(equals + 1);
  if (kind.vendor.empty() || name.empty()) return unqualified;
  return {kind.vendor, kind.device_class, std::string(name)};
}

absl::StatusOr<QualifiedName> ParseQualifiedName(absl::string_view text) {
  QualifiedName parsed = SplitQualifiedName(text);
  if (parsed.vendor.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("device ", Quote(text), " is not of the form vendor/class=device"));
  }
  ASCEND_RETURN_IF_ERROR(ValidateVendor(parsed.vendor)).With("device ", Quote(text));
  ASCEND_RETURN_IF_ERROR(ValidateClass(parsed.device_class)).With("device ", Quote(text));
  ASCEND_RETURN_IF_ERROR(ValidateDeviceName(parsed.name)).With("device ", Quote(text));
  return parsed;
}

Kind SplitKind(absl::string_view kind) {
  const size_t slash = kind.find('/');
  if (slash == absl::string_view::npos || slash == 0 || slash + 1 == kind.size()) return {};
  return {std::string(kind.substr(0, slash)), std::string(kind.substr(slash + 1))};
}

absl::Status ValidateVendor(absl::string_view vendor) {
  return CheckName("vendor", vendor, /*digit_first=*/false, "_-.");
}

absl::Status ValidateClass(absl::string_view device_class) {
  return CheckName("class", device_class, /*digit_first=*/false, "_-.");
}

absl::Status ValidateDeviceName(absl::string_view name) {
  return CheckName("device name", name, /*digit_first=*/true, "_-.:");
}

std::string SpecFileName(absl::string_view vendor, absl::string_view device_class) {
  return absl::StrCat(vendor, "-", device_class);
}

std::string TransientSpecFileName(absl::string_view vendor, absl::string_view device_class,
                                  absl::string_view id) {
  return absl::StrCat(SpecFileName(vendor, device_class), "_",
                      absl::StrReplaceAll(id, {{"/", "_"}}));
}

absl::StatusOr<std::string> SafeTransientFileName(absl::string_view vendor,
                                                  absl::string_view device_class,
                                                  absl::string_view id) {
  ASCEND_RETURN_IF_ERROR(ValidateVendor(vendor));
  ASCEND_RETURN_IF_ERROR(ValidateClass(device_class));
  ASCEND_RETURN_IF_ERROR(CheckName("id", id, /*digit_first=*/true, ".-"));
  if (id.size() > kMaxSafeIdLength) {
    return absl::InvalidArgumentError(
        absl::StrCat("id ", Quote(id), " is longer than ", kMaxSafeIdLength, " bytes"));
  }
  if (absl::EndsWithIgnoreCase(id, ".json") || absl::EndsWithIgnoreCase(id, ".yaml")) {
    return absl::InvalidArgumentError(absl::StrCat("id ", Quote(id), " ends like a file name"));
  }
  std::string name = absl::StrCat(TransientSpecFileName(vendor, device_class, id), ".json");
  if (name.size() > kMaxFileNameLength) {
    return absl::InvalidArgumentError(
        absl::StrCat("file name ", Quote(name), " is longer than ", kMaxFileNameLength, " bytes"));
  }
  return name;
}

}  // namespace ascend::cdi
