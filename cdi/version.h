// Versions of the CDI specification.
#ifndef ASCEND_DRA_CDI_VERSION_H_
#define ASCEND_DRA_CDI_VERSION_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "cdi/spec.h"

namespace ascend::cdi {

// Oldest first, so they compare.
enum class Version {
  k0_1_0,
  k0_2_0,
  k0_3_0,  // the oldest that the reference still loads
  k0_4_0,
  k0_5_0,
  k0_6_0,
  k0_7_0,
  k0_8_0,
  k1_0_0,
  k1_1_0,
};

absl::string_view VersionName(Version version);

// A version must be known exactly: there is no "1.1" and no "0.5.1". One leading "v" is accepted.
std::optional<Version> ParseVersion(absl::string_view text);

// The least version that has all that `spec` uses; `spec.version` is not looked at. A runtime drops
// a file whose version it does not know, so this is what to write.
Version MinimumVersion(const Spec& spec);

// What releases of the reference take for that version when they check a file: they look for mount
// types and host paths in the last device only, a mistake. A file may thus load with less than its
// MinimumVersion.
Version EnforcedVersion(const Spec& spec);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_VERSION_H_
