// CDI specs as YAML text.
#ifndef ASCEND_DRA_CDI_YAML_H_
#define ASCEND_DRA_CDI_YAML_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cdi/spec.h"

namespace ascend::cdi {

// Reads a .yaml spec file as the reference v1.1.2 does, and validates it (ValidateForReading). Only
// the first document of the text counts.
//
// Stricter than the reference where its parser takes what no producer means; docs/cdi.md lists it:
// scalars of another type than the member's, null entries of arrays (on which runtimes crash).
//
// Errors are kInvalidArgument with the place: "line 3, column 7: ..." for the text,
// "devices[0].name: ..." for the content.
absl::StatusOr<Spec> ReadYaml(absl::string_view text);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_YAML_H_
