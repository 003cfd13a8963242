#include "cli/claims/node_files.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "cdi/json.h"
#include "kubeletplugin/claims/quarantine.h"

namespace ascend::cli {
namespace {

using kubeletplugin::IsSafeClaimUid;
using kubeletplugin::Paths;
using kubeletplugin::RecordStore;

bool IsTemporary(absl::string_view name) {
  return absl::StartsWith(name, ".") && absl::EndsWith(name, ".tmp");
}

NodeFiles::OtherFile OtherFileAt(std::string path, absl::Time now) {
  struct stat info;
  absl::Duration age = absl::ZeroDuration();  // gone already
  if (::lstat(path.c_str(), &info) == 0) age = now - absl::TimeFromTimespec(info.st_mtim);
  return {.path = std::move(path), .age = age};
}

// A directory that is not there holds nothing.
absl::StatusOr<std::vector<std::string>> List(const std::string& directory) {
  absl::StatusOr<std::vector<std::string>> names = ListDirectory(directory);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  return names;
}

absl::StatusOr<cdi::Spec> ReadSpec(const std::string& path) {
  ASCEND_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return cdi::ReadJson(text);
}

}  // namespace

std::string NodeFiles::CdiPath(const std::string& claim_uid) const {
  return JoinPath(cdi_root, absl::StrCat(cdi_prefix, claim_uid, ".json"));
}

std::string NodeFiles::RecordPath(const std::string& claim_uid) const {
  return JoinPath(claims_directory, claim_uid);
}

absl::StatusOr<NodeFiles> ReadNodeFiles(const NodeFilesOptions& options) {
  ASCEND_ASSIGN_OR_RETURN(const Paths paths, Paths::Create(options.paths));
  NodeFiles files;
  files.claims_directory = paths.claims_directory();
  files.cdi_root = paths.cdi_root();
  files.cdi_prefix = paths.cdi_file_prefix();
  files.cdi_kind = paths.cdi_kind();

  // CDI files and locks before records: what is prepared meanwhile then has a record without a CDI
  // file at worst, and the driver writes the CDI file first.
  ASCEND_ASSIGN_OR_RETURN(const std::vector<std::string> cdi_names, List(files.cdi_root));
  for (const std::string& name : cdi_names) {
    const std::string path = JoinPath(files.cdi_root, name);
    if (IsTemporary(name) && absl::StartsWith(name, absl::StrCat(".", files.cdi_prefix))) {
      files.temporaries.push_back(OtherFileAt(path, options.now));
    } else if (std::string uid = paths.claim_of_cdi_file(name); !uid.empty()) {
      absl::StatusOr<cdi::Spec> spec = ReadSpec(path);
      if (!absl::IsNotFound(spec.status())) {
        files.cdi_files.emplace(std::move(uid), NodeFiles::CdiFile{path, std::move(spec)});
      }
    }
  }
  ASCEND_ASSIGN_OR_RETURN(const std::vector<std::string> locks, List(paths.locks_directory()));
  for (const std::string& name : locks) {
    std::string uid = Paths::claim_of_lock(name);
    if (uid.empty()) continue;
    files.locks.emplace(std::move(uid),
                        OtherFileAt(JoinPath(paths.locks_directory(), name), options.now));
  }

  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(files.claims_directory);
  if (absl::IsNotFound(names.status())) {
    return absl::NotFoundError(
        absl::StrCat(files.claims_directory,
                     " is not there: check --kubelet-root and --driver-name, and that "
                     "this is a node on which the driver has run"));
  }
  ASCEND_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    if (IsSafeClaimUid(name)) continue;
    auto& list = IsTemporary(name) ? files.temporaries : files.strangers;
    list.push_back(OtherFileAt(files.RecordPath(name), options.now));
  }
  RecordStore records(files.claims_directory);
  ASCEND_ASSIGN_OR_RETURN(files.records, records.ReadAll());
  for (const kubeletplugin::UnreadableRecord& bad : files.records.unreadable) {
    files.withheld.emplace(bad.claim_uid, kubeletplugin::ChipsOf(bad, paths));
  }
  // A claim that was prepared since the CDI files were listed.
  for (const auto& record : files.records.records) {
    if (files.cdi_files.count(record->claim_uid) != 0) continue;
    const std::string path = files.CdiPath(record->claim_uid);
    absl::StatusOr<cdi::Spec> spec = ReadSpec(path);
    if (absl::IsNotFound(spec.status())) continue;
    files.cdi_files.emplace(record->claim_uid, NodeFiles::CdiFile{path, std::move(spec)});
  }

  if (absl::StatusOr<std::string> id = ReadFile(options.boot_id_file); id.ok()) {
    absl::StripAsciiWhitespace(&*id);
    files.boot_id = *std::move(id);
  }
  return files;
}

std::string DevicesOf(const kubeletplugin::ClaimRecord& record) {
  return absl::StrJoin(record.devices, ",", [](std::string* out, const auto& device) {
    absl::StrAppend(out, device.device);
  });
}

}  // namespace ascend::cli
