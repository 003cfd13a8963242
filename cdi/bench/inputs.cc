#include "cdi/bench/inputs.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "cdi/json.h"

namespace ascend::cdi {
namespace {

constexpr int kChips = 8;
constexpr char kKind[] = "k8s.npu.huawei.com/claim";

DeviceNode Node(const std::string& path) {
  return {.path = path, .host_path = "/dev/null", .file_mode = 0660, .permissions = "rw"};
}

ContainerEdits SharedEdits() {
  ContainerEdits edits;
  edits.env = {"ASCEND_VISIBLE_DEVICES=void"};
  for (const char* name : {"davinci_manager", "devmm_svm", "hisi_hdc", "dvpp_cmdlist"}) {
    edits.device_nodes.push_back(Node(absl::StrCat("/dev/", name)));
  }
  for (const char* path :
       {"/usr/local/Ascend/driver/lib64", "/usr/local/Ascend/driver/include",
        "/usr/local/Ascend/driver/version.info", "/usr/local/Ascend/driver/tools/hccn_tool",
        "/usr/local/dcmi", "/usr/local/bin/npu-smi", "/var/queue_schedule",
        "/etc/ascend_install.info", "/etc/hccn.conf"}) {
    edits.mounts.push_back({path, path, {"ro", "nosuid", "nodev", "rbind", "rprivate"}, ""});
  }
  return edits;
}

Spec Claim(const std::string& uid, int first_chip, int chips) {
  Spec spec{.kind = kKind, .container_edits = SharedEdits()};
  for (int chip = first_chip; chip < first_chip + chips; ++chip) {
    Device device{.name = absl::StrCat(uid, "-npu-", chip)};
    device.container_edits.env = {
        absl::StrCat("ASCEND_DRA_NPU_", chip, "_PHYSICAL_ID=", chip),
        absl::StrCat("ASCEND_DRA_NPU_", chip, "_ROCE_ADDRESS=192.0.2.", chip + 1)};
    device.container_edits.device_nodes = {Node(absl::StrCat("/dev/davinci", chip))};
    spec.devices.push_back(device);
  }
  return spec;
}

absl::Status WriteText(const std::string& path, const std::string& text) {
  return WriteFileAtomically(path, text, {.mode = 0644, .durable = false});
}

}  // namespace

Spec ClaimSpec() { return Claim("2f1c9a52-6c1e-4a58-b9a0-5a1d2c1f6c11", 0, kChips); }

std::vector<std::string> ClaimDevices() {
  std::vector<std::string> names;
  for (const Device& device : ClaimSpec().devices) {
    names.push_back(absl::StrCat(kKind, "=", device.name));
  }
  return names;
}

Spec ScannedSpec(int index) {
  return Claim(absl::StrFormat("00000000-0000-4000-8000-%012d", index), index % kChips, 1);
}

absl::Status WriteScannedFiles(const std::string& directory) {
  ASCEND_RETURN_IF_ERROR(MakeDirectories(directory));
  for (int i = 0; i < kScannedFiles; ++i) {
    ASCEND_ASSIGN_OR_RETURN(const std::string text, WriteJson(ScannedSpec(i)));
    ASCEND_RETURN_IF_ERROR(WriteText(JoinPath(directory, absl::StrFormat("%03d.json", i)), text));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadConfig() { return ReadFile(CDI_TESTDATA "/config.json"); }

absl::Status WriteInputs(const std::string& directory) {
  ASCEND_RETURN_IF_ERROR(WriteScannedFiles(JoinPath(directory, "scan")));
  ASCEND_ASSIGN_OR_RETURN(const std::string claim, WriteJson(ClaimSpec()));
  ASCEND_RETURN_IF_ERROR(WriteText(JoinPath(directory, "claim.json"), claim));
  ASCEND_ASSIGN_OR_RETURN(const std::string config, ReadConfig());
  ASCEND_RETURN_IF_ERROR(WriteText(JoinPath(directory, "config.json"), config));
  return WriteText(JoinPath(directory, "devices.txt"),
                   absl::StrCat(absl::StrJoin(ClaimDevices(), "\n"), "\n"));
}

}  // namespace ascend::cdi
