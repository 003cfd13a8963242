// Bad input and broken nodes: in each case one clear message that names the thing and the remedy,
// and a driver that goes on.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "test/integration/driver_fixture.h"

namespace ascend::integration {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class BadInputTest : public DriverTest {
 protected:
  // Runs the plugin with these flags until it ends; returns exit code and output.
  std::pair<int, std::string> RunPlugin(const std::vector<std::string>& flags) {
    std::vector<std::string> command = {std::string(ASCEND_PLUGIN_DIR) +
                                        "/ascend-dra-kubeletplugin"};
    command.insert(command.end(), flags.begin(), flags.end());
    auto process = sim::ChildProcess::Start(command, stack_->root() + "/flags.log");
    EXPECT_THAT(process, IsOk());
    const std::optional<int> end = (*process)->WaitForEnd(absl::Seconds(10));
    EXPECT_TRUE(end.has_value()) << "still running";
    const std::string output = (*process)->log();
    std::filesystem::remove(stack_->root() + "/flags.log");
    return {end && WIFEXITED(*end) ? WEXITSTATUS(*end) : -1, output};
  }
};

TEST_F(BadInputTest, UnknownOptionInTheClaim) {
  StartNode();
  if (IsSkipped()) return;
  const auto claim = sim::AllocateClaim(
      api(), {.name = "typo",
              .config = {{.parameters = R"({"apiVersion":"npu.huawei.com/v1alpha1",)"
                                        R"("kind":"NpuConfig","shareing":true})"}}});
  ASSERT_THAT(claim, IsOk());
  EXPECT_THAT(PrepareError(*claim),
              AllOf(HasSubstr("claim default/typo"), HasSubstr("unknown field \"shareing\"")));
  EXPECT_FALSE(HasCdiFile(*claim));
}

TEST_F(BadInputTest, ClaimWithoutAllocationAndReplacedClaim) {
  StartNode();
  if (IsSkipped()) return;
  sim::ClaimRef claim = Allocate("plain");
  auto object = api().Get("resourceclaims", "default", "plain");
  ASSERT_THAT(object, IsOk());
  sim::ClaimRef replaced = claim;
  replaced.uid = "11111111-2222-4333-8444-555555555555";
  EXPECT_THAT(PrepareError(replaced),
              AllOf(HasSubstr("was replaced"), HasSubstr(claim.uid), HasSubstr(replaced.uid)));
  (*object)["status"].erase("allocation");
  ASSERT_THAT(api().Update(*object), IsOk());
  EXPECT_THAT(PrepareError(claim), AllOf(HasSubstr("not allocated"), HasSubstr("spec.nodeName")));
}

TEST_F(BadInputTest, BrokenDeviceNodes) {
  StartNode();
  if (IsSkipped()) return;
  const sim::ClaimRef claim = Allocate("one", {{.devices = {"npu-3"}}});
  const std::string node = HostPath("dev/davinci3");
  struct stat good;
  ASSERT_EQ(::stat(node.c_str(), &good), 0);

  std::filesystem::remove(node);
  EXPECT_THAT(PrepareError(claim),
              AllOf(HasSubstr("/dev/davinci3 is missing"), HasSubstr("npu-smi info")));
  ASSERT_EQ(::mknod(node.c_str(), S_IFCHR | 0660, makedev(240, 3)), 0);
  EXPECT_THAT(PrepareError(claim), AllOf(HasSubstr("major number 240"), HasSubstr("reboot")));
  std::filesystem::remove(node);
  ASSERT_EQ(::mknod(node.c_str(), S_IFCHR | 0660, makedev(major(good.st_rdev), 4)), 0);
  EXPECT_THAT(PrepareError(claim), HasSubstr("minor number 4, expected 3"));
  std::filesystem::remove(node);
  std::filesystem::create_symlink("davinci2", node);
  EXPECT_THAT(PrepareError(claim), HasSubstr("symbolic link"));
  std::filesystem::remove(node);
  std::ofstream(node) << "";
  EXPECT_THAT(PrepareError(claim), HasSubstr("regular file"));
  std::filesystem::remove(node);
  std::filesystem::create_directory(node);
  EXPECT_THAT(PrepareError(claim), HasSubstr("directory"));
  std::filesystem::remove(node);
  ASSERT_EQ(::mknod(node.c_str(), S_IFCHR | 0660, good.st_rdev), 0);

  const std::string manager = HostPath("dev/davinci_manager");
  std::filesystem::rename(manager, manager + ".away");
  EXPECT_THAT(PrepareError(claim), HasSubstr("/dev/davinci_manager is missing"));
  std::filesystem::rename(manager + ".away", manager);

  const std::string lib64 = HostPath("usr/local/Ascend/driver/lib64");
  std::filesystem::rename(lib64, lib64 + ".away");
  EXPECT_THAT(PrepareError(claim), AllOf(HasSubstr("/usr/local/Ascend/driver/lib64"),
                                         HasSubstr("install the Ascend driver")));
  std::filesystem::rename(lib64 + ".away", lib64);

  EXPECT_FALSE(HasCdiFile(claim));
  EXPECT_THAT(kubelet().Prepare({claim}), IsOk());  // mended: works at once
}

TEST_F(BadInputTest, UnwritableCdiDirectory) {
  StartNode();
  if (IsSkipped()) return;
  const sim::ClaimRef claim = Allocate("one");
  const std::string& cdi = stack_->cdi_root();
  std::filesystem::remove_all(cdi);
  std::ofstream(cdi) << "in the way";
  EXPECT_THAT(PrepareError(claim), AllOf(HasSubstr(cdi), HasSubstr("CDI")));
  std::filesystem::remove(cdi);
  // Nothing was kept: the chip is free, and the directory is made again.
  EXPECT_THAT(kubelet().Prepare({claim}), IsOk());
  ASSERT_EQ(::chmod(cdi.c_str(), 0777), 0);
  const sim::ClaimRef second = Allocate("two");
  EXPECT_THAT(PrepareError(second), AllOf(HasSubstr(cdi), HasSubstr("writ")));
  ASSERT_EQ(::chmod(cdi.c_str(), 0755), 0);
  EXPECT_THAT(kubelet().Prepare({second}), IsOk());
}

TEST_F(BadInputTest, NoLibdcmi) {
  MakeNode();
  if (IsSkipped()) return;
  ASSERT_THAT(stack_->StartAgent(stack_->root() + "/nowhere/libdcmi.so"), IsOk());
  ASSERT_THAT(stack_->StartPlugin("pod-1"), IsOk());
  ASSERT_THAT(kubelet().WaitForRegistrations(1), IsOk());
  WaitForPublished({});
  EXPECT_THAT(stack_->Logs(), HasSubstr("nowhere/libdcmi.so"));
  // Allocated before the driver was lost: the pod hears why.
  auto object = nlohmann::json::parse(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",
    "metadata":{"name":"old","namespace":"default"},"spec":{"devices":{"requests":[{"name":"npu",
    "exactly":{"deviceClassName":"npu.huawei.com"}}]}},
    "status":{"allocation":{"devices":{"results":[{"request":"npu","driver":"npu.huawei.com",
    "pool":"mock-node","device":"npu-0"}]}}}})");
  const auto created = api().Create(object);
  ASSERT_THAT(created, IsOk());
  const sim::ClaimRef claim = {.name = "old", .uid = (*created)["metadata"]["uid"]};
  EXPECT_THAT(PrepareError(claim), AllOf(HasSubstr("npu-0"), HasSubstr("libdcmi.so")));
}

TEST_F(BadInputTest, HostileClaimUids) {
  StartNode();
  if (IsSkipped()) return;
  for (const char* uid : {"../../etc/passwd", "a/b", "..", "a\nb"}) {
    EXPECT_THAT(PrepareError({.name = "x", .uid = uid}), HasSubstr("not acceptable"));
    EXPECT_THAT(kubelet().Unprepare({{.name = "x", .uid = uid}}), IsOk());
  }
}

TEST_F(BadInputTest, FlagsAndConfiguration) {
  MakeNode();
  if (IsSkipped()) return;
  const std::vector<std::string> node = {"--node-name", "n"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), node.begin(), node.end());
    return RunPlugin(more);
  };
  auto [code, output] = RunPlugin({});
  EXPECT_EQ(code, 2);
  EXPECT_THAT(output, HasSubstr("--node-name"));
  std::tie(code, output) = with({"--no-such-flag"});
  EXPECT_EQ(code, 2);
  EXPECT_THAT(output, HasSubstr("--no-such-flag"));
  std::tie(code, output) = with({"--health-port", "99999"});
  EXPECT_EQ(code, 2);
  std::tie(code, output) = with({"--driver-name", "Not_A_Name"});
  EXPECT_EQ(code, 2);
  EXPECT_THAT(output, HasSubstr("DNS subdomain"));
  std::tie(code, output) = with({"--kubelet-root", "/" + std::string(90, 'r')});
  EXPECT_EQ(code, 2);
  EXPECT_THAT(output, AllOf(HasSubstr("limit is 107"), HasSubstr("shorter kubelet root")));

  const std::string config = stack_->root() + "/config.yaml";
  std::ofstream(config) << "apiVersion: npu.huawei.com/v1alpha1\nkind: DriverConfig\ntypo: 1\n";
  std::tie(code, output) = with({"--config", config});
  EXPECT_EQ(code, 2);
  EXPECT_THAT(output, AllOf(HasSubstr(config), HasSubstr("unknown key typo")));

  for (const auto& [health, problem] : std::vector<std::pair<std::string, std::string>>{
           {"{evictOn: [unknown]}", "health.evictOn"},
           {"{evictOn: [SeperateNPU]}", "SeperateNPU"},
           {"{evict: [SeparateNPU]}", "unknown key health.evict"},
           {"{faultTable: {levels: {Broken: [\"80E18402\"]}}}", "Broken"},
           {"{faultTable: {levels: {SubHealthFault: [\"80E1840G\"]}}}", "80E1840G"},
           {"{faultTable: {actions: {stuck: {effect: NoExecute}}}}", "stuck"},
           {"{faultTable: {actions: {lost: {recover: 0s}}}}", "recover"}}) {
    std::ofstream(config) << "apiVersion: npu.huawei.com/v1alpha1\nkind: DriverConfig\nhealth: "
                          << health << "\n";
    std::tie(code, output) = with({"--config", config});
    EXPECT_EQ(code, 2) << health;
    EXPECT_THAT(output, AllOf(HasSubstr(config), HasSubstr("line "), HasSubstr(problem))) << health;
  }

  std::tie(code, output) = with({"--kubeconfig", stack_->root() + "/none"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(output, HasSubstr("/none"));
  std::tie(code, output) = RunPlugin({"--version"});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(output, HasSubstr("0."));
  std::tie(code, output) = RunPlugin({"--help"});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(output, AllOf(HasSubstr("--kubelet-root"), Not(HasSubstr("error"))));
}

// REG-08: a cluster that is too old is named, not just "404".
TEST_F(BadInputTest, ClusterWithoutResourceV1) {
  sim::StackOptions options;
  options.api_server.serve_resource_v1 = false;
  MakeNode(options);
  if (IsSkipped()) return;
  ASSERT_THAT(stack_->StartAgent(), IsOk());
  ASSERT_THAT(stack_->StartPlugin("pod-1"), IsOk());
  EXPECT_TRUE(
      WaitFor([&] { return stack_->Logs().find("resource.k8s.io/v1") != std::string::npos; }));
  EXPECT_THAT(stack_->Logs(), HasSubstr("1.34"));
}

}  // namespace
}  // namespace ascend::integration
