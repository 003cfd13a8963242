#include "kubeletplugin/claims/claim_files.h"

#include "base/core/status_macros.h"
#include "kubeletplugin/claims/prepare_error.h"

namespace ascend::kubeletplugin {

absl::Status ClaimFiles::Write(const ClaimRecord& record, const std::vector<MetadataFile>& metadata,
                               const cdi::Store::WriteOptions& options) const {
  ASCEND_RETURN_IF_ERROR(WithReason(injector_.CheckNodes(record), PrepareError::kDeviceNode));
  ASCEND_ASSIGN_OR_RETURN(const cdi::Spec spec,
                          WithReason(injector_.BuildSpec(paths_.cdi_kind(), record, metadata),
                                     PrepareError::kDeviceNode));
  ASCEND_RETURN_IF_ERROR(WriteMetadataFiles(record, paths_, metadata))
      .With("the device metadata cannot be written; check that ",
            paths_.device_metadata_directory(), " is writable and has room");
  ASCEND_RETURN_IF_ERROR(
      WithReason(cdi_store_.Write(paths_.cdi_file(record.claim_uid), spec, options),
                 PrepareError::kCdiFile))
      .With("the CDI file cannot be written; check that ", cdi_store_.directory(),
            " on the node is writable for the driver and has room");
  return absl::OkStatus();
}

absl::Status ClaimFiles::Remove(const std::string& claim_uid) const {
  ASCEND_RETURN_IF_ERROR(cdi_store_.Remove(paths_.cdi_file(claim_uid))).With("CDI file");
  ASCEND_RETURN_IF_ERROR(RemoveMetadataFiles(claim_uid, paths_)).With("device metadata");
  return absl::OkStatus();
}

}  // namespace ascend::kubeletplugin
