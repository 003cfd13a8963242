// Names of CDI devices, vendor/class=device, and of the files that define them.
//
// The Validate functions hold the reference's rules: what every runtime of today resolves. What we
// write ourselves obeys the stricter ValidateForWriting (cdi/validate.h).
#ifndef ASCEND_DRA_CDI_NAME_H_
#define ASCEND_DRA_CDI_NAME_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ascend::cdi {

struct QualifiedName {
  std::string vendor;
  std::string device_class;
  std::string name;

  std::string ToString() const;
  friend bool operator==(const QualifiedName&, const QualifiedName&) = default;
};

// Cuts without looking at the characters. Text that is no qualified name, such as a path, comes
// back as `name` with an empty vendor and class.
QualifiedName SplitQualifiedName(absl::string_view text);

// kInvalidArgument unless all three parts are there and valid.
absl::StatusOr<QualifiedName> ParseQualifiedName(absl::string_view text);

// "vendor/class", the `kind` of a spec. Empty vendor and class if it is not of that form.
struct Kind {
  std::string vendor;
  std::string device_class;
};
Kind SplitKind(absl::string_view kind);

absl::Status ValidateVendor(absl::string_view vendor);
absl::Status ValidateClass(absl::string_view device_class);
absl::Status ValidateDeviceName(absl::string_view name);

// File names without an extension, as the reference makes them: "vendor-class" for devices that
// stay, "vendor-class_<id>" for those of one user. Only '/' of the id is replaced: for ids from
// outside use SafeTransientFileName.
std::string SpecFileName(absl::string_view vendor, absl::string_view device_class);
std::string TransientSpecFileName(absl::string_view vendor, absl::string_view device_class,
                                  absl::string_view id);

// The longest name of a file that can be written atomically: the temporary's name is longer.
inline constexpr size_t kMaxFileNameLength = 255 - 22;

// "vendor-class_<id>.json" for an id that comes from outside, such as the UID of an API object.
// kInvalidArgument unless the id is 1 to 64 letters, digits, dots and dashes with a letter or digit
// at both ends, and not itself the name of a spec file. Two different ids give two different names.
absl::StatusOr<std::string> SafeTransientFileName(absl::string_view vendor,
                                                  absl::string_view device_class,
                                                  absl::string_view id);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_NAME_H_
