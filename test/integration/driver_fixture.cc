#include "test/integration/driver_fixture.h"

#include <unistd.h>

#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "test/sim/child_process.h"

namespace ascend::integration {

DriverTest::~DriverTest() {
  if (HasFailure() && stack_ != nullptr) std::cerr << stack_->Logs();
}

sim::StackOptions DriverTest::Configured(const std::string& yaml, sim::StackOptions options) {
  const std::string path = config_dir_.File("config.yaml");
  EXPECT_THAT(WriteFileAtomically(path,
                                  absl::StrCat("apiVersion: npu.huawei.com/v1alpha1\n"
                                               "kind: DriverConfig\n",
                                               yaml),
                                  {}),
              IsOk());
  options.plugin_flags.insert(options.plugin_flags.end(), {"--config", path});
  return options;
}

void DriverTest::MakeNode(sim::StackOptions options) {
  options.bin_dirs = {ASCEND_AGENT_DIR, ASCEND_PLUGIN_DIR, ASCEND_MOCK_DIR};
  options.mock_library = ASCEND_MOCK_LIBRARY;
  options.mock_nodes_dir = ASCEND_MOCK_NODES;
  auto stack = sim::DriverStack::Create(std::move(options));
  ASSERT_THAT(stack, IsOk());
  stack_ = *std::move(stack);
  if (!stack_->has_device_nodes()) GTEST_SKIP() << "device nodes take root";
}

void DriverTest::StartNode(sim::StackOptions options) {
  ASSERT_NO_FATAL_FAILURE(MakeNode(std::move(options)));
  if (IsSkipped()) return;
  ASSERT_THAT(stack_->StartDriver(), IsOk()) << stack_->Logs();
}

sim::ClaimRef DriverTest::Allocate(const std::string& name,
                                   std::vector<sim::ClaimRequest> requests) {
  const auto claim =
      sim::AllocateClaim(api(), {.name = name, .requests = std::move(requests), .pods = {"pod"}});
  EXPECT_THAT(claim, IsOk());
  return claim.ok() ? *claim : sim::ClaimRef{};
}

std::string DriverTest::PrepareError(const sim::ClaimRef& claim) {
  const auto answers = kubelet().CallPrepare({claim});
  EXPECT_THAT(answers, IsOk());
  if (!answers.ok()) return "";
  EXPECT_EQ(answers->size(), 1u);
  const auto answer = answers->find(claim.uid);
  if (answer == answers->end()) {
    ADD_FAILURE() << "no answer for the claim";
    return "";
  }
  EXPECT_NE(answer->second.error, "");
  return answer->second.error;
}

std::string DriverTest::CdiFile(const sim::ClaimRef& claim) const {
  return JoinPath(stack_->cdi_root(),
                  absl::StrCat("k8s.npu.huawei.com-claim_", claim.uid, ".json"));
}

bool DriverTest::HasCdiFile(const sim::ClaimRef& claim) const {
  return ::access(CdiFile(claim).c_str(), F_OK) == 0;
}

std::string DriverTest::HostPath(const std::string& path) const {
  return JoinPath(JoinPath(stack_->root(), "host"), path);
}

void DriverTest::Mock(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {JoinPath(ASCEND_MOCK_DIR, "ascend-mock-node")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.insert(command.end(), {"--node-dir", HostPath("etc/ascend-dra/mock-node")});
  auto tool = sim::ChildProcess::Start(command, JoinPath(stack_->root(), "mock.log"));
  ASSERT_THAT(tool, IsOk());
  ASSERT_EQ((*tool)->WaitForEnd(absl::Seconds(10)), 0) << (*tool)->log();
}

std::vector<std::string> DriverTest::Published(const std::vector<nlohmann::json>& slices) {
  std::vector<std::string> names;
  for (const nlohmann::json& slice : slices) {
    for (const nlohmann::json& device : slice["spec"].value("devices", nlohmann::json::array())) {
      std::string name = device["name"];
      for (const nlohmann::json& taint : device.value("taints", nlohmann::json::array())) {
        absl::StrAppend(&name, "!", taint["value"].get<std::string>());
      }
      names.push_back(std::move(name));
    }
  }
  return names;
}

std::vector<std::string> DriverTest::Published() const {
  return Published(stack_->api_server().Slices());
}

absl::Duration DriverTest::WaitForPublished(const std::vector<std::string>& names,
                                            absl::Duration timeout) {
  const absl::Time start = absl::Now();
  EXPECT_THAT(api().WaitForSlices(
                  [&](const std::vector<nlohmann::json>& slices) {
                    return !slices.empty() && Published(slices) == names;
                  },
                  timeout),
              IsOk())
      << "published: " << ::testing::PrintToString(Published());
  return absl::Now() - start;
}

bool DriverTest::WaitFor(const std::function<bool()>& condition, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));  // polls another process's files
  }
  return true;
}

}  // namespace ascend::integration
