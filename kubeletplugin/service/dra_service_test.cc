#include "kubeletplugin/service/dra_service.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/mutex.h"
#include "base/core/temp_dir.h"
#include "dra_v1.grpc.pb.h"
#include "dra_v1beta1.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

namespace v1 = ::k8s::io::kubelet::pkg::apis::dra::v1;
namespace v1beta1 = ::k8s::io::kubelet::pkg::apis::dra::v1beta1;

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A gate that work waits at. A generous time opens it too, so that no failure hangs.
class Gate {
 public:
  void Open() {
    MutexLock lock(&mutex_);
    open_ = true;
    changed_.SignalAll();
  }
  bool Wait() {
    MutexLock lock(&mutex_);
    for (int i = 0; i < 20 && !open_; ++i) changed_.WaitFor(&mutex_, absl::Seconds(1));
    return open_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
};

// What a test wants done, run on the service's threads. What happened before it was set happens
// before it runs: gRPC orders that too, but ThreadSanitizer does not see into the library.
template <typename Function>
class Handler {
 public:
  Handler& operator=(Function function) {
    MutexLock lock(&mutex_);
    function_ = std::move(function);
    return *this;
  }
  auto operator()(const ClaimReference& claim) {
    Function function;
    {
      MutexLock lock(&mutex_);
      function = function_;
    }
    return function(claim);
  }

 private:
  Mutex mutex_;
  Function function_ ABSL_GUARDED_BY(mutex_);
};

struct V1 {
  using Api = v1::DRAPlugin;
  using PrepareRequest = v1::NodePrepareResourcesRequest;
  using PrepareResponse = v1::NodePrepareResourcesResponse;
  using UnprepareRequest = v1::NodeUnprepareResourcesRequest;
  using UnprepareResponse = v1::NodeUnprepareResourcesResponse;
  static auto Make(ClaimOperations operations, TaskPool& pool) {
    return MakeDraServiceV1(std::move(operations), pool);
  }
  static std::string ShareId(const v1::Device& device) {
    return device.has_share_id() ? device.share_id() : "none";
  }
};

struct V1beta1 {
  using Api = v1beta1::DRAPlugin;
  using PrepareRequest = v1beta1::NodePrepareResourcesRequest;
  using PrepareResponse = v1beta1::NodePrepareResourcesResponse;
  using UnprepareRequest = v1beta1::NodeUnprepareResourcesRequest;
  using UnprepareResponse = v1beta1::NodeUnprepareResourcesResponse;
  static auto Make(ClaimOperations operations, TaskPool& pool) {
    return MakeDraServiceV1beta1(std::move(operations), pool);
  }
  static std::string ShareId(const v1beta1::Device&) { return "none"; }
};

template <typename Version>
class DraServiceTest : public ::testing::Test {
 protected:
  using Prepared = absl::StatusOr<std::vector<PreparedDevice>>;

  DraServiceTest() : pool_(8) {
    service_ = Version::Make(
        {.prepare = [this](const ClaimReference& claim) { return prepare_(claim); },
         .unprepare = [this](const ClaimReference& claim) { return unprepare_(claim); }},
        pool_);
    grpc::ServerBuilder builder;
    address_ = absl::StrCat("unix:", dir_.File("s"));
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = NewStub();
  }
  ~DraServiceTest() override { server_->Shutdown(); }

  std::unique_ptr<typename Version::Api::Stub> NewStub() {
    return Version::Api::NewStub(grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
  }

  template <typename Request>
  static Request RequestFor(const std::vector<std::string>& uids) {
    Request request;
    for (const std::string& uid : uids) {
      auto* claim = request.add_claims();
      claim->set_namespace_("ns");
      claim->set_name(absl::StrCat("claim-", uid));
      claim->set_uid(uid);
    }
    return request;
  }

  typename Version::PrepareResponse Prepare(const std::vector<std::string>& uids) {
    grpc::ClientContext context;
    typename Version::PrepareResponse response;
    const grpc::Status status = stub_->NodePrepareResources(
        &context, RequestFor<typename Version::PrepareRequest>(uids), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  typename Version::UnprepareResponse Unprepare(const std::vector<std::string>& uids) {
    grpc::ClientContext context;
    typename Version::UnprepareResponse response;
    const grpc::Status status = stub_->NodeUnprepareResources(
        &context, RequestFor<typename Version::UnprepareRequest>(uids), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  static std::vector<PreparedDevice> OneDevice(const std::string& name) {
    return {{.requests = {"npu"},
             .pool = "node-1",
             .device = name,
             .share_id = "",
             .cdi_device_ids = {absl::StrCat("k8s.npu.huawei.com/claim=", name)}}};
  }

  Handler<std::function<Prepared(const ClaimReference&)>> prepare_;
  Handler<std::function<absl::Status(const ClaimReference&)>> unprepare_;
  TempDir dir_;
  TaskPool pool_;
  std::unique_ptr<grpc::Service> service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<typename Version::Api::Stub> stub_;
};

using Versions = ::testing::Types<V1, V1beta1>;
TYPED_TEST_SUITE(DraServiceTest, Versions);

TYPED_TEST(DraServiceTest, AnEmptyRequestSucceeds) {  // REG-07: the liveness probe
  EXPECT_THAT(this->Prepare({}).claims(), IsEmpty());
  EXPECT_THAT(this->Unprepare({}).claims(), IsEmpty());
}

TYPED_TEST(DraServiceTest, AnswersWhatTheEngineSays) {
  this->prepare_ = [](const ClaimReference& claim) -> absl::StatusOr<std::vector<PreparedDevice>> {
    EXPECT_EQ(claim.namespace_name, "ns");
    EXPECT_EQ(claim.name, "claim-u1");
    EXPECT_EQ(claim.uid, "u1");
    return std::vector<PreparedDevice>{
        {.requests = {"npu", "other"},
         .pool = "node-1",
         .device = "npu-3",
         .share_id = "11111111-2222",
         .cdi_device_ids = {"k8s.npu.huawei.com/claim=u1-npu-3", "second"}},
        {.requests = {},
         .pool = "node-1",
         .device = "npu-4",
         .share_id = "",
         .cdi_device_ids = {}}};
  };
  const auto response = this->Prepare({"u1"});
  ASSERT_EQ(response.claims().size(), 1u);
  const auto& answer = response.claims().at("u1");
  EXPECT_EQ(answer.error(), "");
  ASSERT_EQ(answer.devices_size(), 2);
  EXPECT_THAT(answer.devices(0).request_names(), ElementsAre("npu", "other"));
  EXPECT_EQ(answer.devices(0).pool_name(), "node-1");
  EXPECT_EQ(answer.devices(0).device_name(), "npu-3");
  EXPECT_THAT(answer.devices(0).cdi_device_ids(),
              ElementsAre("k8s.npu.huawei.com/claim=u1-npu-3", "second"));
  EXPECT_THAT(answer.devices(1).request_names(), IsEmpty());
  // v1beta1 knows no share ids.
  const bool v1_spoken = std::is_same_v<TypeParam, V1>;
  EXPECT_EQ(TypeParam::ShareId(answer.devices(0)), v1_spoken ? "11111111-2222" : "none");
  EXPECT_EQ(TypeParam::ShareId(answer.devices(1)), "none");
}

TYPED_TEST(DraServiceTest, OneAnswerPerClaimAlsoBesideAFailure) {
  this->prepare_ =
      [this](const ClaimReference& claim) -> absl::StatusOr<std::vector<PreparedDevice>> {
    if (claim.uid == "bad") return absl::NotFoundError("claim ns/claim-bad: chip 3 is gone");
    return this->OneDevice(claim.uid);
  };
  this->unprepare_ = [](const ClaimReference& claim) {
    return claim.uid == "bad" ? absl::UnavailableError("disk full") : absl::OkStatus();
  };
  const auto prepared = this->Prepare({"a", "bad", "b", ""});
  ASSERT_EQ(prepared.claims().size(), 4u);
  EXPECT_EQ(prepared.claims().at("a").devices(0).device_name(), "a");
  EXPECT_EQ(prepared.claims().at("b").devices(0).device_name(), "b");
  EXPECT_EQ(prepared.claims().at("bad").error(), "claim ns/claim-bad: chip 3 is gone");
  EXPECT_EQ(prepared.claims().at("bad").devices_size(), 0);
  const auto unprepared = this->Unprepare({"a", "bad", "b"});
  ASSERT_EQ(unprepared.claims().size(), 3u);
  EXPECT_EQ(unprepared.claims().at("a").error(), "");
  EXPECT_EQ(unprepared.claims().at("bad").error(), "disk full");
}

TYPED_TEST(DraServiceTest, AnErrorNeverLooksLikeSuccessNorSpoilsTheAnswer) {
  this->prepare_ = [](const ClaimReference& claim) -> absl::StatusOr<std::vector<PreparedDevice>> {
    if (claim.uid == "silent") return absl::InternalError("");
    if (claim.uid == "garbage") return absl::InternalError("file \xff\xfe");
    return absl::InternalError("\xe8\xae\xbe\xe5\xa4\x87");  // as it is
  };
  const auto response = this->Prepare({"silent", "garbage", "chinese"});
  EXPECT_NE(response.claims().at("silent").error(), "");
  EXPECT_EQ(response.claims().at("garbage").error(), "file \\xff\\xfe");
  EXPECT_EQ(response.claims().at("chinese").error(), "\xe8\xae\xbe\xe5\xa4\x87");
}

TYPED_TEST(DraServiceTest, AClaimNamedTwiceIsHandledOnce) {
  std::atomic<int> calls = 0;
  this->prepare_ = [&](const ClaimReference& claim) {
    ++calls;
    return this->OneDevice(claim.uid);
  };
  const auto response = this->Prepare({"u1", "u1", "u1"});
  EXPECT_EQ(response.claims().size(), 1u);
  EXPECT_EQ(response.claims().at("u1").devices_size(), 1);
  EXPECT_EQ(calls, 1);
}

TYPED_TEST(DraServiceTest, ClaimsOfACallRunSideBySide) {
  Gate a, b;
  this->unprepare_ = [&](const ClaimReference& claim) {
    (claim.uid == "a" ? a : b).Open();
    return (claim.uid == "a" ? b : a).Wait() ? absl::OkStatus() : absl::InternalError("alone");
  };
  const auto response = this->Unprepare({"a", "b"});
  EXPECT_EQ(response.claims().at("a").error(), "");
  EXPECT_EQ(response.claims().at("b").error(), "");
}

TYPED_TEST(DraServiceTest, WorkGoesOnWhenTheClientGivesUp) {
  Gate begun, go_on, done;
  this->prepare_ = [&](const ClaimReference& claim) {
    begun.Open();
    EXPECT_TRUE(go_on.Wait());
    done.Open();
    return this->OneDevice(claim.uid);
  };
  grpc::ClientContext context;
  typename TypeParam::PrepareResponse response;
  std::thread canceller([&] {
    EXPECT_TRUE(begun.Wait());
    context.TryCancel();
  });
  const grpc::Status status = this->stub_->NodePrepareResources(
      &context, this->template RequestFor<typename TypeParam::PrepareRequest>({"u1"}), &response);
  canceller.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  go_on.Open();
  EXPECT_TRUE(done.Wait());
  EXPECT_EQ(this->Prepare({"u1"}).claims().size(), 1u);  // and the next call is served
}

TYPED_TEST(DraServiceTest, ManyCallersAtOnce) {
  this->prepare_ = [this](const ClaimReference& claim) { return this->OneDevice(claim.uid); };
  std::vector<std::thread> callers;
  std::atomic<int> answers = 0;
  for (int i = 0; i < 64; ++i) {
    callers.emplace_back([&, i] {
      std::vector<std::string> uids;
      for (int k = 0; k < 4; ++k) uids.push_back(absl::StrCat("u-", i, "-", k));
      const auto response = this->Prepare(uids);
      for (const std::string& uid : uids) {
        const auto answer = response.claims().find(uid);
        if (answer != response.claims().end() && answer->second.devices_size() == 1 &&
            answer->second.devices(0).device_name() == uid) {
          ++answers;
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(answers, 64 * 4);
}

}  // namespace
}  // namespace ascend::kubeletplugin
