// What a running plugin tells about itself and its claims, and what the CLI finds on its disk.
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocations.grpc.pb.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "podresources_v1.grpc.pb.h"
#include "test/integration/driver_fixture.h"
#include "test/sim/child_process.h"

namespace ascend::integration {
namespace {

namespace api = ::ascend::allocations::v1alpha1;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The kubelet's PodResources service: one pod, which uses a claim as soon as it is told.
class PodResources final : public v1::PodResourcesLister::Service {
 public:
  explicit PodResources(const std::string& socket) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("unix:", socket), grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  void Use(const std::string& claim, const std::string& device) {
    MutexLock lock(&mutex_);
    claim_ = claim;
    device_ = device;
  }

  grpc::Status List(grpc::ServerContext*, const v1::ListPodResourcesRequest*,
                    v1::ListPodResourcesResponse* response) override {
    MutexLock lock(&mutex_);
    if (claim_.empty()) return grpc::Status::OK;
    auto* pod = response->add_pod_resources();
    pod->set_namespace_("default");
    pod->set_name("trainer");
    auto* container = pod->add_containers();
    container->set_name("main");
    auto* resource = container->add_dynamic_resources();
    resource->set_claim_name(claim_);
    resource->set_claim_namespace("default");
    auto* device = resource->add_claim_resources();
    device->set_driver_name("npu.huawei.com");
    device->set_pool_name("mock-node");
    device->set_device_name(device_);
    return grpc::Status::OK;
  }

 private:
  Mutex mutex_;
  std::string claim_ ABSL_GUARDED_BY(mutex_), device_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

class ObservabilityTest : public DriverTest {
 protected:
  void Start() {
    ASSERT_NO_FATAL_FAILURE(MakeNode());
    if (IsSkipped()) return;
    const std::string directory = JoinPath(stack_->root(), "kubelet/pod-resources");
    ASSERT_THAT(MakeDirectories(directory), IsOk());
    pod_resources_ = std::make_unique<PodResources>(JoinPath(directory, "kubelet.sock"));
    ASSERT_THAT(stack_->StartDriver(), IsOk()) << stack_->Logs();
    stub_ = api::Allocations::NewStub(grpc::CreateChannel(
        absl::StrCat("unix:", stack_->allocations_socket()), grpc::InsecureChannelCredentials()));
  }

  // "name{label=value,...}" -> value; of histograms the count.
  std::map<std::string, double> Metrics() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    api::GetMetricsResponse response;
    const grpc::Status status = stub_->GetMetrics(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::map<std::string, double> values;
    families_.clear();
    for (const api::MetricFamily& family : response.families()) {
      families_.push_back(family.name());
      for (const api::Metric& metric : family.metrics()) {
        std::vector<std::string> labels;
        for (const api::Label& label : metric.labels()) {
          labels.push_back(absl::StrCat(label.name(), "=", label.value()));
        }
        double& value = values[absl::StrCat(family.name(), "{", absl::StrJoin(labels, ","), "}")];
        value = metric.has_counter()     ? metric.counter()
                : metric.has_histogram() ? static_cast<double>(metric.histogram().sample_count())
                                         : metric.gauge();
      }
    }
    return values;
  }

  // Reads until the snapshot is as wanted.
  template <typename Condition>
  static bool ReadUntil(grpc::ClientReader<api::AllocationsSnapshot>& reader,
                        api::AllocationsSnapshot* snapshot, Condition condition) {
    while (reader.Read(snapshot)) {
      if (condition(*snapshot)) return true;
    }
    return false;
  }

  std::unique_ptr<PodResources> pod_resources_;
  std::unique_ptr<api::Allocations::Stub> stub_;
  std::vector<std::string> families_;
};

TEST_F(ObservabilityTest, ARunningPluginCounts) {
  ASSERT_NO_FATAL_FAILURE(Start());
  if (IsSkipped()) return;
  struct stat info;
  ASSERT_EQ(::stat(stack_->allocations_socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0660u);

  const sim::ClaimRef claim = Allocate("one", {{.count = 2}});
  ASSERT_THAT(kubelet().Prepare({claim}), IsOk());
  const sim::ClaimRef unknown = {.namespace_name = "default", .name = "none", .uid = "uid-none"};
  PrepareError(unknown);
  // The round after the first write finds everything in place.
  ASSERT_TRUE(WaitFor([&] {
    auto now = Metrics();
    return now["ascend_dra_resourceslice_last_publish_timestamp_seconds{}"] > 0 &&
           now["ascend_dra_podresources_requests_total{}"] > 0;
  }));
  auto values = Metrics();
  const auto text = ReadFile(ASCEND_FAMILIES);
  ASSERT_THAT(text, IsOk());
  for (const std::string& family : families_) EXPECT_THAT(*text, HasSubstr(family + " "));
  EXPECT_EQ(values["ascend_dra_kubelet_registered{}"], 1);
  EXPECT_EQ(values["ascend_dra_registrations_total{result=success}"], 1);
  EXPECT_EQ(values["ascend_dra_claim_prepare_total{result=success}"], 1);
  EXPECT_EQ(values["ascend_dra_claim_prepare_total{result=error}"], 1);
  EXPECT_EQ(values["ascend_dra_claim_prepare_errors_total{reason=claim_not_found}"], 1);
  EXPECT_EQ(values["ascend_dra_claim_prepare_duration_seconds{}"], 2);
  EXPECT_EQ(values["ascend_dra_grpc_requests_total{code=OK,method=NodePrepareResources}"], 2);
  EXPECT_EQ(values["ascend_dra_record_writes_total{result=success}"], 1);
  EXPECT_EQ(values["ascend_dra_prepared_claims{}"], 1);
  EXPECT_EQ(values["ascend_dra_prepared_devices{kind=npu}"], 2);
  EXPECT_EQ(values["ascend_dra_cdi_spec_files{}"], 1);
  EXPECT_EQ(values["ascend_dra_unreadable_records{}"], 0);
  EXPECT_EQ(values["ascend_dra_published_devices{state=healthy}"], 8);
  EXPECT_GE(values["ascend_dra_resourceslice_publish_total{result=success}"], 1);
  EXPECT_GE(
      values["ascend_dra_apiserver_requests_total{code=200,resource=resourceclaims,verb=get}"], 1);
  EXPECT_EQ(
      values["ascend_dra_apiserver_requests_total{code=404,resource=resourceclaims,verb=get}"], 1);
  EXPECT_GE(values["ascend_dra_podresources_requests_total{}"], 1);

  ASSERT_THAT(kubelet().Unprepare({claim}), IsOk());
  values = Metrics();
  EXPECT_EQ(values["ascend_dra_claim_unprepare_total{result=success}"], 1);
  EXPECT_EQ(values["ascend_dra_prepared_claims{}"], 0);
  EXPECT_EQ(values["ascend_dra_cdi_spec_files{}"], 0);
}

TEST_F(ObservabilityTest, AllocationsAreToldAsTheyChange) {
  ASSERT_NO_FATAL_FAILURE(Start());
  if (IsSkipped()) return;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto reader = stub_->WatchAllocations(&context, {});
  api::AllocationsSnapshot snapshot;
  ASSERT_TRUE(reader->Read(&snapshot));
  EXPECT_EQ(snapshot.driver(), "npu.huawei.com");
  EXPECT_EQ(snapshot.node_name(), "mock-node");
  EXPECT_EQ(snapshot.claims_size(), 0);

  const sim::ClaimRef claim = Allocate("one");
  const auto prepared = kubelet().Prepare({claim});
  ASSERT_THAT(prepared, IsOk());
  const std::string device = prepared->at(claim.uid)[0].device;
  ASSERT_TRUE(ReadUntil(*reader, &snapshot, [](const auto& s) { return s.claims_size() == 1; }));
  EXPECT_EQ(snapshot.claims(0).uid(), claim.uid);
  EXPECT_EQ(snapshot.claims(0).devices(0).device(), device);
  EXPECT_EQ(snapshot.claims(0).devices(0).physical_ids_size(), 1);
  EXPECT_NE(snapshot.claims(0).devices(0).uuids(0), "");

  // The container starts a while after Prepare.
  pod_resources_->Use("one", device);
  ASSERT_TRUE(ReadUntil(*reader, &snapshot, [](const auto& s) {
    return s.claims_size() == 1 && s.claims(0).pods_size() == 1;
  }));
  EXPECT_EQ(snapshot.claims(0).pods(0).name(), "trainer");
  EXPECT_THAT(snapshot.claims(0).pods(0).containers(), ElementsAre("main"));
  EXPECT_GT(snapshot.pods_timestamp_seconds(), 0);

  // The record wins over what the kubelet still says.
  ASSERT_THAT(kubelet().Unprepare({claim}), IsOk());
  ASSERT_TRUE(ReadUntil(*reader, &snapshot, [](const auto& s) { return s.claims_size() == 0; }));
  stack_->StopDriver();
  while (reader->Read(&snapshot)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_NE(::access(stack_->allocations_socket().c_str(), F_OK), 0);
}

TEST_F(ObservabilityTest, TheCommandLineToolFindsNothingWrong) {
  ASSERT_NO_FATAL_FAILURE(Start());
  if (IsSkipped()) return;
  const sim::ClaimRef claim = Allocate("one", {{.count = 3}});
  ASSERT_THAT(kubelet().Prepare({claim}), IsOk());
  const auto run = [&](const std::vector<std::string>& arguments, std::string* log) {
    std::vector<std::string> command = {ASCEND_CLI, "--kubelet-root",
                                        JoinPath(stack_->root(), "kubelet"), "--cdi-root",
                                        stack_->cdi_root()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    auto tool = sim::ChildProcess::Start(
        command, JoinPath(stack_->root(), absl::StrCat(absl::StrJoin(arguments, "-"), ".log")));
    EXPECT_THAT(tool, IsOk());
    const auto end = (*tool)->WaitForEnd(absl::Seconds(30));
    *log = (*tool)->log();
    return end && WIFEXITED(*end) ? WEXITSTATUS(*end) : -1;
  };
  std::string log;
  EXPECT_EQ(run({"claims", "verify"}, &log), 0) << log;
  EXPECT_THAT(log, HasSubstr("1 record, 0 findings"));
  EXPECT_EQ(run({"claims", "list"}, &log), 0);
  EXPECT_THAT(log, ::testing::AllOf(HasSubstr("default/one"), HasSubstr(claim.uid),
                                    HasSubstr("npu-0,npu-1,npu-2")));
  ASSERT_THAT(kubelet().Unprepare({claim}), IsOk());
  EXPECT_EQ(run({"claims", "show", "one"}, &log), 3) << log;
}

}  // namespace
}  // namespace ascend::integration
