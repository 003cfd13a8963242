#include "cli/claims/findings.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace ascend::cli {
namespace {

using kubeletplugin::ClaimRecord;
using kubeletplugin::RecordedChip;
using kubeletplugin::RecordedDevice;
using kubeletplugin::RecordStore;
using kubeletplugin::UnreadableRecord;

constexpr char kRestored[] =
    "the running driver writes it anew within seconds: if it stays so, see the log of the "
    "plugin container";
// While it runs, the driver looks for files that are missing, not into those that are there.
constexpr char kDeleteCdiFile[] =
    "delete it: the running driver writes it anew within seconds; if it does not, see the log of "
    "the plugin container";
constexpr char kSwept[] = "the driver removes it when it starts; to remove it now, delete it";

Finding Of(const ClaimRecord& record, std::string kind, std::string path, std::string problem,
           std::string remedy) {
  return {.kind = std::move(kind),
          .claim = record.claim(),
          .uid = record.claim_uid,
          .path = std::move(path),
          .problem = std::move(problem),
          .remedy = std::move(remedy)};
}

void CheckUnreadable(const NodeFiles& files, std::vector<Finding>* findings) {
  for (const UnreadableRecord& bad : files.records.unreadable) {
    const std::string path = files.RecordPath(bad.claim_uid);
    findings->push_back(
        {.kind = "record_unreadable",
         .uid = bad.claim_uid,
         .path = path,
         .problem = std::string(bad.error.message()),
         .remedy = absl::IsUnimplemented(bad.error)
                       ? "a newer version of the driver wrote it: upgrade the driver again"
                       : absl::StrCat("its chips are withheld until the kubelet unprepares the "
                                      "claim; if its pods are gone for good, delete ",
                                      path)});
  }
}

// The device nodes of chips and vNPUs in the edits, as the host calls them.
std::set<std::string> NpuNodes(const cdi::ContainerEdits& edits) {
  std::set<std::string> nodes;
  for (const cdi::DeviceNode& node : edits.device_nodes) {
    const std::string& path = node.host_path.empty() ? node.path : node.host_path;
    absl::string_view number = path;
    int ignored = 0;
    if ((absl::ConsumePrefix(&number, "/dev/davinci") ||
         absl::ConsumePrefix(&number, "/dev/vdavinci")) &&
        absl::SimpleAtoi(number, &ignored)) {
      nodes.insert(path);
    }
  }
  return nodes;
}

std::set<std::string> NodesOf(const RecordedDevice& device) {
  if (device.vnpu) return {absl::StrCat("/dev/vdavinci", device.vnpu->id)};
  std::set<std::string> nodes;
  for (const RecordedChip& chip : device.chips) {
    nodes.insert(absl::StrCat("/dev/davinci", chip.node_number));
  }
  return nodes;
}

// How the CDI file differs from the record in what matters; empty = not at all. It may hold devices
// that are no chips, which the record does not name.
std::string Difference(const ClaimRecord& record, const cdi::Spec& spec, const std::string& kind) {
  if (spec.kind != kind) return absl::StrCat("its kind is ", spec.kind, " and not ", kind);
  std::map<std::string, std::set<std::string>> given;
  std::set<std::string> extra = NpuNodes(spec.container_edits);
  for (const cdi::Device& device : spec.devices) {
    given[device.name] = NpuNodes(device.container_edits);
    extra.insert(given[device.name].begin(), given[device.name].end());
  }
  for (const RecordedDevice& device : record.devices) {
    const auto found = given.find(device.cdi_device);
    if (found == given.end()) return absl::StrCat("it has no device ", device.cdi_device);
    for (const std::string& node : NodesOf(device)) {
      if (found->second.count(node) != 0) continue;
      return absl::StrCat("its device ", device.cdi_device, " lacks ", node);
    }
  }
  for (const RecordedDevice& device : record.devices) {
    for (const std::string& node : NodesOf(device)) extra.erase(node);
  }
  if (extra.empty()) return "";
  return absl::StrCat("it gives what the record does not: ", absl::StrJoin(extra, ", "));
}

void CheckCdiFiles(const NodeFiles& files, std::vector<Finding>* findings) {
  for (const auto& record : files.records.records) {
    // Nobody was given anything yet, or has it any more.
    if (record->state != kubeletplugin::ClaimState::kCompleted) continue;
    const std::string path = files.CdiPath(record->claim_uid);
    const auto file = files.cdi_files.find(record->claim_uid);
    if (file == files.cdi_files.end()) {
      findings->push_back(
          Of(*record, "cdi_file_missing", path,
             "the claim's CDI file is missing: containers of the claim cannot start", kRestored));
    } else if (!file->second.spec.ok()) {
      findings->push_back(Of(*record, "cdi_file_unreadable", path,
                             std::string(file->second.spec.status().message()), kDeleteCdiFile));
    } else if (const std::string difference =
                   Difference(*record, *file->second.spec, files.cdi_kind);
               !difference.empty()) {
      findings->push_back(Of(*record, "cdi_file_differs", path, difference, kDeleteCdiFile));
    }
  }
}

// May two claims hold these at the same time?
bool Compatible(const RecordedDevice& a, const RecordedDevice& b) {
  if (a.admin_access || b.admin_access) return true;
  if (a.vnpu && b.vnpu) return a.device != b.device;
  return !a.share_id.empty() && !b.share_id.empty() && a.share_id != b.share_id;
}

void CheckChips(const NodeFiles& files, std::vector<Finding>* findings) {
  using Holder = std::pair<const ClaimRecord*, const RecordedDevice*>;
  std::map<int, std::vector<Holder>> holders;
  for (const auto& record : files.records.records) {
    for (const RecordedDevice& device : record->devices) {
      for (const RecordedChip& chip : device.chips) {
        for (const auto& [other, other_device] : holders[chip.physical_id]) {
          if (other == record.get() || Compatible(device, *other_device)) continue;
          findings->push_back(Of(*record, "chip_held_twice", files.RecordPath(record->claim_uid),
                                 absl::StrCat("chip ", chip.physical_id, " is also held by claim ",
                                              other->claim(), " (UID ", other->claim_uid, ")"),
                                 "delete the pods of one of the two claims"));
        }
        holders[chip.physical_id].push_back({record.get(), &device});
      }
    }
  }
}

void CheckLeftovers(const NodeFiles& files, std::vector<Finding>* findings) {
  std::set<std::string> known;
  for (const auto& record : files.records.records) known.insert(record->claim_uid);
  for (const UnreadableRecord& bad : files.records.unreadable) known.insert(bad.claim_uid);
  for (const auto& [uid, file] : files.cdi_files) {
    if (known.count(uid) != 0) continue;
    findings->push_back({.kind = "cdi_file_orphaned",
                         .uid = uid,
                         .path = file.path,
                         .problem = "a CDI file of a claim without a record",
                         .remedy = kSwept});
  }
  // Younger ones may belong to an operation that is under way.
  for (const auto& [uid, lock] : files.locks) {
    if (known.count(uid) != 0 || lock.age <= RecordStore::kStaleTempFileAge) continue;
    findings->push_back({.kind = "lock_stale",
                         .uid = uid,
                         .path = lock.path,
                         .problem = "a lock file of a claim without a record",
                         .remedy = kSwept});
  }
  for (const NodeFiles::OtherFile& file : files.temporaries) {
    if (file.age <= RecordStore::kStaleTempFileAge) continue;
    findings->push_back({.kind = "temporary_stale",
                         .path = file.path,
                         .problem = "what a writer that crashed left behind",
                         .remedy = kSwept});
  }
  for (const NodeFiles::OtherFile& file : files.strangers) {
    findings->push_back({.kind = "file_unknown",
                         .path = file.path,
                         .problem = "no claim record has this name",
                         .remedy = "the driver ignores it: move it away"});
  }
}

}  // namespace

std::vector<Finding> FindProblems(const NodeFiles& files) {
  std::vector<Finding> findings;
  CheckUnreadable(files, &findings);
  CheckChips(files, &findings);
  CheckCdiFiles(files, &findings);
  CheckLeftovers(files, &findings);
  return findings;
}

}  // namespace ascend::cli
