#include "vnpu/dcmi/mock/vnpu_kernel.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <memory>

#include "absl/time/clock.h"
#include "base/core/directory_watch.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "vnpu/dcmi/mock/test_node.h"
#include "vnpu/dcmi/mock/vnpu_edit.h"

namespace ascend::dcmi::mock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class VnpuKernelTest : public ::testing::Test {
 protected:
  VnpuKernelTest() : node_("8x910B3"), dev_(root_.File("dev")) {
    EXPECT_THAT(MakeDirectories(dev_), IsOk());
    auto watch = DirectoryWatch::Start(dev_, [this] {
      MutexLock lock(&mutex_);
      changed_.SignalAll();
    });
    EXPECT_THAT(watch, IsOk());
    watch_ = *std::move(watch);
  }

  void Start() {
    auto kernel = VnpuKernel::Start(
        {.node_directory = node_.directory(), .root = root_.path(), .device_nodes = false});
    ASSERT_THAT(kernel, IsOk());
    kernel_ = *std::move(kernel);
  }
  int Add(int physical_id = 0) {
    const auto id = AddVnpu(node_.directory(), physical_id, {.template_name = "vir05_1c_16g"});
    EXPECT_THAT(id, IsOk());
    return id.value_or(-1);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    const auto entries = ListDirectory(dev_);
    EXPECT_THAT(entries, IsOk());
    for (const std::string& name : *entries) {
      if (name[0] != '.') names.push_back(name);
    }
    return names;
  }
  // Waits for changes in dev/ until it is so.
  void AwaitNames(const std::vector<std::string>& names) {
    MutexLock lock(&mutex_);
    while (Names() != names) {
      if (!changed_.WaitFor(&mutex_, absl::Seconds(20))) break;
    }
    EXPECT_EQ(Names(), names);
  }

  TestNode node_;
  TempDir root_;
  const std::string dev_;
  Mutex mutex_;
  CondVar changed_;
  std::unique_ptr<DirectoryWatch> watch_;
  std::unique_ptr<VnpuKernel> kernel_;
};

TEST_F(VnpuKernelTest, FollowsTheVnpus) {
  Add();
  ASSERT_THAT(WriteFileAtomically(dev_ + "/vdavinci107", ""), IsOk());
  ASSERT_THAT(WriteFileAtomically(dev_ + "/vdavinci-other", ""), IsOk());
  Start();
  EXPECT_THAT(Names(), ElementsAre("vdavinci-other", "vdavinci100")) << "caught up with";
  Add(2);
  AwaitNames({"vdavinci-other", "vdavinci100", "vdavinci132"});
  struct stat info;
  ASSERT_EQ(stat((dev_ + "/vdavinci132").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660u);
  ASSERT_THAT(RemoveVnpu(node_.directory(), 100), IsOk());
  AwaitNames({"vdavinci-other", "vdavinci132"});
  ASSERT_THAT(SetVnpuModes(node_.directory(), false, std::nullopt), IsOk());
  ASSERT_THAT(Reboot(node_.directory(), false), IsOk());
  AwaitNames({"vdavinci-other"});
  kernel_.reset();
}

TEST_F(VnpuKernelTest, MakesNodesLate) {
  node_.Edit([](nlohmann::json& json) { json["vnpuNodes"] = {{"delayMs", 150}}; });
  Start();
  const absl::Time before = absl::Now();
  Add();
  AwaitNames({"vdavinci100"});
  EXPECT_GE(absl::Now() - before, absl::Milliseconds(150));
  ASSERT_THAT(RemoveVnpu(node_.directory(), 100), IsOk());
  AwaitNames({});
}

TEST_F(VnpuKernelTest, MakesNoneUntilToldOtherwise) {
  Add(1);
  Start();
  EXPECT_THAT(Names(), ElementsAre("vdavinci116"));
  node_.Edit([](nlohmann::json& json) { json["vnpuNodes"] = {{"never", true}}; });
  Add();
  // That this one goes tells that the kernel has seen the other one.
  ASSERT_THAT(RemoveVnpu(node_.directory(), 116), IsOk());
  AwaitNames({});
  node_.Edit([](nlohmann::json& json) { json.erase("vnpuNodes"); });
  AwaitNames({"vdavinci100"});
}

TEST_F(VnpuKernelTest, RefusesToStartOnABrokenNode) {
  node_.Write("{");
  EXPECT_THAT(VnpuKernel::Start({.node_directory = node_.directory(), .root = root_.path()}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(VnpuKernelTest, GoesOnAfterABrokenNode) {
  const std::string good = *ReadFile(node_.directory() + "/node.json");
  Start();
  node_.Write("{");
  node_.Write(good);
  Add(1);
  AwaitNames({"vdavinci116"});
}

TEST_F(VnpuKernelTest, MakesCharacterDevicesAndReplacesNoOther) {
  const std::string path = dev_ + "/vdavinci100";
  const std::string probe = dev_ + "/probe";
  if (mknod(probe.c_str(), S_IFCHR | 0600, makedev(236, 1)) != 0) {
    GTEST_SKIP() << "may not make device nodes here";
  }
  unlink(probe.c_str());
  Add();
  const VnpuKernelOptions options{
      .node_directory = node_.directory(), .root = root_.path(), .major = 236};
  ASSERT_EQ(mknod(path.c_str(), S_IFCHR | 0600, makedev(237, 100)), 0);
  EXPECT_THAT(VnpuKernel::Start(options),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(path)));
  unlink(path.c_str());
  ASSERT_THAT(VnpuKernel::Start(options), IsOk());
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
  EXPECT_EQ(info.st_rdev, makedev(236, 100));
  EXPECT_EQ(info.st_mode & 0777, 0660u);
}

}  // namespace
}  // namespace ascend::dcmi::mock
