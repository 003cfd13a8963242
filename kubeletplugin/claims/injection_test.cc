#include "kubeletplugin/claims/injection.h"

#include <sys/stat.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "cdi/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/testing/fake_host.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using vnpu::Family;

constexpr char kKind[] = "k8s.npu.huawei.com/claim";
constexpr char kDriver[] = "/usr/local/Ascend/driver";

RecordedChip Chip(int physical_id, Family family, int node_number = -1) {
  return {.physical_id = physical_id,
          .node_number = node_number < 0 ? physical_id : node_number,
          .family = family};
}

RecordedDevice Device(const std::string& name, std::vector<RecordedChip> chips) {
  RecordedDevice device;
  device.requests = {"npu"};
  device.pool = "node-1";
  device.device = name;
  device.cdi_device = absl::StrCat("uid-1-", name);
  device.chips = std::move(chips);
  return device;
}

ClaimRecord Claim(std::vector<RecordedDevice> devices) {
  ClaimRecord record;
  record.claim_namespace = "default";
  record.claim_name = "job";
  record.claim_uid = "uid-1";
  record.devices = std::move(devices);
  return record;
}

// "path" or "path<-host path".
std::vector<std::string> Nodes(const cdi::ContainerEdits& edits) {
  std::vector<std::string> nodes;
  for (const cdi::DeviceNode& node : edits.device_nodes) {
    nodes.push_back(node.host_path.empty() ? node.path
                                           : absl::StrCat(node.path, "<-", node.host_path));
  }
  return nodes;
}

std::vector<std::string> Mounts(const cdi::ContainerEdits& edits) {
  std::vector<std::string> mounts;
  for (const cdi::Mount& mount : edits.mounts) {
    mounts.push_back(mount.host_path == mount.container_path
                         ? mount.host_path
                         : absl::StrCat(mount.container_path, "<-", mount.host_path));
  }
  return mounts;
}

// What holds for every spec of ours.
void CheckRules(const cdi::Spec& spec) {
  std::vector<const cdi::ContainerEdits*> all = {&spec.container_edits};
  for (const cdi::Device& device : spec.devices) {
    all.push_back(&device.container_edits);
    EXPECT_FALSE(device.container_edits.empty()) << device.name;  // CDI-09
  }
  std::set<std::string> paths;
  for (const cdi::ContainerEdits* edits : all) {
    EXPECT_THAT(edits->hooks, IsEmpty());  // CDI-17
    for (const cdi::DeviceNode& node : edits->device_nodes) {
      EXPECT_TRUE(paths.insert(node.path).second) << node.path;  // CDI-08
      EXPECT_EQ(node.file_mode, 0660u) << node.path;             // CDI-14
      EXPECT_EQ(node.permissions, "rw") << node.path;            // CDI-13
      EXPECT_FALSE(node.uid.has_value()) << node.path;           // CDI-13
      EXPECT_FALSE(node.gid.has_value()) << node.path;
      EXPECT_EQ(node.type, "") << node.path;  // CDI-05: the runtime reads type and numbers
      EXPECT_EQ(node.major, 0) << node.path;
      EXPECT_EQ(node.minor, 0) << node.path;
    }
    for (const cdi::Mount& mount : edits->mounts) {
      EXPECT_THAT(mount.options, ElementsAre("ro", "nosuid", "nodev", "rbind", "rprivate"));
      EXPECT_NE(mount.container_path, "/usr/local/Ascend");  // it would hide the image's toolkit
    }
    // CDI-12: only variables of our own, and the switch.
    for (const std::string& variable : edits->env) {
      EXPECT_TRUE(absl::StartsWith(variable, "ASCEND_DRA_NPU_") ||
                  variable == "ASCEND_VISIBLE_DEVICES=void")
          << variable;
    }
  }
}

class InjectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!FakeHost::CanMakeNodes()) GTEST_SKIP() << "mknod is refused: needs root with CAP_MKNOD";
    host_.InstallDriver();
  }
  cdi::Spec Build(const ClaimRecord& record) {
    absl::StatusOr<cdi::Spec> spec = host_.injector().BuildSpec(kKind, record, {});
    EXPECT_THAT(spec, IsOk());
    if (!spec.ok()) return {};
    CheckRules(*spec);
    // CDI-18: the strict reader takes every spec that we make.
    EXPECT_THAT(cdi::WriteJson(*spec), IsOk());
    return *std::move(spec);
  }
  absl::Status CheckOne(const RecordedChip& chip) {
    return host_.injector().CheckNodes(Claim({Device("npu", {chip})}));
  }

  TempDir dir_;
  FakeHost host_{dir_.File("host")};
};

// ------------------------------------------------------------------------- what each product gets

// The whole file, byte by byte.
TEST_F(InjectionTest, Golden910B) {
  host_.Node("/dev/dvpp_cmdlist", FakeHost::kControlMajor, 3);
  host_.File("/etc/hccn.conf");
  host_.File("/etc/ascend_install.info", "Driver_Install_Path_Param=/usr/local/Ascend\n");
  host_.File("/usr/local/Ascend/driver/tools/hccn_tool");
  host_.Directory("/var/queue_schedule");
  RecordedChip chip = Chip(3, Family::k910B);
  chip.roce_address = "29.17.151.115";
  const cdi::Spec spec = Build(Claim({Device("npu-3", {chip})}));
  EXPECT_EQ(cdi::WriteJson(spec).value_or(""),
            ReadFile(absl::StrCat(ASCEND_DRA_TESTDATA, "/cdi/910B.json")).value_or(""));
}

TEST_F(InjectionTest, Golden910A) {
  host_.File("/etc/hccn.conf");
  const cdi::Spec spec = Build(Claim({Device("npu-0", {Chip(0, Family::k910A)})}));
  EXPECT_THAT(Nodes(spec.container_edits),
              ElementsAre("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"));
  EXPECT_THAT(Mounts(spec.container_edits),
              ElementsAre("/usr/local/Ascend/driver/lib64", "/usr/local/Ascend/driver/include",
                          "/usr/local/Ascend/driver/version.info", "/usr/local/dcmi",
                          "/usr/local/bin/npu-smi", "/etc/hccn.conf"));
  ASSERT_EQ(spec.devices.size(), 1u);
  EXPECT_EQ(spec.devices[0].name, "uid-1-npu-0");
  EXPECT_THAT(Nodes(spec.devices[0].container_edits), ElementsAre("/dev/davinci0"));
  EXPECT_THAT(spec.devices[0].container_edits.env, ElementsAre("ASCEND_DRA_NPU_0_PHYSICAL_ID=0"));
}

// One device is a module of two dies; ids ascend inside it.
TEST_F(InjectionTest, GoldenA3Module) {
  RecordedChip low = Chip(2, Family::kA3), high = Chip(3, Family::kA3);
  low.roce_address = "10.0.0.2";
  high.roce_address = "10.0.0.3";
  const cdi::Spec spec = Build(Claim({Device("npu-2-3", {low, high})}));
  EXPECT_THAT(Nodes(spec.container_edits),
              ElementsAre("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"));
  ASSERT_EQ(spec.devices.size(), 1u);
  EXPECT_EQ(spec.devices[0].name, "uid-1-npu-2-3");
  EXPECT_THAT(Nodes(spec.devices[0].container_edits),
              ElementsAre("/dev/davinci2", "/dev/davinci3"));
  EXPECT_THAT(
      spec.devices[0].container_edits.env,
      ElementsAre("ASCEND_DRA_NPU_2_PHYSICAL_ID=2", "ASCEND_DRA_NPU_2_ROCE_ADDRESS=10.0.0.2",
                  "ASCEND_DRA_NPU_3_PHYSICAL_ID=3", "ASCEND_DRA_NPU_3_ROCE_ADDRESS=10.0.0.3"));
}

// No RoCE: the network configuration of another product's days stays outside.
TEST_F(InjectionTest, Golden310P) {
  host_.File("/etc/hccn.conf");
  const cdi::Spec spec = Build(Claim({Device("npu-1", {Chip(1, Family::k310P)})}));
  EXPECT_THAT(Nodes(spec.container_edits),
              ElementsAre("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"));
  EXPECT_THAT(Mounts(spec.container_edits), Not(Contains("/etc/hccn.conf")));
  EXPECT_THAT(Nodes(spec.devices.at(0).container_edits), ElementsAre("/dev/davinci1"));
}

// CDI-03: directories of nodes are enumerated, never injected themselves. The node's name is the
// logic id, its minor the physical id.
TEST_F(InjectionTest, Golden950) {
  host_.Node("/dev/dvpp_cmdlist", FakeHost::kControlMajor, 3);
  host_.Node("/dev/uburma/udma1", 240, 1);
  host_.Node("/dev/uburma/udma0", 240, 0);
  host_.File("/dev/uburma/readme");
  host_.Directory("/dev/uburma/sub");
  host_.Node("/dev/ummu/tid", 241, 0);
  host_.File("/etc/hccl_rootinfo.json");
  host_.Directory("/etc/hixlep");
  host_.File("/lib/route.conf");
  host_.Directory("/usr/local/Ascend/driver/topo");
  host_.Chip(/*node_number=*/1, /*physical_id=*/4);
  const RecordedChip chip = Chip(4, Family::k950, /*node_number=*/1);
  EXPECT_THAT(CheckOne(chip), IsOk());
  const cdi::Spec spec = Build(Claim({Device("npu-4", {chip})}));
  EXPECT_THAT(Nodes(spec.container_edits),
              ElementsAre("/dev/davinci_manager", "/dev/hisi_hdc", "/dev/uburma/udma0",
                          "/dev/uburma/udma1", "/dev/ummu/tid"));
  EXPECT_THAT(Mounts(spec.container_edits),
              IsSupersetOf({"/usr/local/Ascend/driver/topo", "/etc/hccl_rootinfo.json",
                            "/etc/hixlep", "/lib/route.conf"}));
  EXPECT_THAT(Nodes(spec.devices.at(0).container_edits), ElementsAre("/dev/davinci1"));
  EXPECT_THAT(spec.devices.at(0).container_edits.env,
              ElementsAre("ASCEND_DRA_NPU_4_PHYSICAL_ID=4"));
}

TEST_F(InjectionTest, Golden310B) {
  host_.Node("/dev/davinci_manager_docker", FakeHost::kControlMajor, 9);
  for (const char* node : {"svm0", "ts_aisle", "upgrade", "sys", "vdec", "vpc", "pngd", "venc",
                           "log_drv", "acodec", "ai", "ao", "vo", "hdmi", "dvpp_cmdlist"}) {
    host_.Node(absl::StrCat("/dev/", node), FakeHost::kControlMajor, 20);
  }
  host_.File("/etc/sys_version.conf");
  host_.File("/etc/hdcBasic.cfg");
  const cdi::Spec spec = Build(Claim({Device("npu-0", {Chip(0, Family::k310B)})}));
  EXPECT_THAT(Nodes(spec.container_edits),
              ElementsAre("/dev/davinci_manager<-/dev/davinci_manager_docker", "/dev/svm0",
                          "/dev/ts_aisle", "/dev/upgrade", "/dev/sys", "/dev/vdec", "/dev/vpc",
                          "/dev/pngd", "/dev/venc", "/dev/log_drv", "/dev/acodec", "/dev/ai",
                          "/dev/ao", "/dev/vo", "/dev/hdmi", "/dev/dvpp_cmdlist"));
  EXPECT_THAT(Mounts(spec.container_edits),
              IsSupersetOf({"/etc/sys_version.conf", "/etc/hdcBasic.cfg"}));
}

TEST_F(InjectionTest, Driver310BWithoutTheContainerVariantOfTheManager) {
  const cdi::Spec spec = Build(Claim({Device("npu-0", {Chip(0, Family::k310B)})}));
  EXPECT_THAT(Nodes(spec.container_edits), ElementsAre("/dev/davinci_manager"));
}

// ------------------------------------------------------------------------------ rules of the file

// CDI-08: two chips, and what they share appears once, outside the devices.
TEST_F(InjectionTest, SharedNodesAppearOnce) {
  const cdi::Spec spec = Build(Claim(
      {Device("npu-0", {Chip(0, Family::k910B)}), Device("npu-5", {Chip(5, Family::k910B)})}));
  ASSERT_EQ(spec.devices.size(), 2u);
  EXPECT_THAT(Nodes(spec.devices[0].container_edits), ElementsAre("/dev/davinci0"));
  EXPECT_THAT(Nodes(spec.devices[1].container_edits), ElementsAre("/dev/davinci5"));
  EXPECT_EQ(spec.kind, kKind);
}

// Two requests of a claim may meet in one container: no variable of one replaces the other's.
TEST_F(InjectionTest, VariablesCarryTheChip) {
  RecordedChip a = Chip(0, Family::k910B), b = Chip(5, Family::k910B);
  a.roce_address = "10.0.0.1";
  b.roce_address = "10.0.0.2";
  const cdi::Spec spec = Build(Claim({Device("npu-0", {a}), Device("npu-5", {b})}));
  std::set<std::string> names;
  for (const cdi::Device& device : spec.devices) {
    for (const std::string& variable : device.container_edits.env) {
      EXPECT_TRUE(names.insert(variable.substr(0, variable.find('='))).second) << variable;
    }
  }
  EXPECT_THAT(names, ElementsAre("ASCEND_DRA_NPU_0_PHYSICAL_ID", "ASCEND_DRA_NPU_0_ROCE_ADDRESS",
                                 "ASCEND_DRA_NPU_5_PHYSICAL_ID", "ASCEND_DRA_NPU_5_ROCE_ADDRESS"));
}

// ORD-06: the same device under two requests of which one has admin access is one CDI device.
TEST_F(InjectionTest, OneDeviceTwiceIsOneCdiDevice) {
  RecordedDevice normal = Device("npu-0", {Chip(0, Family::k910B)});
  RecordedDevice admin = normal;
  admin.admin_access = true;
  EXPECT_EQ(Build(Claim({normal, admin})).devices.size(), 1u);
}

// CDI-16
TEST_F(InjectionTest, VisibleDevicesIsVoidUnlessSwitchedOff) {
  const ClaimRecord claim = Claim({Device("npu-0", {Chip(0, Family::k910B)})});
  EXPECT_THAT(Build(claim).container_edits.env, ElementsAre("ASCEND_VISIBLE_DEVICES=void"));
  InjectionOptions options = host_.options();
  options.ascend_visible_devices_void = false;
  absl::StatusOr<cdi::Spec> spec =
      Injector(HostFiles(host_.root()), options).BuildSpec(kKind, claim, {});
  ASSERT_THAT(spec, IsOk());
  EXPECT_THAT(spec->container_edits.env, IsEmpty());
}

TEST_F(InjectionTest, ExtraMountsWhereTheHostHasThem) {
  host_.Directory("/data/models");
  InjectionOptions options = host_.options();
  options.extra_mounts = {"/data/models", "/data/none"};
  absl::StatusOr<cdi::Spec> spec =
      Injector(HostFiles(host_.root()), options)
          .BuildSpec(kKind, Claim({Device("npu-0", {Chip(0, Family::k910B)})}), {});
  ASSERT_THAT(spec, IsOk());
  EXPECT_THAT(Mounts(spec->container_edits),
              AllOf(Contains("/data/models"), Not(Contains("/data/none"))));
}

// A rank table left over from other hardware breaks every job.
TEST_F(InjectionTest, RankTablesOnlyOnTheProductThatReadsThem) {
  const std::vector<std::string> only_950 = {"/etc/hccl_rootinfo.json", "/etc/hixlep",
                                             "/lib/route.conf"};
  for (const std::string& path : only_950) host_.File(path);
  for (const Family family :
       {Family::k310, Family::k310B, Family::k310P, Family::k910A, Family::k910B, Family::kA3}) {
    const cdi::Spec spec = Build(Claim({Device("npu-0", {Chip(0, family)})}));
    for (const std::string& path : only_950) {
      EXPECT_THAT(Mounts(spec.container_edits), Not(Contains(path))) << vnpu::FamilyName(family);
    }
  }
}

// CDI-02: no cache; the next spec shows what the host has then.
TEST_F(InjectionTest, LooksAtTheHostEveryTime) {
  const ClaimRecord claim = Claim({Device("npu-0", {Chip(0, Family::k910B)})});
  const Injector injector = host_.injector();
  const std::string include = absl::StrCat(kDriver, "/include");
  EXPECT_THAT(Mounts(injector.BuildSpec(kKind, claim, {})->container_edits), Contains(include));
  host_.Remove(include);
  host_.Remove("/dev/devmm_svm");
  const auto spec = injector.BuildSpec(kKind, claim, {});
  ASSERT_THAT(spec, IsOk());
  EXPECT_THAT(Mounts(spec->container_edits), Not(Contains(include)));
  EXPECT_THAT(Nodes(spec->container_edits), ElementsAre("/dev/davinci_manager", "/dev/hisi_hdc"));
}

// --------------------------------------------------------------------------- where the driver lies

// CDI-15: all places where installers put npu-smi.
TEST_F(InjectionTest, NpuSmiIsFoundInEachPlace) {
  const ClaimRecord claim = Claim({Device("npu-0", {Chip(0, Family::k910B)})});
  const std::vector<std::string> places = {"/usr/local/bin/npu-smi", "/usr/local/sbin/npu-smi",
                                           "/usr/local/Ascend/driver/tools/npu-smi"};
  for (const std::string& place : places) {
    for (const std::string& other : places) host_.Remove(other);
    host_.File(place);
    for (const std::string& other : places) {
      EXPECT_EQ(absl::StrContains(absl::StrJoin(Mounts(Build(claim).container_edits), " "), other),
                other == place)
          << place << " " << other;
    }
  }
}

// CDI-15
TEST_F(InjectionTest, RelocatedDriverAppearsAtTheUsualPlace) {
  const ClaimRecord claim = Claim({Device("npu-0", {Chip(0, Family::k910B)})});
  host_.Remove(kDriver);
  host_.Directory("/opt/huawei/driver/lib64");
  host_.File("/opt/huawei/driver/version.info");
  for (const char* line : {"Driver_Install_Path_Param=/opt/huawei\n",
                           "UserName=HwHiAiUser\r\nDriver_Install_Path_Param=/opt/huawei/\r\n"}) {
    host_.File("/etc/ascend_install.info", line);
    EXPECT_THAT(Mounts(Build(claim).container_edits),
                IsSupersetOf({"/usr/local/Ascend/driver/lib64<-/opt/huawei/driver/lib64",
                              "/usr/local/Ascend/driver/version.info"
                              "<-/opt/huawei/driver/version.info"}))
        << line;
  }
}

TEST_F(InjectionTest, UselessInstallInfoMeansTheUsualPlace) {
  const ClaimRecord claim = Claim({Device("npu-0", {Chip(0, Family::k910B)})});
  for (const char* text : {"", "UserName=x\n", "Driver_Install_Path_Param=\n",
                           "Driver_Install_Path_Param=relative/path\n", "\xff\xfe"}) {
    host_.File("/etc/ascend_install.info", text);
    EXPECT_THAT(Mounts(Build(claim).container_edits), Contains(absl::StrCat(kDriver, "/lib64")))
        << text;
  }
}

// The installer's link of the host, not of our own container.
TEST_F(InjectionTest, DriverBehindAnAbsoluteLink) {
  host_.Remove(kDriver);
  host_.Directory("/data/driver/lib64");
  host_.Link(kDriver, "/data/driver");
  EXPECT_THAT(Mounts(Build(Claim({Device("npu-0", {Chip(0, Family::k910B)})})).container_edits),
              Contains(absl::StrCat(kDriver, "/lib64")));
}

// CDI-15: devices without libraries are never offered.
TEST_F(InjectionTest, MissingLibrariesAreAnError) {
  host_.Remove(absl::StrCat(kDriver, "/lib64"));
  const ClaimRecord claim = Claim({Device("npu-0", {Chip(0, Family::k910B)})});
  EXPECT_THAT(host_.injector().BuildSpec(kKind, claim, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("/usr/local/Ascend/driver/lib64 are missing")));
  host_.File("/etc/ascend_install.info", "Driver_Install_Path_Param=/opt/huawei\n");
  EXPECT_THAT(host_.injector().BuildSpec(kKind, claim, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("/opt/huawei/driver/lib64 are missing"),
                             HasSubstr("ascend_install.info"))));
}

// ---------------------------------------------------------------------------------- device nodes

// CDI-03: what stands in a mandatory node's place, and the words for it.
TEST_F(InjectionTest, TheManagerNodeMustBeADevice) {
  const ClaimRecord claim = Claim({Device("npu-0", {Chip(0, Family::k910B)})});
  const auto expect = [&](const char* what) {
    EXPECT_THAT(host_.injector().BuildSpec(kKind, claim, {}),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr(absl::StrCat("device node /dev/davinci_manager ", what))));
  };
  host_.Remove("/dev/davinci_manager");
  expect("is missing");
  host_.File("/dev/davinci_manager");
  expect("is a regular file");
  host_.Directory("/dev/davinci_manager");
  expect("is a directory");
  host_.Link("/dev/davinci_manager", "hisi_hdc");
  expect("is a symbolic link");
  host_.Remove("/dev/davinci_manager");
  ASSERT_EQ(::mkfifo((host_.root() + "/dev/davinci_manager").c_str(), 0600), 0);
  expect("is not a character device");
  host_.Node("/dev/davinci_manager", FakeHost::kControlMajor, 0);
  EXPECT_THAT(host_.injector().BuildSpec(kKind, claim, {}), IsOk());
}

// What is best effort is left out unless it is a device.
TEST_F(InjectionTest, OptionalNodesAreSkippedUnlessDevices) {
  host_.Directory("/dev/devmm_svm");
  host_.Link("/dev/hisi_hdc", "davinci_manager");
  const cdi::Spec spec = Build(Claim({Device("npu-0", {Chip(0, Family::k910B)})}));
  EXPECT_THAT(Nodes(spec.container_edits), ElementsAre("/dev/davinci_manager"));
}

TEST_F(InjectionTest, ChipNodesAreChecked) {
  const RecordedChip chip = Chip(3, Family::k910B);
  const auto expect = [&](const std::string& what) {
    EXPECT_THAT(CheckOne(chip), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         AllOf(HasSubstr("/dev/davinci3"), HasSubstr(what))));
  };
  expect("is missing");
  host_.File("/dev/davinci3");
  expect("is a regular file");
  host_.Directory("/dev/davinci3");
  expect("is a directory");
  host_.Link("/dev/davinci3", "davinci_manager");
  expect("is a symbolic link");
  host_.Node("/dev/davinci3", 99, 3);
  expect("has major number 99, but the driver's is 236");
  // CDI-05: renumbered: the node belongs to another chip.
  host_.Node("/dev/davinci3", FakeHost::kMajor, 4);
  expect("has minor number 4, expected 3");
  host_.Chip(3, 3);
  EXPECT_THAT(CheckOne(chip), IsOk());
}

TEST_F(InjectionTest, EveryChipIsChecked) {
  host_.Chip(0, 0);
  host_.Chip(1, 1);
  const Injector injector = host_.injector();
  const auto check = [&](std::vector<RecordedChip> chips) {
    return injector.CheckNodes(Claim({Device("npu", std::move(chips))}));
  };
  EXPECT_THAT(injector.CheckNodes(Claim({})), IsOk());
  EXPECT_THAT(check({Chip(0, Family::kA3), Chip(1, Family::kA3)}), IsOk());
  EXPECT_THAT(check({Chip(0, Family::kA3), Chip(2, Family::kA3)}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("/dev/davinci2")));
}

TEST_F(InjectionTest, DriverMustBeLoaded) {
  host_.Chip(3, 3);
  const RecordedChip chip = Chip(3, Family::k910B);
  for (const char* text :
       {"", "Character devices:\n  1 mem\n",
        // Only the character devices count.
        "Character devices:\n  1 mem\n\nBlock devices:\n236 devdrv-cdev\n",
        "Character devices:\nx devdrv-cdev\n", "Character devices:\n236 devdrv-cdev-x\n"}) {
    host_.ProcDevices(text);
    EXPECT_THAT(CheckOne(chip), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         HasSubstr("kernel driver is not loaded")))
        << text;
  }
  host_.Remove("/proc-devices");
  EXPECT_THAT(CheckOne(chip),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(host_.proc_devices())));
  // A driver that registered twice has two majors.
  host_.ProcDevices("Character devices:\n235 devdrv-cdev\n236 devdrv-cdev\n");
  EXPECT_THAT(CheckOne(chip), IsOk());
}

}  // namespace
}  // namespace ascend::kubeletplugin
