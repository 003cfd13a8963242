#include "kubeletplugin/paths.h"

#include <openssl/sha.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/core/file.h"

namespace ascend::kubeletplugin {
namespace {

constexpr absl::string_view kClaimLockPrefix = "claim-";

bool IsDnsSubdomain(absl::string_view name) {
  if (name.empty() || name.size() > 63) return false;
  for (absl::string_view label : absl::StrSplit(name, '.')) {
    if (label.empty()) return false;
    if (!absl::ascii_isalnum(label.front()) || !absl::ascii_isalnum(label.back())) return false;
    for (const char c : label) {
      if (!absl::ascii_islower(c) && !absl::ascii_isdigit(c) && c != '-') return false;
    }
  }
  return true;
}

std::string ShortHash(absl::string_view text, size_t bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  std::string encoded =
      absl::WebSafeBase64Escape(absl::string_view(reinterpret_cast<char*>(digest), bytes));
  while (!encoded.empty() && encoded.back() == '=') encoded.pop_back();
  return encoded;
}

// The names that Kubernetes' own helper library uses, tried from the most to the least readable.
std::string RegistrationSocket(const std::string& directory, const Paths::Options& options) {
  const std::string& driver = options.driver_name;
  const std::string& uid = options.pod_uid;
  if (uid.empty()) return JoinPath(directory, absl::StrCat(driver, "-reg.sock"));
  std::string path = JoinPath(directory, absl::StrCat(driver, "-", uid, "-reg.sock"));
  if (path.size() <= kMaxSocketPath) return path;
  path = JoinPath(directory, absl::StrCat(driver, "-", ShortHash(uid, 8), "-reg.sock"));
  if (path.size() <= kMaxSocketPath) return path;
  const std::string both = absl::StrCat(driver, absl::string_view("\0", 1), uid);
  return JoinPath(directory, absl::StrCat("dra-", ShortHash(both, 16), "-reg.sock"));
}

absl::Status CheckSocketPath(const std::string& path, absl::string_view remedy) {
  if (path.size() <= kMaxSocketPath) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("socket path ", path, " has ", path.size(),
                                                 " bytes, the limit is ", kMaxSocketPath, ": ",
                                                 remedy));
}

}  // namespace

bool IsSafeClaimUid(absl::string_view uid) { return uid.size() <= 64 && IsSafePathPart(uid); }

bool IsSafePathPart(absl::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  if (!absl::ascii_isalnum(name.front()) || !absl::ascii_isalnum(name.back())) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(c) && c != '-' && c != '.') return false;
  }
  return !absl::StrContains(name, "..");
}

Paths::Paths(Options options) : options_(std::move(options)) {
  registration_socket_ = RegistrationSocket(registry_directory(), options_);
  service_socket_ =
      JoinPath(plugin_directory(), options_.pod_uid.empty()
                                       ? std::string("dra.sock")
                                       : absl::StrCat("dra-", options_.pod_uid, ".sock"));
}

absl::StatusOr<Paths> Paths::Create(Options options) {
  if (!IsDnsSubdomain(options.driver_name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("driver name \"", options.driver_name,
                     "\" must be a lower-case DNS subdomain of at most 63 characters"));
  }
  if (!options.pod_uid.empty() && !IsSafeClaimUid(options.pod_uid)) {
    return absl::InvalidArgumentError(
        absl::StrCat("pod UID \"", options.pod_uid, "\" cannot be part of a file name"));
  }
  for (const auto& [what, path] :
       {std::pair<absl::string_view, std::string&>("kubelet root", options.kubelet_root),
        std::pair<absl::string_view, std::string&>("CDI root", options.cdi_root)}) {
    if (!absl::StartsWith(path, "/")) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " \"", path, "\" must be an absolute path"));
    }
    while (path.size() > 1 && path.back() == '/') path.pop_back();
  }
  Paths paths(std::move(options));
  absl::Status status = CheckSocketPath(paths.registration_socket_, "use a shorter kubelet root");
  if (status.ok()) {
    status = CheckSocketPath(paths.service_socket_,
                             "use a shorter driver name or a shorter kubelet root");
  }
  if (!status.ok()) return status;
  return paths;
}

std::string Paths::registry_directory() const {
  return JoinPath(options_.kubelet_root, "plugins_registry");
}
std::string Paths::plugin_directory() const {
  return JoinPath(JoinPath(options_.kubelet_root, "plugins"), options_.driver_name);
}
std::string Paths::claims_directory() const { return JoinPath(plugin_directory(), "claims"); }
std::string Paths::locks_directory() const { return JoinPath(plugin_directory(), "locks"); }
std::string Paths::claim_lock(absl::string_view claim_uid) const {
  return JoinPath(locks_directory(), absl::StrCat(kClaimLockPrefix, claim_uid));
}
std::string Paths::claim_of_lock(absl::string_view file_name) {
  if (!absl::ConsumePrefix(&file_name, kClaimLockPrefix)) return "";
  return IsSafeClaimUid(file_name) ? std::string(file_name) : "";
}
std::string Paths::chip_lock(int physical_id) const {
  return JoinPath(locks_directory(), absl::StrCat("chip-", physical_id));
}
std::string Paths::device_metadata_directory() const {
  return JoinPath(plugin_directory(), "device-metadata");
}
std::string Paths::device_metadata_prefix(absl::string_view claim_uid) {
  return absl::StrCat(claim_uid, "_");  // no UID has an underscore
}
std::string Paths::device_metadata_file(absl::string_view claim_uid, absl::string_view request) {
  return absl::StrCat(device_metadata_prefix(claim_uid), request, ".json");
}
std::string Paths::claim_of_device_metadata(absl::string_view file_name) {
  const size_t end = file_name.find('_');
  if (end == absl::string_view::npos || !absl::EndsWith(file_name, ".json")) return "";
  const absl::string_view uid = file_name.substr(0, end);
  return IsSafeClaimUid(uid) ? std::string(uid) : "";
}
std::string Paths::publisher_directory() const { return JoinPath(plugin_directory(), "publisher"); }
std::string Paths::inventory_file() const { return JoinPath(plugin_directory(), "inventory.json"); }
std::string Paths::health_file() const { return JoinPath(plugin_directory(), "health.json"); }
std::string Paths::resets_file() const { return JoinPath(plugin_directory(), "resets.json"); }
std::string Paths::resets_lock() const { return JoinPath(locks_directory(), "resets"); }
std::string Paths::chip_orders_directory() const { return JoinPath(plugin_directory(), "orders"); }
std::string Paths::pod_resources_socket() const {
  return JoinPath(options_.kubelet_root, "pod-resources/kubelet.sock");
}

std::string Paths::cdi_kind() const { return absl::StrCat("k8s.", options_.driver_name, "/claim"); }
std::string Paths::cdi_file_prefix() const {
  return absl::StrCat("k8s.", options_.driver_name, "-claim_");
}
std::string Paths::cdi_file(absl::string_view claim_uid) const {
  return absl::StrCat(cdi_file_prefix(), claim_uid, ".json");
}
std::string Paths::claim_of_cdi_file(absl::string_view file_name) const {
  if (!absl::ConsumePrefix(&file_name, cdi_file_prefix())) return "";
  if (!absl::ConsumeSuffix(&file_name, ".json")) return "";
  return IsSafeClaimUid(file_name) ? std::string(file_name) : "";
}
std::string Paths::cdi_device_name(absl::string_view claim_uid, absl::string_view device,
                                   absl::string_view share_id) const {
  if (share_id.empty()) return absl::StrCat(claim_uid, "-", device);
  return absl::StrCat(claim_uid, "-", device, "-", share_id.substr(0, 8));
}
std::string Paths::cdi_metadata_device_name(absl::string_view claim_uid,
                                            absl::string_view request) const {
  return absl::StrCat(claim_uid, "-metadata-", request);
}
std::string Paths::cdi_device_id(absl::string_view device_name) const {
  return absl::StrCat(cdi_kind(), "=", device_name);
}

}  // namespace ascend::kubeletplugin
