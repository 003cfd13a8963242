// What must hold for every spec that a reader returned.
#ifndef ASCEND_DRA_CDI_FUZZ_SPEC_CHECKS_H_
#define ASCEND_DRA_CDI_FUZZ_SPEC_CHECKS_H_

#include <string>

#include "absl/strings/match.h"
#include "cdi/fuzz/check.h"
#include "cdi/json.h"
#include "cdi/spec.h"
#include "cdi/text.h"
#include "cdi/validate.h"
#include "cdi/version.h"

namespace ascend::cdi {

inline void CheckReadSpec(const Spec& spec) {
  FUZZ_CHECK(ValidateForReading(spec).ok());

  // What is accepted can be printed, and reads back the same.
  const std::string printed = FormatJson(spec);
  FUZZ_CHECK(IsValidUtf8(printed));
  const auto again = ReadJson(printed);
  // Except for a key that was short enough, but is too long with its control characters escaped.
  if (!again.ok() && absl::StrContains(again.status().message(), "a key of more than")) return;
  FUZZ_CHECK(again.ok());
  FUZZ_CHECK(*again == spec);
  FUZZ_CHECK(MinimumVersion(*again) == MinimumVersion(spec));

  // The writer refuses, or writes what every reader takes for the same spec.
  const auto written = WriteJson(spec);
  FUZZ_CHECK(written.ok() == ValidateForWriting(spec).ok());
  if (!written.ok()) return;
  const auto read = ReadJson(*written);
  FUZZ_CHECK(read.ok());
  Spec expected = spec;
  expected.version = read->version;
  FUZZ_CHECK(*read == expected);
  FUZZ_CHECK(ParseVersion(read->version) == MinimumVersion(spec));
}

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_FUZZ_SPEC_CHECKS_H_
