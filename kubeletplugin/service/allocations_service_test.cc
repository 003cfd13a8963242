#include "kubeletplugin/service/allocations_service.h"

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocations.grpc.pb.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "base/core/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

namespace api = ::ascend::allocations::v1alpha1;
using ::testing::HasSubstr;

class AllocationsServiceTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<AllocationsServer>> Start() {
    return AllocationsServer::Start({.socket = socket_, .group = ::getgid()}, metrics_, feed_);
  }

  std::unique_ptr<api::Allocations::Stub> Stub() const {
    grpc::ChannelArguments arguments;
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return api::Allocations::NewStub(grpc::CreateCustomChannel(
        absl::StrCat("unix:", socket_), grpc::InsecureChannelCredentials(), arguments));
  }

  static void SetDeadline(grpc::ClientContext* context) {
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  }

  grpc::Status GetMetrics(api::GetMetricsResponse* response) const {
    grpc::ClientContext context;
    SetDeadline(&context);
    return Stub()->GetMetrics(&context, {}, response);
  }

  void SetClaims(int count) {
    {
      MutexLock lock(&mutex_);
      contents_.records.clear();
      for (int i = 0; i < count; ++i) {
        ClaimRecord record;
        record.claim_uid = absl::StrCat("uid-", i);
        contents_.records.push_back(std::make_shared<const ClaimRecord>(std::move(record)));
      }
    }
    feed_.RecordsChanged();
  }

  TempDir dir_;
  const std::string socket_ = dir_.File("allocations.sock");
  Metrics metrics_{{.version = "1.2.3", .revision = "r"}};
  Mutex mutex_;
  RecordStore::Contents contents_ ABSL_GUARDED_BY(mutex_);
  AllocationsFeed feed_{"npu.huawei.com", "node-1",
                        [this]() -> absl::StatusOr<RecordStore::Contents> {
                          MutexLock lock(&mutex_);
                          return contents_;
                        }};
};

TEST_F(AllocationsServiceTest, MetricsInTheirStructuredForm) {
  const auto server = Start();
  ASSERT_THAT(server, IsOk());
  metrics_.PrepareBegins();
  metrics_.Prepared(absl::OkStatus(), absl::Milliseconds(7));
  api::GetMetricsResponse response;
  ASSERT_TRUE(GetMetrics(&response).ok());
  std::map<std::string, const api::MetricFamily*> families;
  for (const api::MetricFamily& family : response.families()) families[family.name()] = &family;
  EXPECT_EQ(families.size(), metrics_.Collect().size());

  const api::MetricFamily& total = *families.at("ascend_dra_claim_prepare_total");
  EXPECT_EQ(total.type(), api::COUNTER);
  EXPECT_EQ(total.help(), "Claims prepared, by result.");
  ASSERT_EQ(total.metrics_size(), 2);
  EXPECT_EQ(total.metrics(1).labels(0).name(), "result");
  EXPECT_EQ(total.metrics(1).labels(0).value(), "success");
  EXPECT_EQ(total.metrics(1).counter(), 1);

  const api::MetricFamily& inflight = *families.at("ascend_dra_claims_inflight");
  EXPECT_EQ(inflight.type(), api::GAUGE);
  EXPECT_EQ(inflight.metrics(0).value_case(), api::Metric::kGauge);

  const api::MetricFamily& seconds = *families.at("ascend_dra_claim_prepare_duration_seconds");
  EXPECT_EQ(seconds.type(), api::HISTOGRAM);
  const api::Histogram& histogram = seconds.metrics(0).histogram();
  EXPECT_EQ(histogram.sample_count(), 1u);
  EXPECT_DOUBLE_EQ(histogram.sample_sum(), 0.007);
  ASSERT_EQ(histogram.buckets_size(), 14);
  EXPECT_EQ(histogram.buckets(0).upper_bound(), 0.005);
  EXPECT_EQ(histogram.buckets(0).cumulative_count(), 0u);
  EXPECT_EQ(histogram.buckets(1).cumulative_count(), 1u);
  EXPECT_TRUE(std::isinf(histogram.buckets(13).upper_bound()));
  EXPECT_EQ(histogram.buckets(13).cumulative_count(), 1u);
}

TEST_F(AllocationsServiceTest, AStreamOfSnapshots) {
  const auto server = Start();
  ASSERT_THAT(server, IsOk());
  SetClaims(0);
  const auto stub = Stub();
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto reader = stub->WatchAllocations(&context, {});
  api::AllocationsSnapshot snapshot;
  ASSERT_TRUE(reader->Read(&snapshot));
  EXPECT_EQ(snapshot.node_name(), "node-1");
  SetClaims(3);
  do {
    ASSERT_TRUE(reader->Read(&snapshot));
  } while (snapshot.claims_size() != 3);
  SetClaims(1);
  do {
    ASSERT_TRUE(reader->Read(&snapshot));
  } while (snapshot.claims_size() != 1);
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(AllocationsServiceTest, ASlowReaderGetsTheLastOne) {
  const auto server = Start();
  ASSERT_THAT(server, IsOk());
  const auto stub = Stub();
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto reader = stub->WatchAllocations(&context, {});
  for (int i = 1; i <= 200; ++i) SetClaims(i);
  api::AllocationsSnapshot snapshot;
  uint64_t last = 0;
  do {
    ASSERT_TRUE(reader->Read(&snapshot));
    EXPECT_GT(snapshot.revision(), last);
    last = snapshot.revision();
  } while (snapshot.claims_size() != 200);
}

TEST_F(AllocationsServiceTest, TheEndIsToldAndTheSocketGoes) {
  auto server = Start();
  ASSERT_THAT(server, IsOk());
  SetClaims(1);
  const auto stub = Stub();
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto reader = stub->WatchAllocations(&context, {});
  api::AllocationsSnapshot snapshot;
  ASSERT_TRUE(reader->Read(&snapshot));
  server->reset();
  while (reader->Read(&snapshot)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_NE(::access(socket_.c_str(), F_OK), 0);
}

TEST_F(AllocationsServiceTest, ReadersComeAndGoWhileThingsChange) {
  const auto server = Start();
  ASSERT_THAT(server, IsOk());
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      for (int n = 0; n < 10; ++n) {
        const auto stub = Stub();
        grpc::ClientContext context;
        SetDeadline(&context);
        const auto reader = stub->WatchAllocations(&context, {});
        api::AllocationsSnapshot snapshot;
        EXPECT_TRUE(reader->Read(&snapshot));
        context.TryCancel();
        reader->Finish();
        api::GetMetricsResponse response;
        EXPECT_TRUE(GetMetrics(&response).ok());
      }
    });
  }
  for (int i = 0; i < 50; ++i) SetClaims(i % 5);
  for (std::thread& reader : readers) reader.join();
}

TEST_F(AllocationsServiceTest, TheSocketIsForItsGroup) {
  const mode_t mask = ::umask(0);
  const auto server = Start();
  EXPECT_EQ(::umask(mask), 0u);  // as it was
  ASSERT_THAT(server, IsOk());
  struct stat info;
  ASSERT_EQ(::lstat(socket_.c_str(), &info), 0);
  EXPECT_TRUE(S_ISSOCK(info.st_mode));
  EXPECT_EQ(info.st_mode & 07777, 0660u);
  EXPECT_EQ(info.st_gid, ::getgid());
}

TEST_F(AllocationsServiceTest, RootGivesTheSocketToTheSidecarsGroup) {
  if (::geteuid() != 0) GTEST_SKIP() << "takes root";
  const auto server = AllocationsServer::Start({.socket = socket_}, metrics_, feed_);
  ASSERT_THAT(server, IsOk());
  struct stat info;
  ASSERT_EQ(::lstat(socket_.c_str(), &info), 0);
  EXPECT_EQ(info.st_gid, 65532u);
  EXPECT_EQ(info.st_mode & 07777, 0660u);
}

TEST_F(AllocationsServiceTest, ADeadInstancesSocketIsReplaced) {
  {
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    socket_.copy(address.sun_path, socket_.size());
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  const auto server = Start();
  ASSERT_THAT(server, IsOk());
  api::GetMetricsResponse response;
  EXPECT_TRUE(GetMetrics(&response).ok());
}

TEST_F(AllocationsServiceTest, ALivingInstanceKeepsItsSocket) {
  auto first = Start();
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(socket_)));
  api::GetMetricsResponse response;
  EXPECT_TRUE(GetMetrics(&response).ok());  // also after the second gave up
  first->reset();
  const auto second = Start();
  ASSERT_THAT(second, IsOk());
  EXPECT_TRUE(GetMetrics(&response).ok());
}

TEST_F(AllocationsServiceTest, WrongPaths) {
  const auto start = [&](const std::string& socket) {
    return AllocationsServer::Start({.socket = socket, .group = ::getgid()}, metrics_, feed_)
        .status();
  };
  EXPECT_THAT(start("relative.sock"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("relative.sock")));
  EXPECT_THAT(start(dir_.File(std::string(108, 'x'))),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("107")));
  EXPECT_THAT(start(dir_.File("missing/a.sock")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("missing/a.sock")));
  ASSERT_THAT(WriteFileAtomically(socket_, "keep"), IsOk());
  EXPECT_THAT(start(socket_),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not a socket")));
  EXPECT_THAT(ReadFile(socket_), IsOkAndHolds("keep"));
}

}  // namespace
}  // namespace ascend::kubeletplugin
