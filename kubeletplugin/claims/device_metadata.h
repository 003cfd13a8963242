// Tells containers what they were given (KEP-5304): one file per request of a claim, mounted
// read-only at the place where programs look for it:
//
//   /var/run/kubernetes.io/dra-device-attributes/resourceclaims/<claim>/<request>/
//     <driver>-metadata.json
//   /var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/<name in the
//   pod>/<request>/
//     <driver>-metadata.json      for a claim that was made from a template
//
// The file holds the same object once per version of metadata.resource.k8s.io, newest first.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_DEVICE_METADATA_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_DEVICE_METADATA_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kubeletplugin/claims/record.h"
#include "kubeletplugin/paths.h"

namespace ascend::kubeletplugin {

struct MetadataFile {
  std::string request;  // base name
  std::string cdi_device;
  std::string host_path;
  std::string container_path;
  std::string content;
};

// One per request, in the order of the record. Requests whose name cannot be part of a path have
// none. Pure.
std::vector<MetadataFile> MetadataFilesOf(const ClaimRecord& record, const Paths& paths);

// Writes those that are missing or differ; running containers keep what they have. Not durable:
// whoever starts after a power cut calls it again.
absl::Status WriteMetadataFiles(const ClaimRecord& record, const Paths& paths,
                                const std::vector<MetadataFile>& files);

// Removes what a claim has; nothing there is a success.
absl::Status RemoveMetadataFiles(const std::string& claim_uid, const Paths& paths);

// The claims that have some.
absl::StatusOr<std::vector<std::string>> ClaimsWithMetadata(const Paths& paths);

// Removes what writers that crashed left behind. See RemoveStaleTempFiles.
absl::Status RemoveStaleMetadataTempFiles(const Paths& paths, absl::Duration min_age);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_DEVICE_METADATA_H_
