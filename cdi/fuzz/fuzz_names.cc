// Any text as a name: of a device, of a file, of an annotation, of a version, and as a scalar.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cdi/annotations.h"
#include "cdi/document_path.h"
#include "cdi/fuzz/check.h"
#include "cdi/name.h"
#include "cdi/plain_scalar.h"
#include "cdi/text.h"
#include "cdi/version.h"

namespace ascend::cdi {
namespace {

void CheckQualifiedName(absl::string_view text) {
  const QualifiedName split = SplitQualifiedName(text);
  if (split.vendor.empty()) {
    FUZZ_CHECK(split.device_class.empty() && split.name == text);
  } else {
    FUZZ_CHECK(split.ToString() == text);
  }
  const auto parsed = ParseQualifiedName(text);
  FUZZ_CHECK(!parsed.ok() || *parsed == split);
  const bool valid = ValidateVendor(split.vendor).ok() && ValidateClass(split.device_class).ok() &&
                     ValidateDeviceName(split.name).ok();
  FUZZ_CHECK(parsed.ok() == valid);
}

void CheckFileName(absl::string_view id) {
  const auto name = SafeTransientFileName("huawei.com", "npu", id);
  if (!name.ok()) return;
  FUZZ_CHECK(*name == absl::StrCat("huawei.com-npu_", id, ".json"));
  FUZZ_CHECK(!absl::StrContains(*name, '/') && name->size() <= kMaxFileNameLength);
}

void CheckAnnotationKey(absl::string_view text) {
  const size_t middle = text.size() / 2;
  const auto key =
      AnnotationKey(std::string(text.substr(0, middle)), std::string(text.substr(middle)));
  if (!key.ok()) return;
  FUZZ_CHECK(absl::StartsWith(*key, "cdi.k8s.io/"));
  FUZZ_CHECK(ValidateAnnotations({{*key, ""}}).ok());
}

void CheckScalars(absl::string_view text) {
  const auto version = ParseVersion(text);
  FUZZ_CHECK(!version.has_value() || ParseVersion(VersionName(*version)) == version);
  const auto number = ParsePlainInteger(text);
  FUZZ_CHECK(!number.has_value() || ParsePlainInteger(absl::StrCat(*number)) == number);
  FUZZ_CHECK(!number.has_value() || !ParsePlainBoolean(text).has_value());
}

void CheckText(absl::string_view text) {
  FUZZ_CHECK(IsValidUtf8(Quote(text)) && !HasControlCharacter(Quote(text)));
  // Valid as a whole is valid character by character.
  bool valid = true;
  bool control = false;
  for (absl::string_view rest = text; valid && !rest.empty();) {
    char32_t character = 0;
    const size_t length = DecodeUtf8(rest, &character);
    valid = length != 0;
    if (!valid) break;
    control |= IsControlCharacter(character);
    rest.remove_prefix(length);
  }
  FUZZ_CHECK(IsValidUtf8(text) == valid);
  FUZZ_CHECK(!valid || HasControlCharacter(text) == control);
}

}  // namespace
}  // namespace ascend::cdi

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  ascend::cdi::CheckQualifiedName(text);
  ascend::cdi::CheckFileName(text);
  ascend::cdi::CheckAnnotationKey(text);
  ascend::cdi::CheckScalars(text);
  ascend::cdi::CheckText(text);
  return 0;
}
