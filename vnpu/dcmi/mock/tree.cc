#include "vnpu/dcmi/mock/tree.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"

namespace ascend::dcmi::mock {
namespace {

// HwHiAiUser of a default driver installation.
constexpr uid_t kDriverUser = 1000;
constexpr mode_t kDeviceMode = 0660;
// Minors of the nodes that chips share. On a host they have majors of their own; here all nodes
// have the one major that surely has no driver, and these minors are far from any chip or vNPU.
constexpr unsigned kSharedMinors = 60000;

std::string PlaceholderLibrary(const std::string& name) {
  return absl::StrCat(name, ": placeholder in the file tree of a mock NPU node, not a library\n");
}

// Writes regular files below one directory, with their parents.
class Writer {
 public:
  explicit Writer(std::string root) : root_(std::move(root)) {}

  std::string Path(const std::string& path) const { return JoinPath(root_, path); }

  absl::Status File(const std::string& path, const std::string& content, mode_t mode = 0644) const {
    const std::string full = Path(path);
    ASCEND_RETURN_IF_ERROR(MakeDirectories(full.substr(0, full.rfind('/'))));
    return WriteFileAtomically(full, content, {.mode = mode, .durable = false});
  }

  absl::Status Link(const std::string& path, const std::string& target) const {
    const std::string full = Path(path);
    ASCEND_RETURN_IF_ERROR(MakeDirectories(full.substr(0, full.rfind('/'))));
    if (unlink(full.c_str()) != 0 && errno != ENOENT) return ErrnoToStatus(errno, full);
    if (symlink(target.c_str(), full.c_str()) != 0) return ErrnoToStatus(errno, full);
    return absl::OkStatus();
  }

 private:
  const std::string root_;
};

// /dev/davinciN of each chip, with its minor: N is the physical id, on 950 the logic id; the minor
// is the physical id everywhere.
std::vector<std::pair<std::string, unsigned>> ChipNodes(const Node& node) {
  std::vector<std::pair<std::string, unsigned>> nodes;
  for (size_t i = 0; i < node.chips.size(); ++i) {
    const Chip& chip = node.chips[i];
    if (!chip.physical_id.has_value()) continue;
    const int number = node.family == Family::k950 ? static_cast<int>(i) : *chip.physical_id;
    nodes.emplace_back(absl::StrCat("davinci", number), *chip.physical_id);
  }
  return nodes;
}

std::vector<std::string> SharedNodes(const Node& node) {
  if (node.family == Family::k950) {
    return {"davinci_manager", "hisi_hdc", "uburma/udma0", "uburma/udma1", "ummu/ummu0"};
  }
  return {"davinci_manager", "devmm_svm", "hisi_hdc", "dvpp_cmdlist"};
}

absl::Status MakeDeviceNodes(const Node& node, const TreeOptions& options) {
  const std::string directory = JoinPath(options.root, "dev");
  ASCEND_RETURN_IF_ERROR(MakeDirectories(directory));
  ASCEND_ASSIGN_OR_RETURN(const std::vector<std::string> old, ListDirectory(directory));
  for (const std::string& name : old) {
    struct stat info;
    const std::string path = JoinPath(directory, name);
    if (absl::StartsWith(name, "davinci") && lstat(path.c_str(), &info) == 0 &&
        S_ISCHR(info.st_mode) && major(info.st_rdev) == options.major) {
      if (unlink(path.c_str()) != 0) return ErrnoToStatus(errno, path);
    }
  }
  for (const auto& [name, minor_number] : ChipNodes(node)) {
    ASCEND_RETURN_IF_ERROR(
        MakeDeviceNode(JoinPath(directory, name), makedev(options.major, minor_number)));
  }
  unsigned minor_number = kSharedMinors;
  for (const std::string& name : SharedNodes(node)) {
    ASCEND_RETURN_IF_ERROR(
        MakeDeviceNode(JoinPath(directory, name), makedev(options.major, minor_number++)));
  }
  return absl::OkStatus();
}

std::string ProcDevices(unsigned major_number) {
  return absl::StrCat("Character devices:\n  1 mem\n  5 /dev/tty\n 10 misc\n",
                      absl::StrFormat("%3u", major_number),
                      " devdrv-cdev\n\nBlock devices:\n  7 loop\n259 blkext\n");
}

std::string IpText(const std::array<unsigned char, 4>& ip) {
  return absl::StrFormat("%d.%d.%d.%d", ip[0], ip[1], ip[2], ip[3]);
}

std::string HccnConf(const Node& node) {
  std::string text;
  for (const Chip& chip : node.chips) {
    if (!chip.roce.has_value() || !chip.physical_id.has_value()) continue;
    absl::StrAppend(&text, "address_", *chip.physical_id, "=", IpText(chip.roce->address), "\n");
    absl::StrAppend(&text, "netmask_", *chip.physical_id, "=", IpText(chip.roce->mask), "\n");
    absl::StrAppend(&text, "gateway_", *chip.physical_id, "=", IpText(chip.roce->gateway), "\n");
  }
  return text;
}

const char* HealthText(unsigned health) {
  constexpr const char* kTexts[] = {"OK", "Warning", "Alarm", "Critical"};
  return health < std::size(kTexts) ? kTexts[health] : "UNKNOWN";
}

// Two table rows of `npu-smi info`, in the layout of the real program.
std::string SmiRows(const Node& node, const Chip& chip) {
  const bool a3 = node.family == Family::kA3;
  const std::string power = chip.power_deciwatt.has_value() && node.family != Family::k310P
                                ? absl::StrFormat("%.1f", *chip.power_deciwatt / 10.0)
                                : (a3 ? "-" : "NA");
  const std::string memory = absl::StrCat(chip.memory.used_mib, " / ", chip.memory.total_mib);
  const std::string name = chip.chip_name;
  return absl::StrFormat("| %-5d %-19s | %-13s | %-11s %-11d %-21s |\n", chip.card, name,
                         HealthText(chip.health), power, chip.temperature.value_or(0), "0    / 0") +
         absl::StrFormat("| %-5d %-19d | %-13s | %-11d %-11s %-21s |\n", chip.device,
                         chip.physical_id.value_or(-1), chip.pci.BusId(), 0,
                         chip.memory.hbm ? "0 / 0" : memory, chip.memory.hbm ? memory : "");
}

// Shows the chips whose device nodes it can see, as the real one does in a container.
std::string NpuSmi(const Node& node) {
  const std::string line = absl::StrCat("+", std::string(91, '-'), "+\n");
  std::string script = absl::StrCat(
      "#!/bin/sh\n# npu-smi of a mock NPU node: prints what the node looked like when it was "
      "made.\n"
      "case \"$*\" in\n  info | \"\") ;;\n  *) echo \"npu-smi (mock): only 'info' is there\" >&2; "
      "exit 1 ;;\nesac\n"
      "seen=0\nfor node in /dev/davinci[0-9]*; do [ -e \"$node\" ] && seen=1; done\n"
      "if [ \"$seen\" = 0 ]; then\n"
      "  echo 'dcmi model initialized failed, because no NPU is visible. ret is -8005' >&2\n"
      "  exit 1\nfi\ncat_() { while IFS= read -r line; do echo \"$line\"; done; }\ncat_ <<'END'\n",
      line,
      absl::StrFormat("| npu-smi %-25s Version: %-46s |\n", node.driver_version,
                      node.driver_version),
      line,
      absl::StrFormat("| %-25s | %-13s | %-11s %-11s %-21s |\n", "NPU   Name", "Health", "Power(W)",
                      "Temp(C)", "Hugepages-Usage(page)"),
      absl::StrFormat("| %-25s | %-13s | %-11s %-11s %-21s |\n",
                      node.family == Family::kA3 ? "Chip  Phy-ID" : "Chip  Device", "Bus-Id",
                      "AICore(%)", "Memory(MB)", "HBM-Usage(MB)"),
      line, "END\n");
  const auto nodes = ChipNodes(node);
  size_t index = 0;
  for (const Chip& chip : node.chips) {
    if (!chip.physical_id.has_value()) continue;
    absl::StrAppend(&script, "[ -e /dev/", nodes[index++].first, " ] && cat_ <<'END'\n",
                    SmiRows(node, chip), line, "END\n");
  }
  absl::StrAppend(&script, "exit 0\n");
  return script;
}

absl::Status WriteDriver(const Node& node, const Writer& root) {
  const std::string driver = "usr/local/Ascend/driver/";
  for (const char* name : {"libascend_hal.so", "libdcmi.so", "libdrvdsmi_host.so"}) {
    ASCEND_RETURN_IF_ERROR(
        root.File(absl::StrCat(driver, "lib64/driver/", name), PlaceholderLibrary(name)));
  }
  for (const char* name : {"libc_sec.so", "libmmpa.so"}) {
    ASCEND_RETURN_IF_ERROR(
        root.File(absl::StrCat(driver, "lib64/common/", name), PlaceholderLibrary(name)));
  }
  ASCEND_RETURN_IF_ERROR(root.File("usr/local/dcmi/libdcmi.so", PlaceholderLibrary("libdcmi.so")));
  ASCEND_RETURN_IF_ERROR(root.File("usr/local/dcmi/dcmi_interface_api.h",
                                   "/* placeholder in the file tree of a mock NPU node */\n"));
  ASCEND_RETURN_IF_ERROR(root.File(absl::StrCat(driver, "include/dsmi_common_interface.h"),
                                   "/* placeholder in the file tree of a mock NPU node */\n"));
  ASCEND_RETURN_IF_ERROR(root.File(absl::StrCat(driver, "tools/hccn_tool"),
                                   "#!/bin/sh\necho 'hccn_tool is not in the mock' >&2\nexit 1\n",
                                   0755));
  ASCEND_RETURN_IF_ERROR(root.File(absl::StrCat(driver, "version.info"),
                                   absl::StrCat("Version=", node.driver_version,
                                                "\npackage_version=", node.driver_version, "\n")));
  ASCEND_RETURN_IF_ERROR(root.File("usr/local/Ascend/firmware/version.info",
                                   absl::StrCat("Version=", node.firmware_version, "\n")));
  ASCEND_RETURN_IF_ERROR(root.File("usr/local/bin/npu-smi", NpuSmi(node), 0755));
  ASCEND_RETURN_IF_ERROR(root.File("etc/hccn.conf", HccnConf(node)));
  return root.File("etc/ascend_install.info",
                   "UserName=HwHiAiUser\nUserGroup=HwHiAiUser\n"
                   "Driver_Install_Path_Param=/usr/local/Ascend\nDriver_Install_For_All=no\n"
                   "Driver_Install_Mode=normal\n");
}

absl::Status WriteSysfs(const Node& node, const Writer& sysfs) {
  std::map<std::string, const Pci*> functions;  // both chips of a Duo card are one function
  for (const Chip& chip : node.chips) functions.emplace(chip.pci.BusId(), &chip.pci);
  for (const auto& [bus_id, pci] : functions) {
    const std::string port = absl::StrCat(pci->root.substr(3), ":00.0");
    const std::string directory = absl::StrCat("devices/", pci->root, "/", port, "/", bus_id);
    const std::pair<const char*, std::string> files[] = {
        {"numa_node", absl::StrCat(pci->numa_node)},
        {"vendor", absl::StrFormat("0x%04x", pci->vendor_id)},
        {"device", absl::StrFormat("0x%04x", pci->device_id)},
        {"class", "0x120000"}};
    for (const auto& [name, value] : files) {
      ASCEND_RETURN_IF_ERROR(
          sysfs.File(absl::StrCat(directory, "/", name), absl::StrCat(value, "\n")));
    }
    ASCEND_RETURN_IF_ERROR(
        sysfs.Link(absl::StrCat("bus/pci/devices/", bus_id), absl::StrCat("../../../", directory)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MakeDeviceNode(const std::string& path, dev_t device) {
  ASCEND_RETURN_IF_ERROR(MakeDirectories(path.substr(0, path.rfind('/'))));
  struct stat info;
  if (lstat(path.c_str(), &info) == 0) {
    if (!S_ISCHR(info.st_mode) || major(info.st_rdev) != major(device)) {
      return absl::AlreadyExistsError(
          absl::StrCat(path, " exists and is not of a mock node: is there real hardware?"));
    }
    if (unlink(path.c_str()) != 0) return ErrnoToStatus(errno, path);
  }
  if (mknod(path.c_str(), S_IFCHR | kDeviceMode, device) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("mknod ", path));
  }
  // The umask must not show.
  if (chmod(path.c_str(), kDeviceMode) != 0 || chown(path.c_str(), kDriverUser, kDriverUser) != 0) {
    return ErrnoToStatus(errno, path);
  }
  return absl::OkStatus();
}

absl::Status CreateTree(const Node& node, const TreeOptions& options) {
  for (const Chip& chip : node.chips) {
    if (!absl::StartsWith(chip.pci.root, "pci") || absl::StrContains(chip.pci.root, '/')) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the chip at ", chip.pci.BusId(), " has the bad pci root \"", chip.pci.root, "\""));
    }
  }
  const bool real_root = options.root == "/";
  const Writer root(options.root);
  if (options.device_nodes) {
    ASCEND_RETURN_IF_ERROR(MakeDeviceNodes(node, options));
  }
  ASCEND_RETURN_IF_ERROR(WriteDriver(node, root));
  ASCEND_RETURN_IF_ERROR(root.File("etc/ascend-dra/mock-proc-devices", ProcDevices(options.major)));
  if (!real_root) {
    ASCEND_RETURN_IF_ERROR(root.File("proc/devices", ProcDevices(options.major)));
  }
  std::string sysfs = options.sysfs_directory;
  if (sysfs.empty()) sysfs = real_root ? "/etc/ascend-dra/mock-sys" : root.Path("sys");
  return WriteSysfs(node, Writer(sysfs));
}

}  // namespace ascend::dcmi::mock
