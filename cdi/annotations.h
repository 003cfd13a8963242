// Annotations: those inside a spec, and those of a container that ask for devices.
#ifndef ASCEND_DRA_CDI_ANNOTATIONS_H_
#define ASCEND_DRA_CDI_ANNOTATIONS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ascend::cdi {

// The rules of Kubernetes for the annotations of a spec or device: each key a name of at most 63
// characters with an optional DNS prefix, 256 KiB in all. The error names the key.
absl::Status ValidateAnnotations(const std::map<std::string, std::string>& annotations);

// The key of a container annotation that asks for devices, "cdi.k8s.io/<plugin>_<device id>", as
// runtimes read it that know no CDI field in the CRI. '/' in the device id becomes '_'.
absl::StatusOr<std::string> AnnotationKey(absl::string_view plugin, absl::string_view device_id);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_ANNOTATIONS_H_
