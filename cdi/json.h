// CDI specs as JSON text.
#ifndef ASCEND_DRA_CDI_JSON_H_
#define ASCEND_DRA_CDI_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cdi/spec.h"

namespace ascend::cdi {

// The text of a spec file: with the least version that can carry the spec, the same bytes for the
// same spec, no empty members, devices in the given order. It is read back before it is returned,
// so what comes out is what runtimes will see. kInvalidArgument if the spec breaks
// ValidateForWriting, whose rules see there.
absl::StatusOr<std::string> WriteJson(const Spec& spec);

// Prints any spec as the reference prints it, valid or not: the version as given, the top-level
// containerEdits also when empty. Strings must be valid UTF-8.
std::string FormatJson(const Spec& spec);

// Reads a .json spec file as the reference v1.1.2 does, and validates it (ValidateForReading).
//
// Runtimes read .json files by a YAML parser, and so refuse some JSON: the escapes "\/" and
// surrogate pairs, raw U+007F to U+009F, U+FFFE and U+FFFF, a key twice. So does this reader. Not
// accepted, although some runtimes do: what is not JSON (comments, trailing commas or text, a byte
// order mark, YAML), scalars of another type than the member's, and null entries of arrays, on
// which runtimes crash.
//
// Errors are kInvalidArgument with the place: "line 3, column 7: ..." for the text,
// "devices[0].name: ..." for the content.
absl::StatusOr<Spec> ReadJson(absl::string_view text);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_JSON_H_
