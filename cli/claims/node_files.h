// What a node's disk says of claims: records, CDI files and what else lies beside them. Read only:
// looks at the files of a running driver, or of one that is gone, and changes nothing.
#ifndef ASCEND_DRA_CLI_CLAIMS_NODE_FILES_H_
#define ASCEND_DRA_CLI_CLAIMS_NODE_FILES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cdi/spec.h"
#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/paths.h"

namespace ascend::cli {

struct NodeFiles {
  struct CdiFile {
    std::string path;
    absl::StatusOr<cdi::Spec> spec;
  };
  struct OtherFile {
    std::string path;
    absl::Duration age;
  };

  std::string claims_directory;
  std::string boot_id;  // empty = unknown
  kubeletplugin::RecordStore::Contents records;
  // Per unreadable record, by claim UID: physical ids of the chips that are withheld because of it;
  // empty = they cannot be told, any free chip is.
  std::map<std::string, std::set<int>> withheld;
  std::map<std::string, CdiFile> cdi_files;  // of this driver, by claim UID
  std::map<std::string, OtherFile> locks;    // of claims, by claim UID
  std::vector<OtherFile> temporaries;        // of records and of this driver's CDI files
  std::vector<OtherFile> strangers;          // in the directory of records

  // Where the claim's CDI file is, or should be.
  std::string CdiPath(const std::string& claim_uid) const;
  std::string RecordPath(const std::string& claim_uid) const;
  std::string cdi_root;
  std::string cdi_prefix;
  std::string cdi_kind;
};

struct NodeFilesOptions {
  kubeletplugin::Paths::Options paths;
  std::string boot_id_file = "/proc/sys/kernel/random/boot_id";
  absl::Time now;  // ages count from here
};

// An error if the directory of records cannot be listed; it says what to check. Other directories
// may be missing. kInvalidArgument if a path or the driver name cannot be one.
absl::StatusOr<NodeFiles> ReadNodeFiles(const NodeFilesOptions& options);

// "npu-3,npu-4", as in the record.
std::string DevicesOf(const kubeletplugin::ClaimRecord& record);

}  // namespace ascend::cli

#endif  // ASCEND_DRA_CLI_CLAIMS_NODE_FILES_H_
