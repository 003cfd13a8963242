// CDI specs as YAML text.
#ifndef ASCEND_DRA_CDI_YAML_H_
#define ASCEND_DRA_CDI_YAML_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cdi/spec.h"

namespace ascend::cdi {

// Reads a .yaml spec file as the reference v1.1.2 does, and validates it (ValidateForReading). Only
// the first document of the text counts. A scalar without quotes has the type of its member: the
// name `yes` or `010` is that text, the file mode `0666` is octal.
//
// Stricter than the reference where its parser takes what no producer means: floating point numbers
// for integers, quoted scalars for booleans, null entries of arrays and maps (on some of which
// runtimes crash) and null keys, tags other than !!str, !!map and !!seq, raw U+2028 and U+2029, and
// texts of more than 1 MiB or nested deeper than 32 levels.
//
// Errors are kInvalidArgument with the place: "line 3, column 7: ..." for the text,
// "devices[0].name: ..." for the content.
absl::StatusOr<Spec> ReadYaml(absl::string_view text);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_YAML_H_
