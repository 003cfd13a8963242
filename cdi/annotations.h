// Annotations: those inside a spec, and those of a container that ask for devices.
#ifndef ASCEND_DRA_CDI_ANNOTATIONS_H_
#define ASCEND_DRA_CDI_ANNOTATIONS_H_

#include <map>
#include <string>
#include <vector>

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

// Its value: the qualified names, separated by commas. kInvalidArgument if one is not qualified, or
// if there is none.
absl::StatusOr<std::string> AnnotationValue(const std::vector<std::string>& qualified_names);

// Asks for devices in the annotations of a container. kAlreadyExists if that key is taken; on any
// error the annotations are as before.
absl::Status AddAnnotation(absl::string_view plugin, absl::string_view device_id,
                           const std::vector<std::string>& qualified_names,
                           std::map<std::string, std::string>* annotations);

// The devices that the annotations of a container ask for, in the order of the keys; runtimes take
// any order of keys. One value that is wrong is kInvalidArgument with its key, for all of them.
absl::StatusOr<std::vector<std::string>> DevicesOfAnnotations(
    const std::map<std::string, std::string>& annotations);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_ANNOTATIONS_H_
