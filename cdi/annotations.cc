#include "cdi/annotations.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/core/status_macros.h"
#include "cdi/dns.h"
#include "cdi/document_path.h"
#include "cdi/name.h"

namespace ascend::cdi {
namespace {

constexpr absl::string_view kPrefix = "cdi.k8s.io/";
constexpr size_t kMaxNameLength = 63;
constexpr size_t kMaxTotalSize = 256 << 10;

bool IsAlnum(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

// The part of a key behind the slash.
absl::Status CheckName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength) {
    return absl::InvalidArgumentError(
        absl::StrCat("name ", Quote(name), " must have 1 to ", kMaxNameLength, " characters"));
  }
  if (!IsAlnum(name.front()) || !IsAlnum(name.back())) {
    return absl::InvalidArgumentError(
        absl::StrCat("name ", Quote(name), " must begin and end with a letter or digit"));
  }
  for (const char c : name) {
    if (!IsAlnum(c) && c != '-' && c != '_' && c != '.') {
      return absl::InvalidArgumentError(
          absl::StrCat("name ", Quote(name), " may hold only letters, digits and -_."));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckKey(absl::string_view key) {
  const size_t slash = key.find('/');
  if (slash == absl::string_view::npos) return CheckName(key);
  const std::string prefix = absl::AsciiStrToLower(key.substr(0, slash));
  if (!IsDnsSubdomain(prefix)) {
    return absl::InvalidArgumentError(
        absl::StrCat("prefix ", Quote(key.substr(0, slash)), " is not a DNS subdomain"));
  }
  return CheckName(key.substr(slash + 1));
}

}  // namespace

absl::Status ValidateAnnotations(const std::map<std::string, std::string>& annotations) {
  size_t total = 0;
  for (const auto& [key, value] : annotations) {
    ASCEND_RETURN_IF_ERROR(CheckKey(key)).With("key ", Quote(key));
    total += key.size() + value.size();
  }
  if (total > kMaxTotalSize) {
    return absl::InvalidArgumentError(
        absl::StrCat(total, " bytes of keys and values, at most ", kMaxTotalSize, " are allowed"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> AnnotationKey(absl::string_view plugin, absl::string_view device_id) {
  if (plugin.empty()) return absl::InvalidArgumentError("annotation key: empty plugin name");
  if (device_id.empty()) return absl::InvalidArgumentError("annotation key: empty device id");
  const std::string name = absl::StrCat(plugin, "_", absl::StrReplaceAll(device_id, {{"/", "_"}}));
  ASCEND_RETURN_IF_ERROR(CheckName(name)).With("annotation key");
  return absl::StrCat(kPrefix, name);
}

absl::StatusOr<std::string> AnnotationValue(const std::vector<std::string>& qualified_names) {
  if (qualified_names.empty()) return absl::InvalidArgumentError("annotation value: no device");
  for (const std::string& name : qualified_names) {
    ASCEND_RETURN_IF_ERROR(ParseQualifiedName(name).status()).With("annotation value");
  }
  return absl::StrJoin(qualified_names, ",");
}

absl::Status AddAnnotation(absl::string_view plugin, absl::string_view device_id,
                           const std::vector<std::string>& qualified_names,
                           std::map<std::string, std::string>* annotations) {
  ASCEND_ASSIGN_OR_RETURN(const std::string key, AnnotationKey(plugin, device_id));
  ASCEND_ASSIGN_OR_RETURN(std::string value, AnnotationValue(qualified_names));
  if (!annotations->emplace(key, std::move(value)).second) {
    return absl::AlreadyExistsError(absl::StrCat("annotation ", Quote(key), " is there already"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> DevicesOfAnnotations(
    const std::map<std::string, std::string>& annotations) {
  std::vector<std::string> devices;
  for (const auto& [key, value] : annotations) {
    if (!absl::StartsWith(key, kPrefix)) continue;
    for (absl::string_view name : absl::StrSplit(value, ',')) {
      ASCEND_RETURN_IF_ERROR(ParseQualifiedName(name).status()).With("annotation ", Quote(key));
      devices.emplace_back(name);
    }
  }
  return devices;
}

}  // namespace ascend::cdi
