// The health of chips on its way to the kubelet.
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/status_matchers.h"
#include "dra_health_v1.grpc.pb.h"
#include "dra_health_v1alpha1.grpc.pb.h"
#include "gmock/gmock.h"
#include "test/integration/driver_fixture.h"

namespace ascend::integration {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// A kubelet's watch on the newest instance of the plugin.
template <typename Api, typename Response>
class Watch {
 public:
  explicit Watch(const std::string& socket) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    stub_ = Api::NewStub(grpc::CreateCustomChannel(absl::StrCat("unix:", socket),
                                                   grpc::InsecureChannelCredentials(), arguments));
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    reader_ = stub_->NodeWatchResources(&context_, {});
  }
  ~Watch() {
    context_.TryCancel();
    Response response;
    while (reader_->Read(&response)) {
    }
    reader_->Finish();
  }

  // "HEALTHY" or "UNHEALTHY: why", by device, of the next message; empty at the stream's end.
  std::map<std::string, std::string> Next() {
    std::map<std::string, std::string> states;
    Response response;
    if (!reader_->Read(&response)) return states;
    for (const auto& device : response.devices()) {
      EXPECT_EQ(device.device().pool_name(), "mock-node");
      states[device.device().device_name()] =
          absl::StrCat(HealthStatus_Name(device.health()), device.message().empty() ? "" : ": ",
                       device.message());
    }
    return states;
  }

  // The first message in which the device's state begins with `state`; empty if none comes.
  std::map<std::string, std::string> WaitFor(const std::string& device, const std::string& state) {
    for (;;) {
      std::map<std::string, std::string> states = Next();
      if (states.empty() || states[device].rfind(state, 0) == 0) return states;
    }
  }

 private:
  std::unique_ptr<typename Api::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<Response>> reader_;
};
using WatchV1 = Watch<::v1::DRAResourceHealth, ::v1::NodeWatchResourcesResponse>;
using WatchV1alpha1 = Watch<::v1alpha1::DRAResourceHealth, ::v1alpha1::NodeWatchResourcesResponse>;

class HealthTest : public DriverTest {
 protected:
  std::string endpoint() { return kubelet().instances().back().endpoint; }
};

TEST_F(HealthTest, AChipsChangeReachesTheKubelet) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  if (IsSkipped()) return;
  EXPECT_THAT(kubelet().instances().back().supported_versions,
              IsSupersetOf({"v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"}));
  WatchV1 watch(endpoint());
  WatchV1alpha1 older(endpoint());
  std::map<std::string, std::string> states = watch.WaitFor("npu-3", "HEALTHY");
  EXPECT_EQ(states.size(), 8u);
  EXPECT_EQ(older.WaitFor("npu-3", "HEALTHY"), states);

  Mock({"chip", "--physical-id", "3", "--set", "health=3"});
  states = watch.WaitFor("npu-3", "UNHEALTHY");
  EXPECT_THAT(states["npu-3"], HasSubstr("critical"));
  EXPECT_EQ(states["npu-2"], "HEALTHY");
  EXPECT_EQ(older.WaitFor("npu-3", "UNHEALTHY")["npu-3"], states["npu-3"]);

  // A kubelet that starts now is told at once, and nothing else before.
  WatchV1 restarted(endpoint());
  EXPECT_EQ(restarted.Next(), states);

  Mock({"chip", "--physical-id", "3", "--set", "health=0"});
  EXPECT_EQ(watch.WaitFor("npu-3", "HEALTHY").size(), 8u);
}

TEST_F(HealthTest, AHeldChipThatIsPulledOutStays) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  if (IsSkipped()) return;
  const sim::ClaimRef claim = Allocate("all", {{.count = 8}});
  ASSERT_THAT(kubelet().Prepare({claim}), IsOk());
  WatchV1 watch(endpoint());
  Mock({"chip", "--physical-id", "5", "--set", "present=false"});
  EXPECT_EQ(watch.WaitFor("npu-5", "UNHEALTHY").size(), 8u);
}

TEST_F(HealthTest, NothingIsHealthyWhenNobodyLooks) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  if (IsSkipped()) return;
  WatchV1 watch(endpoint());
  ASSERT_FALSE(watch.WaitFor("npu-0", "HEALTHY").empty());
  stack_->agent().Kill(SIGKILL);
  const std::map<std::string, std::string> states = watch.WaitFor("npu-0", "UNKNOWN");
  EXPECT_THAT(states.at("npu-0"), HasSubstr("not checked since"));
  ASSERT_THAT(stack_->StartAgent(), IsOk());
  EXPECT_EQ(watch.WaitFor("npu-0", "HEALTHY").size(), 8u);
}

}  // namespace
}  // namespace ascend::integration
