#include "cli/claims/test_node.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "cdi/json.h"
#include "gtest/gtest.h"
#include "kubeletplugin/claims/record_store.h"

namespace ascend::cli {

using kubeletplugin::ClaimRecord;
using kubeletplugin::RecordedChip;
using kubeletplugin::RecordedDevice;

namespace {

cdi::DeviceNode Node(std::string path, int64_t minor) {
  return {.path = std::move(path),
          .type = "c",
          .major = 235,
          .minor = minor,
          .file_mode = 0660,
          .permissions = "rw"};
}

}  // namespace

TestNode::TestNode() {
  for (const char* directory :
       {"kubelet/plugins/npu.huawei.com/claims", "kubelet/plugins/npu.huawei.com/locks", "cdi"}) {
    EXPECT_THAT(MakeDirectories(dir_.File(directory), 0755), IsOk());
  }
  WriteFile(dir_.File("boot_id"), "this-boot\n");
}

RecordedDevice TestNode::Device(int id, const std::string& claim_uid) {
  RecordedChip chip;
  chip.physical_id = id;
  chip.node_number = id;
  chip.uuid = absl::StrCat("UUID-", id);
  chip.pci_bus_id = absl::StrCat("0000:c", id, ":00.0");
  RecordedDevice device;
  device.requests = {"npu"};
  device.pool = "node-1";
  device.device = absl::StrCat("npu-", id);
  device.cdi_device = absl::StrCat(claim_uid, "-npu-", id);
  device.chips = {chip};
  device.published.name = device.device;
  return device;
}

ClaimRecord TestNode::Record(const std::string& name, const std::vector<int>& chips) {
  ClaimRecord record;
  record.claim_namespace = "default";
  record.claim_name = name;
  record.claim_uid = absl::StrCat("uid-", name);
  record.boot_id = "this-boot";
  for (const int chip : chips) record.devices.push_back(Device(chip, record.claim_uid));
  return record;
}

void TestNode::WriteRecord(const ClaimRecord& record) const {
  kubeletplugin::RecordStore store(dir_.File("kubelet/plugins/npu.huawei.com/claims"));
  EXPECT_THAT(store.Write(record), IsOk());
}

void TestNode::WriteCdiFile(const ClaimRecord& record) const {
  cdi::Spec spec;
  spec.kind = "k8s.npu.huawei.com/claim";
  spec.container_edits.device_nodes = {Node("/dev/davinci_manager", 0)};
  for (const RecordedDevice& device : record.devices) {
    cdi::Device entry;
    entry.name = device.cdi_device;
    for (const RecordedChip& chip : device.chips) {
      entry.container_edits.device_nodes.push_back(
          Node(absl::StrCat("/dev/davinci", chip.node_number), chip.node_number));
      entry.container_edits.env.push_back(
          absl::StrCat("ASCEND_DRA_NPU_", chip.physical_id, "_PHYSICAL_ID=", chip.physical_id));
    }
    spec.devices.push_back(std::move(entry));
  }
  const auto text = cdi::WriteJson(spec);
  ASSERT_THAT(text, IsOk());
  WriteFile(dir_.File(absl::StrCat("cdi/k8s.npu.huawei.com-claim_", record.claim_uid, ".json")),
            *text);
}

void TestNode::Prepare(const ClaimRecord& record) const {
  WriteRecord(record);
  WriteCdiFile(record);
}

void TestNode::WriteFile(const std::string& path, const std::string& text,
                         absl::Duration age) const {
  ASSERT_THAT(WriteFileAtomically(path, text, {.durable = false}), IsOk());
  const timespec then = absl::ToTimespec(absl::Now() - age);
  const timespec times[] = {then, then};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

std::string TestNode::RecordPath(const std::string& name) const {
  return dir_.File(absl::StrCat("kubelet/plugins/npu.huawei.com/claims/", name));
}
std::string TestNode::CdiPath(const std::string& name) const {
  return dir_.File(absl::StrCat("cdi/k8s.npu.huawei.com-claim_uid-", name, ".json"));
}
std::string TestNode::LockPath(const std::string& name) const {
  return dir_.File(absl::StrCat("kubelet/plugins/npu.huawei.com/locks/", name));
}

NodeFilesOptions TestNode::options() const {
  NodeFilesOptions options;
  options.paths.kubelet_root = dir_.File("kubelet");
  options.paths.cdi_root = dir_.File("cdi");
  options.boot_id_file = dir_.File("boot_id");
  options.now = absl::Now();
  return options;
}

NodeFiles TestNode::Read() const {
  absl::StatusOr<NodeFiles> files = ReadNodeFiles(options());
  EXPECT_THAT(files, IsOk());
  return files.ok() ? *std::move(files) : NodeFiles();
}

std::string TestNode::Fingerprint() const {
  std::vector<std::string> lines;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_.path())) {
    struct stat info;
    EXPECT_EQ(::lstat(entry.path().c_str(), &info), 0);
    lines.push_back(absl::StrCat(entry.path().string(), " ", info.st_mode, " ", info.st_ino, " ",
                                 info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec, " ",
                                 info.st_ctim.tv_nsec, " ", info.st_size));
  }
  std::sort(lines.begin(), lines.end());
  return absl::StrJoin(lines, "\n");
}

}  // namespace ascend::cli
