#include "kubeletplugin/claims/injection.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"

namespace ascend::kubeletplugin {
namespace {

using vnpu::Family;

constexpr char kDriverRoot[] = "/usr/local/Ascend/driver";
constexpr uint32_t kNodeMode = 0660;
// The chip is in the name: two requests of a claim may meet in one container, where a variable of
// the same name would replace the other's.
constexpr char kVariablePrefix[] = "ASCEND_DRA_NPU_";
constexpr char kVnpuPrefix[] = "ASCEND_DRA_VNPU_";
constexpr char kPhysicalId[] = "_PHYSICAL_ID=";

// Container path and, where it differs, host path of a node that all chips of a host share.
struct SharedNode {
  const char* path;
  const char* host_path = nullptr;
  bool required = false;
};

std::vector<SharedNode> SharedNodes(Family family) {
  switch (family) {
    case Family::k950:
      return {{.path = "/dev/davinci_manager", .required = true}, {.path = "/dev/hisi_hdc"}};
    case Family::k310B:
      return {{.path = "/dev/davinci_manager",
               .host_path = "/dev/davinci_manager_docker",
               .required = true},
              {.path = "/dev/svm0"},
              {.path = "/dev/ts_aisle"},
              {.path = "/dev/upgrade"},
              {.path = "/dev/sys"},
              {.path = "/dev/vdec"},
              {.path = "/dev/vpc"},
              {.path = "/dev/pngd"},
              {.path = "/dev/venc"},
              {.path = "/dev/log_drv"},
              {.path = "/dev/acodec"},
              {.path = "/dev/ai"},
              {.path = "/dev/ao"},
              {.path = "/dev/vo"},
              {.path = "/dev/hdmi"},
              {.path = "/dev/dvpp_cmdlist"}};
    default:
      return {{.path = "/dev/davinci_manager", .required = true},
              {.path = "/dev/devmm_svm"},
              {.path = "/dev/hisi_hdc"},
              // Uncertain whether 910B needs it for inference: injected where the host has it.
              {.path = "/dev/dvpp_cmdlist"}};
  }
}

// Directories whose character devices all go into the container (names differ between hosts).
std::vector<std::string> SharedNodeDirectories(Family family) {
  if (family == Family::k950) return {"/dev/uburma", "/dev/ummu"};
  return {};
}

bool HasRoce(Family family) {
  return family == Family::k910A || family == Family::k910B || family == Family::kA3;
}

// Below the driver's root.
std::vector<std::string> DriverFiles(Family family) {
  std::vector<std::string> files = {"lib64", "include", "version.info", "tools/hccn_tool",
                                    "tools/npu-smi"};
  if (family == Family::k950) files.push_back("topo");
  return files;
}

std::vector<std::string> SystemFiles(Family family) {
  std::vector<std::string> files = {"/usr/local/dcmi", "/usr/local/bin/npu-smi",
                                    "/usr/local/sbin/npu-smi", "/var/queue_schedule",
                                    "/etc/ascend_install.info"};
  if (HasRoce(family)) files.push_back("/etc/hccn.conf");
  // Rank tables and the like only for the product that reads them: one left over from other
  // hardware breaks every job.
  if (family == Family::k950) {
    files.insert(files.end(), {"/etc/hccl_rootinfo.json", "/etc/hixlep", "/lib/route.conf"});
  }
  if (family == Family::k310B) {
    files.insert(files.end(), {"/etc/sys_version.conf", "/etc/hdcBasic.cfg"});
  }
  return files;
}

cdi::Mount ReadOnlyMount(const std::string& host_path, const std::string& container_path) {
  return {.host_path = host_path,
          .container_path = container_path,
          .options = {"ro", "nosuid", "nodev", "rbind", "rprivate"}};
}

// No uid, gid, type or numbers: the container's user owns the node, and the runtime reads the
// numbers when it makes the container, so a reloaded driver does not matter.
cdi::DeviceNode Node(const std::string& path, const std::string& host_path) {
  return {.path = path,
          .host_path = host_path == path ? std::string() : host_path,
          .file_mode = kNodeMode,
          .permissions = "rw"};
}

std::string ChipNode(const RecordedChip& chip) {
  return absl::StrCat("/dev/davinci", chip.node_number);
}

// On the host; containers see it as a davinci node.
std::string VnpuNode(int id) { return absl::StrCat("/dev/vdavinci", id); }

absl::string_view KindName(HostFiles::Kind kind) {
  switch (kind) {
    case HostFiles::Kind::kMissing:
      return "is missing";
    case HostFiles::Kind::kFile:
      return "is a regular file, not a character device";
    case HostFiles::Kind::kDirectory:
      return "is a directory, not a character device";
    case HostFiles::Kind::kSymlink:
      return "is a symbolic link, which container runtimes refuse";
    case HostFiles::Kind::kCharacterDevice:
      return "is a character device";
    case HostFiles::Kind::kOther:
      break;
  }
  return "is not a character device";
}

}  // namespace

Injector::Injector(HostFiles host, InjectionOptions options)
    : host_(std::move(host)), options_(std::move(options)) {}

absl::StatusOr<std::set<unsigned>> Injector::DriverMajors() const {
  ASCEND_ASSIGN_OR_RETURN(const std::string text, ReadFile(options_.proc_devices));
  std::set<unsigned> majors;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "Block devices")) break;
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    unsigned major = 0;
    if (words.size() == 2 && (words[1] == "devdrv-cdev" || words[1] == "vdevdrv-cdev") &&
        absl::SimpleAtoi(words[0], &major)) {
      majors.insert(major);
    }
  }
  if (majors.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the Ascend kernel driver is not loaded: ", options_.proc_devices,
                     " has no devdrv-cdev; install or load the driver on the node"));
  }
  return majors;
}

absl::Status Injector::CheckNode(const HostFiles& host, const std::string& path,
                                 unsigned expected_minor, absl::string_view whose,
                                 const std::set<unsigned>& majors) const {
  const HostFiles::Entry entry = host.Look(path);
  if (entry.kind != HostFiles::Kind::kCharacterDevice) {
    return absl::FailedPreconditionError(
        absl::StrCat("device node ", path, " ", KindName(entry.kind),
                     ": check that the Ascend driver on the node runs (npu-smi info) and that "
                     "the chip has not dropped"));
  }
  const unsigned node_major = major(entry.device_number);
  const unsigned node_minor = minor(entry.device_number);
  if (majors.count(node_major) == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "device node ", path, " has major number ", node_major, ", but the driver's is ",
        *majors.begin(), " (devdrv-cdev in ", options_.proc_devices,
        "): the node is left over from an older driver load; re-create it or reboot the node"));
  }
  if (node_minor != expected_minor) {
    return absl::FailedPreconditionError(absl::StrCat(
        "device node ", path, " has minor number ", node_minor, ", expected ", expected_minor, " (",
        whose, "): it belongs to another chip; re-create the node or reboot"));
  }
  return absl::OkStatus();
}

absl::Status Injector::CheckNodes(const ClaimRecord& record) const {
  ASCEND_ASSIGN_OR_RETURN(const std::set<unsigned> majors, DriverMajors());
  const HostFiles host = host_.OnePass();
  for (const RecordedDevice& device : record.devices) {
    if (device.vnpu) {
      ASCEND_RETURN_IF_ERROR(CheckNode(host, VnpuNode(device.vnpu->id),
                                       static_cast<unsigned>(device.vnpu->id), "the vNPU's id",
                                       majors));
      continue;
    }
    for (const RecordedChip& chip : device.chips) {
      // Minor = physical id on every product; on 950 the name of the node differs from it, so this
      // is also the probe for its uncertain numbering.
      ASCEND_RETURN_IF_ERROR(CheckNode(host, ChipNode(chip),
                                       static_cast<unsigned>(chip.physical_id),
                                       "the chip's physical id", majors));
    }
  }
  return absl::OkStatus();
}

void Injector::WaitForVnpuNodes(const ClaimRecord& record, absl::Duration timeout) const {
  for (const RecordedDevice& device : record.devices) {
    if (device.vnpu && !host_.WaitFor(VnpuNode(device.vnpu->id), timeout)) return;
  }
}

std::string Injector::DriverRoot(const HostFiles& host) {
  const absl::StatusOr<std::string> text = host.Read("/etc/ascend_install.info");
  if (!text.ok()) return kDriverRoot;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    if (!absl::ConsumePrefix(&line, "Driver_Install_Path_Param=")) continue;
    line = absl::StripAsciiWhitespace(line);
    while (line.size() > 1 && line.back() == '/') line.remove_suffix(1);
    if (absl::StartsWith(line, "/")) return absl::StrCat(line, "/driver");
  }
  return kDriverRoot;
}

absl::StatusOr<cdi::ContainerEdits> Injector::CommonEdits(Family family) const {
  const HostFiles host = host_.OnePass();
  cdi::ContainerEdits edits;
  if (options_.ascend_visible_devices_void) edits.env.push_back("ASCEND_VISIBLE_DEVICES=void");

  for (const SharedNode& node : SharedNodes(family)) {
    std::string host_path = node.host_path != nullptr ? node.host_path : node.path;
    HostFiles::Entry entry = host.Look(host_path);
    // Not every driver makes the variant for containers.
    if (entry.kind == HostFiles::Kind::kMissing && node.host_path != nullptr) {
      host_path = node.path;
      entry = host.Look(host_path);
    }
    if (entry.kind == HostFiles::Kind::kCharacterDevice) {
      edits.device_nodes.push_back(Node(node.path, host_path));
    } else if (node.required) {
      return absl::FailedPreconditionError(
          absl::StrCat("device node ", host_path, " ", KindName(entry.kind),
                       ": no NPU works without it; check that the Ascend driver on the node runs"));
    }
  }
  for (const std::string& directory : SharedNodeDirectories(family)) {
    for (const std::string& name : host.List(directory)) {
      const std::string path = JoinPath(directory, name);
      if (host.Look(path).kind == HostFiles::Kind::kCharacterDevice) {
        edits.device_nodes.push_back(Node(path, path));
      }
    }
  }

  const std::string driver_root = DriverRoot(host);
  if (!host.Exists(JoinPath(driver_root, "lib64"))) {
    return absl::FailedPreconditionError(
        absl::StrCat("driver libraries ", JoinPath(driver_root, "lib64"),
                     " are missing on the node: install the Ascend driver, or correct "
                     "Driver_Install_Path_Param in /etc/ascend_install.info"));
  }
  for (const std::string& file : DriverFiles(family)) {
    const std::string host_path = JoinPath(driver_root, file);
    if (host.Exists(host_path)) {
      edits.mounts.push_back(ReadOnlyMount(host_path, JoinPath(kDriverRoot, file)));
    }
  }
  std::vector<std::string> files = SystemFiles(family);
  files.insert(files.end(), options_.extra_mounts.begin(), options_.extra_mounts.end());
  for (const std::string& path : files) {
    if (host.Exists(path)) edits.mounts.push_back(ReadOnlyMount(path, path));
  }
  return edits;
}

cdi::ContainerEdits Injector::DeviceEdits(const RecordedDevice& device) const {
  cdi::ContainerEdits edits;
  for (const RecordedChip& chip : device.chips) {
    if (device.vnpu) {
      // Never the chip's own node: that would be the whole chip.
      edits.device_nodes.push_back(
          Node(absl::StrCat("/dev/davinci", device.vnpu->id), VnpuNode(device.vnpu->id)));
      edits.env.push_back(
          absl::StrCat(kVnpuPrefix, device.vnpu->id, "_TEMPLATE=", device.vnpu->template_name));
    } else {
      edits.device_nodes.push_back(Node(ChipNode(chip), ChipNode(chip)));
    }
    const std::string prefix = absl::StrCat(kVariablePrefix, chip.physical_id);
    edits.env.push_back(absl::StrCat(prefix, kPhysicalId, chip.physical_id));
    if (!chip.roce_address.empty()) {
      edits.env.push_back(absl::StrCat(prefix, "_ROCE_ADDRESS=", chip.roce_address));
    }
  }
  return edits;
}

std::set<int> InjectedChips(const cdi::Spec& spec) {
  std::set<int> chips;
  for (const cdi::Device& device : spec.devices) {
    for (absl::string_view variable : device.container_edits.env) {
      const size_t at = variable.find(kPhysicalId);
      int id = -1;
      if (absl::StartsWith(variable, kVariablePrefix) && at != absl::string_view::npos &&
          absl::SimpleAtoi(variable.substr(at + strlen(kPhysicalId)), &id)) {
        chips.insert(id);
      }
    }
  }
  return chips;
}

absl::StatusOr<cdi::Spec> Injector::BuildSpec(const std::string& kind, const ClaimRecord& record,
                                              const std::vector<MetadataFile>& metadata) const {
  cdi::Spec spec;
  spec.kind = kind;
  Family family = Family::kUnknown;
  for (const RecordedDevice& device : record.devices) {
    if (!device.chips.empty()) family = device.chips.front().family;
    const bool seen = std::any_of(spec.devices.begin(), spec.devices.end(),
                                  [&](const auto& d) { return d.name == device.cdi_device; });
    if (seen) continue;
    spec.devices.push_back({.name = device.cdi_device, .container_edits = DeviceEdits(device)});
  }
  for (const MetadataFile& file : metadata) {
    cdi::Device device = {.name = file.cdi_device};
    device.container_edits.mounts.push_back(
        {.host_path = file.host_path,
         .container_path = file.container_path,
         .options = {"ro", "nosuid", "nodev", "noexec", "bind", "rprivate"}});
    spec.devices.push_back(std::move(device));
  }
  ASCEND_ASSIGN_OR_RETURN(spec.container_edits, CommonEdits(family));
  return spec;
}

}  // namespace ascend::kubeletplugin
