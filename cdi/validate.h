// What makes a spec valid: for those who read it, and for us who write it.
//
// Errors are kInvalidArgument and name the place and the rule, for example
// "devices[2].containerEdits.mounts[0].hostPath: must not be empty".
#ifndef ASCEND_DRA_CDI_VALIDATE_H_
#define ASCEND_DRA_CDI_VALIDATE_H_

#include "absl/status/status.h"
#include "cdi/document_path.h"
#include "cdi/spec.h"

namespace ascend::cdi {

// The rules of the reference library v1.1.2: what it refuses is refused, the rest accepted, as
// strange as it may be (relative paths, names of 300 characters). Includes `spec.version`.
absl::Status ValidateForReading(const Spec& spec);

// The same rules for one set of edits, found at `path`.
absl::Status ValidateEdits(const ContainerEdits& edits, const DocumentPath& path);

// What the specification demands and every supported runtime accepts, whichever is stricter:
//   - vendor: a DNS subdomain of 2 to 253 characters that begins with a letter; class: 2 to 63
//     letters, digits, '-' and '_'; device name: at most 128 letters, digits and "-_."
//   - absolute, clean paths; valid UTF-8; no control characters anywhere
//   - no path of a device node and no destination of a mount twice in one set of edits, nor "/"
//   - an explicit fileMode of permission bits, as some runtimes give 0666 to a node without one
//   - no "none" permissions, closID "/", gid 0, empty list items and other things that only some
//     versions understand or that mean nothing; hook timeouts above 0
//   - annotations as in Kubernetes
// `spec.version` is not looked at.
absl::Status ValidateForWriting(const Spec& spec);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_VALIDATE_H_
