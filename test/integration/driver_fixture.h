// What the integration tests share: a node with the driver on it, and ways to look at it.
#ifndef ASCEND_DRA_TEST_INTEGRATION_DRIVER_FIXTURE_H_
#define ASCEND_DRA_TEST_INTEGRATION_DRIVER_FIXTURE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/core/temp_dir.h"
#include "gtest/gtest.h"
#include "nlohmann/json_fwd.hpp"
#include "test/sim/allocator.h"
#include "test/sim/driver_stack.h"

namespace ascend::integration {

// For a DriverConfig: chips get better after 300 ms instead of 15 s, and flaps are forgotten.
inline constexpr char kQuickHealth[] = R"(
health:
  faultTable:
    actions:
      unknown: {recover: 300ms}
      stuck: {recover: 300ms}
      RestartBusiness: {recover: 300ms}
      RestartNPU: {recover: 300ms}
      major: {recover: 300ms}
      critical: {recover: 300ms}
      SeparateNPU: {recover: 300ms}
      ManuallySeparateNPU: {recover: 300ms}
      absent: {recover: 300ms}
      lost: {recover: 300ms}
    network: {after: 1s, level: PreSeparateNPU, recover: 300ms}
    damping: {window: 1ms, longest: 300ms}
)";

class DriverTest : public ::testing::Test {
 protected:
  ~DriverTest() override;

  // The options with a DriverConfig of `yaml` and its head.
  sim::StackOptions Configured(const std::string& yaml, sim::StackOptions options = {});

  // Everything but the driver's processes.
  void MakeNode(sim::StackOptions options = {});
  // The same with the driver registered and published.
  void StartNode(sim::StackOptions options = {});

  sim::ApiServer& api() { return stack_->api_server(); }
  sim::Kubelet& kubelet() { return stack_->kubelet(); }

  sim::ClaimRef Allocate(const std::string& name, std::vector<sim::ClaimRequest> requests = {{}});
  // The error of a Prepare that must fail.
  std::string PrepareError(const sim::ClaimRef& claim);

  std::string CdiFile(const sim::ClaimRef& claim) const;
  bool HasCdiFile(const sim::ClaimRef& claim) const;
  std::string HostPath(const std::string& path) const;  // below the node's fake root

  // Runs `ascend-mock-node chip|call ...` on the live node.
  void Mock(const std::vector<std::string>& arguments);

  // Device names in the slices, with "!level" after a tainted one.
  std::vector<std::string> Published() const;
  static std::vector<std::string> Published(const std::vector<nlohmann::json>& slices);
  // Waits until the slices show exactly these; returns how long it took.
  absl::Duration WaitForPublished(const std::vector<std::string>& names,
                                  absl::Duration timeout = absl::Seconds(15));
  // Waits until `condition` holds, looking every few milliseconds.
  static bool WaitFor(const std::function<bool()>& condition,
                      absl::Duration timeout = absl::Seconds(15));

  TempDir config_dir_;
  std::unique_ptr<sim::DriverStack> stack_;
};

}  // namespace ascend::integration

#endif  // ASCEND_DRA_TEST_INTEGRATION_DRIVER_FIXTURE_H_
