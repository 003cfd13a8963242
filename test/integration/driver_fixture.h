// What the integration tests share: a node with the driver on it, and ways to look at it.
#ifndef ASCEND_DRA_TEST_INTEGRATION_DRIVER_FIXTURE_H_
#define ASCEND_DRA_TEST_INTEGRATION_DRIVER_FIXTURE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "nlohmann/json_fwd.hpp"
#include "test/sim/allocator.h"
#include "test/sim/driver_stack.h"

namespace ascend::integration {

class DriverTest : public ::testing::Test {
 protected:
  ~DriverTest() override;

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

  std::unique_ptr<sim::DriverStack> stack_;
};

}  // namespace ascend::integration

#endif  // ASCEND_DRA_TEST_INTEGRATION_DRIVER_FIXTURE_H_
