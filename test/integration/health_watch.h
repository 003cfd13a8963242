// A kubelet's watch on the health that an instance of the plugin tells.
#ifndef ASCEND_DRA_TEST_INTEGRATION_HEALTH_WATCH_H_
#define ASCEND_DRA_TEST_INTEGRATION_HEALTH_WATCH_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "dra_health_v1.grpc.pb.h"
#include "dra_health_v1alpha1.grpc.pb.h"
#include "gtest/gtest.h"

namespace ascend::integration {

// Not thread-safe. Ends after 60 s.
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
      if (states.empty() || absl::StartsWith(states[device], state)) return states;
    }
  }

 private:
  std::unique_ptr<typename Api::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<Response>> reader_;
};
using WatchV1 = Watch<::v1::DRAResourceHealth, ::v1::NodeWatchResourcesResponse>;
using WatchV1alpha1 = Watch<::v1alpha1::DRAResourceHealth, ::v1alpha1::NodeWatchResourcesResponse>;

}  // namespace ascend::integration

#endif  // ASCEND_DRA_TEST_INTEGRATION_HEALTH_WATCH_H_
