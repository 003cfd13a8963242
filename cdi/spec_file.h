// Spec files as they lie in a directory.
#ifndef ASCEND_DRA_CDI_SPEC_FILE_H_
#define ASCEND_DRA_CDI_SPEC_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cdi/spec.h"

namespace ascend::cdi {

struct SpecFile {
  std::string path;
  Spec spec;
  // What is not wrong with the content but with the file: a symlink, writable by group or others,
  // owned by somebody else than root and this process's user, not readable by all. For people; no
  // runtime refuses a file for it.
  std::vector<std::string> findings;
};

// Whether runtimes look at a file of this name: it ends in exactly ".json" or ".yaml".
bool IsSpecFileName(absl::string_view name);

// Reads and validates one file, by ReadJson or ReadYaml after its extension. Follows symlinks, as
// runtimes do. Never blocks: anything but a regular file is kFailedPrecondition. kNotFound if there
// is none, kPermissionDenied if it may not be read, kOutOfRange above kMaxDocumentSize (for YAML
// kMaxYamlSize), kInvalidArgument for its content and for another extension. Every error names the
// path. Thread-safe.
absl::StatusOr<SpecFile> ReadSpecFile(const std::string& path);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_SPEC_FILE_H_
