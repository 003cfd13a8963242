// What a runtime reads of a prepared claim: its CDI file and the device metadata.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CLAIM_FILES_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CLAIM_FILES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cdi/store.h"
#include "kubeletplugin/claims/device_metadata.h"
#include "kubeletplugin/claims/injection.h"
#include "kubeletplugin/claims/record.h"
#include "kubeletplugin/paths.h"

namespace ascend::kubeletplugin {

// Thread-safe; of one claim by one caller at a time: whoever is in its gate.
class ClaimFiles {
 public:
  // References must outlive it.
  ClaimFiles(const Paths& paths, cdi::Store& cdi_store, Injector injector)
      : paths_(paths), cdi_store_(cdi_store), injector_(std::move(injector)) {}

  // Checks the device nodes, then writes the metadata, then the CDI file. Errors say what to do.
  absl::Status Write(const ClaimRecord& record, const std::vector<MetadataFile>& metadata,
                     const cdi::Store::WriteOptions& options) const;
  // What is not there is a success.
  absl::Status Remove(const std::string& claim_uid) const;

  const Injector& injector() const { return injector_; }

 private:
  const Paths& paths_;
  cdi::Store& cdi_store_;
  const Injector injector_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_CLAIM_FILES_H_
