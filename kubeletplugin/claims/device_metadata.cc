#include "kubeletplugin/claims/device_metadata.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "kubeletplugin/claims/device_status.h"
#include "nlohmann/json.hpp"

namespace ascend::kubeletplugin {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kContainerRoot[] = "/var/run/kubernetes.io/dra-device-attributes";
constexpr const char* kApiVersions[] = {"metadata.resource.k8s.io/v1beta1",
                                        "metadata.resource.k8s.io/v1alpha1"};

std::vector<std::string> RequestsOf(const ClaimRecord& record) {
  std::vector<std::string> requests;
  for (const RecordedDevice& device : record.devices) {
    for (const std::string& request : device.requests) {
      if (std::find(requests.begin(), requests.end(), request) == requests.end()) {
        requests.push_back(request);
      }
    }
  }
  return requests;
}

Json DeviceToJson(const RecordedDevice& device, const std::string& driver) {
  Json json = {{"driver", driver}, {"pool", device.pool}, {"name", device.device}};
  for (const auto& [name, value] : device.published.attributes) {
    json["attributes"][name] = kube::ToJson(value);
  }
  const std::vector<std::string> ips = RoceNetworks(device);
  if (!ips.empty()) json["networkData"] = {{"ips", ips}};
  return json;
}

std::string Content(const ClaimRecord& record, const std::string& driver,
                    const std::string& request) {
  std::string name = request;
  Json devices = Json::array();
  for (const RecordedDevice& device : record.devices) {
    const auto& requests = device.requests;
    if (std::find(requests.begin(), requests.end(), request) == requests.end()) continue;
    devices.push_back(DeviceToJson(device, driver));
    for (const std::string& subrequest : device.subrequests) {
      if (absl::StartsWith(subrequest, absl::StrCat(request, "/"))) name = subrequest;
    }
  }
  Json json = {{"kind", "DeviceMetadata"},
               {"apiVersion", ""},
               {"metadata",
                {{"name", record.claim_name},
                 {"namespace", record.claim_namespace},
                 {"uid", record.claim_uid},
                 {"generation", 1}}}};
  if (!record.pod_claim_name.empty()) json["podClaimName"] = record.pod_claim_name;
  Json& entry = json["requests"].emplace_back(Json{{"name", name}});
  entry["devices"] = std::move(devices);
  std::string content;
  for (const char* version : kApiVersions) {
    json["apiVersion"] = version;
    absl::StrAppend(&content, json.dump(-1, ' ', false, Json::error_handler_t::replace), "\n");
  }
  return content;
}

}  // namespace

std::vector<MetadataFile> MetadataFilesOf(const ClaimRecord& record, const Paths& paths) {
  const bool from_template = !record.pod_claim_name.empty();
  const std::string& claim = from_template ? record.pod_claim_name : record.claim_name;
  std::vector<MetadataFile> files;
  if (!IsSafePathPart(claim)) return files;
  for (const std::string& request : RequestsOf(record)) {
    if (!IsSafePathPart(request)) continue;
    files.push_back(
        {.request = request,
         .cdi_device = paths.cdi_metadata_device_name(record.claim_uid, request),
         .host_path = JoinPath(paths.device_metadata_directory(),
                               Paths::device_metadata_file(record.claim_uid, request)),
         .container_path = absl::StrCat(
             kContainerRoot, from_template ? "/resourceclaimtemplates/" : "/resourceclaims/", claim,
             "/", request, "/", paths.driver_name(), "-metadata.json"),
         .content = Content(record, paths.driver_name(), request)});
  }
  return files;
}

absl::Status WriteMetadataFiles(const ClaimRecord& record, const Paths& paths,
                                const std::vector<MetadataFile>& files) {
  if (files.empty()) return absl::OkStatus();
  const std::string path = paths.device_metadata_directory();
  absl::StatusOr<UniqueFd> directory = OpenDirectory(path);
  if (absl::IsNotFound(directory.status())) {
    // Containers of any user read the files: the runtime mounts them, so the directory stays shut.
    ASCEND_RETURN_IF_ERROR(MakeDirectories(path, 0700));
    directory = OpenDirectory(path);
  }
  ASCEND_RETURN_IF_ERROR(directory.status());
  for (const MetadataFile& file : files) {
    const std::string name = Paths::device_metadata_file(record.claim_uid, file.request);
    if (::faccessat(directory->get(), name.c_str(), F_OK, 0) == 0) {
      const absl::StatusOr<std::string> present = ReadFileAt(directory->get(), name);
      if (present.ok() && *present == file.content) continue;
    }
    ASCEND_RETURN_IF_ERROR(WriteFileAtomicallyAt(directory->get(), name, file.content,
                                                 {.mode = 0644, .durable = false}));
  }
  return absl::OkStatus();
}

absl::Status RemoveMetadataFiles(const std::string& claim_uid, const Paths& paths) {
  const absl::StatusOr<UniqueFd> directory = OpenDirectory(paths.device_metadata_directory());
  if (absl::IsNotFound(directory.status())) return absl::OkStatus();
  ASCEND_RETURN_IF_ERROR(directory.status());
  ASCEND_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory->get()));
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, Paths::device_metadata_prefix(claim_uid))) continue;
    ASCEND_RETURN_IF_ERROR(RemoveFileAt(directory->get(), name, /*durable=*/false));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ClaimsWithMetadata(const Paths& paths) {
  const absl::StatusOr<std::vector<std::string>> names =
      ListDirectory(paths.device_metadata_directory());
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  ASCEND_RETURN_IF_ERROR(names.status());
  std::vector<std::string> claims;
  for (const std::string& name : *names) {
    std::string uid = Paths::claim_of_device_metadata(name);
    if (!uid.empty() && (claims.empty() || claims.back() != uid)) claims.push_back(std::move(uid));
  }
  return claims;
}

absl::Status RemoveStaleMetadataTempFiles(const Paths& paths, absl::Duration min_age) {
  const absl::StatusOr<UniqueFd> directory = OpenDirectory(paths.device_metadata_directory());
  if (absl::IsNotFound(directory.status())) return absl::OkStatus();
  ASCEND_RETURN_IF_ERROR(directory.status());
  return RemoveStaleTempFiles(directory->get(), "", min_age);
}

}  // namespace ascend::kubeletplugin
