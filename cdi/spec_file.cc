#include "cdi/spec_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "cdi/document.h"
#include "cdi/json.h"
#include "cdi/yaml.h"

namespace ascend::cdi {
namespace {

bool IsYamlName(absl::string_view name) { return absl::EndsWith(name, ".yaml"); }

std::vector<std::string> FindingsOf(const std::string& path, const struct stat& info) {
  std::vector<std::string> findings;
  struct stat link;
  if (::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode)) {
    findings.push_back("a symlink, which not all runtimes can follow from where they run");
  }
  const mode_t mode = info.st_mode & 07777;
  if ((mode & (S_IWGRP | S_IWOTH)) != 0) {
    findings.push_back(absl::StrFormat(
        "mode %04o: others than its owner can write it, and so run hooks as root", mode));
  }
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    findings.push_back(absl::StrCat("owned by user ", info.st_uid));
  }
  constexpr mode_t kReadable = S_IRUSR | S_IRGRP | S_IROTH;
  if ((mode & kReadable) != kReadable) {
    findings.push_back(absl::StrFormat("mode %04o: rootless runtimes cannot read it", mode));
  }
  return findings;
}

}  // namespace

bool IsSpecFileName(absl::string_view name) {
  return absl::EndsWith(name, ".json") || IsYamlName(name);
}

absl::StatusOr<SpecFile> ReadSpecFile(const std::string& path) {
  if (!IsSpecFileName(path)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ends neither in .json nor in .yaml"));
  }
  const bool yaml = IsYamlName(path);
  struct stat info;
  ASCEND_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(path, yaml ? kMaxYamlSize : kMaxDocumentSize, &info));
  ASCEND_ASSIGN_OR_RETURN(Spec spec, yaml ? ReadYaml(text) : ReadJson(text), path);
  return SpecFile{path, std::move(spec), FindingsOf(path, info)};
}

}  // namespace ascend::cdi
