#include "vnpu/dcmi/mock/tree.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gtest/gtest.h"
#include "vnpu/dcmi/mock/test_node.h"

namespace ascend::dcmi::mock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

Node Shipped(const std::string& name) {
  TestNode copy(name);
  Node node;
  std::string error;
  EXPECT_TRUE(ParseNode(*ReadFile(NodeFile(copy.directory())), &node, &error)) << error;
  return node;
}

// Making device nodes takes a right that a test may not have.
bool MayMakeNodes(const TempDir& directory) {
  const std::string probe = directory.File("probe");
  const bool allowed = mknod(probe.c_str(), S_IFCHR | 0600, makedev(236, 1)) == 0;
  unlink(probe.c_str());
  return allowed;
}

TEST(TreeTest, WritesWhatADriverInstalls) {
  TempDir directory;
  const std::string root = directory.File("root");
  ASSERT_THAT(CreateTree(Shipped("8x910B3"), {.root = root, .device_nodes = false}), IsOk());
  EXPECT_THAT(ReadFile(root + "/usr/local/Ascend/driver/version.info"),
              IsOkAndHolds(HasSubstr("Version=25.5.1\n")));
  EXPECT_THAT(ReadFile(root + "/usr/local/Ascend/firmware/version.info"),
              IsOkAndHolds(HasSubstr("Version=7.8.0.5.216\n")));
  EXPECT_THAT(ReadFile(root + "/usr/local/Ascend/driver/lib64/driver/libdcmi.so"),
              IsOkAndHolds(HasSubstr("placeholder")));
  EXPECT_THAT(ListDirectory(root + "/usr/local/Ascend/driver"),
              IsOkAndHolds(ElementsAre("include", "lib64", "tools", "version.info")));
  EXPECT_THAT(ReadFile(root + "/etc/hccn.conf"),
              IsOkAndHolds(AllOf(HasSubstr("address_0=10.52.33.10\n"),
                                 HasSubstr("netmask_7=255.255.255.0\n"))));
  EXPECT_THAT(ReadFile(root + "/etc/ascend_install.info"),
              IsOkAndHolds(HasSubstr("Driver_Install_Path_Param=/usr/local/Ascend\n")));
  EXPECT_THAT(ReadFile(root + "/proc/devices"), IsOkAndHolds(HasSubstr("236 devdrv-cdev\n")));
  EXPECT_EQ(*ReadFile(root + "/etc/ascend-dra/mock-proc-devices"),
            *ReadFile(root + "/proc/devices"));
  EXPECT_THAT(ReadFile(root + "/sys/bus/pci/devices/0000:c1:00.0/numa_node"), IsOkAndHolds("6\n"));
  EXPECT_THAT(ReadFile(root + "/sys/devices/pci0000:c0/0000:c0:00.0/0000:c1:00.0/vendor"),
              IsOkAndHolds("0x19e5\n"));
  EXPECT_NE(access((root + "/dev").c_str(), F_OK), 0);
  // Again, over it.
  EXPECT_THAT(CreateTree(Shipped("8x910B4"), {.root = root, .device_nodes = false}), IsOk());
}

TEST(TreeTest, NpuSmiListsTheChipsItCanSee) {
  TempDir directory;
  const std::string root = directory.File("root");
  ASSERT_THAT(CreateTree(Shipped("8x910B3"), {.root = root, .device_nodes = false}), IsOk());
  const std::string script = *ReadFile(root + "/usr/local/bin/npu-smi");
  EXPECT_THAT(script, AllOf(HasSubstr("#!/bin/sh\n"), HasSubstr("910B3"), HasSubstr("0000:c1:00.0"),
                            HasSubstr("3331 / 65536")));
  EXPECT_EQ(system(("sh -n " + root + "/usr/local/bin/npu-smi").c_str()), 0);
  EXPECT_NE(system(("sh " + root + "/usr/local/bin/npu-smi set -t reset 2>/dev/null").c_str()), 0);
}

TEST(TreeTest, MakesDeviceNodesOfADriverlessMajor) {
  TempDir directory;
  if (!MayMakeNodes(directory)) GTEST_SKIP() << "no right to make device nodes";
  const std::string root = directory.File("root");
  ASSERT_THAT(CreateTree(Shipped("8x910B3"), {.root = root, .major = 240}), IsOk());
  struct stat info;
  ASSERT_EQ(lstat((root + "/dev/davinci3").c_str(), &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
  EXPECT_EQ(info.st_mode & 07777, 0660u);
  EXPECT_EQ(info.st_rdev, makedev(240, 3));
  EXPECT_EQ(lstat((root + "/dev/devmm_svm").c_str(), &info), 0);
  EXPECT_THAT(ReadFile(root + "/proc/devices"), IsOkAndHolds(HasSubstr("240 devdrv-cdev\n")));
  // A smaller node over it takes the chips away that it does not have.
  ASSERT_THAT(CreateTree(Shipped("2x300I-sparse"), {.root = root, .major = 240}), IsOk());
  EXPECT_THAT(ListDirectory(root + "/dev"),
              IsOkAndHolds(UnorderedElementsAre("davinci0", "davinci1", "davinci_manager",
                                                "devmm_svm", "dvpp_cmdlist", "hisi_hdc")));
  // Another major is somebody else's hardware.
  EXPECT_THAT(CreateTree(Shipped("8x910B3"), {.root = root, .major = 241}),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("davinci0")));
}

TEST(TreeTest, A950HasUbNodesInDirectories) {
  TempDir directory;
  if (!MayMakeNodes(directory)) GTEST_SKIP() << "no right to make device nodes";
  const std::string root = directory.File("root");
  ASSERT_THAT(CreateTree(Shipped("1x950PR"), {.root = root}), IsOk());
  EXPECT_THAT(
      ListDirectory(root + "/dev"),
      IsOkAndHolds(ElementsAre("davinci0", "davinci_manager", "hisi_hdc", "uburma", "ummu")));
  EXPECT_THAT(ListDirectory(root + "/dev/uburma"), IsOkAndHolds(ElementsAre("udma0", "udma1")));
}

TEST(TreeTest, RefusesARootComplexThatIsNone) {
  TempDir directory;
  Node node = Shipped("8x910B3");
  node.chips[2].pci.root = "pci/../../etc";
  EXPECT_THAT(CreateTree(node, {.root = directory.File("root"), .device_nodes = false}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("pci/../../etc")));
}

}  // namespace
}  // namespace ascend::dcmi::mock
