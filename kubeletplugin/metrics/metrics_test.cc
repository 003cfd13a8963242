#include "kubeletplugin/metrics/metrics.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/claims/prepare_error.h"
#include "kubeletplugin/metrics/measured_operations.h"
#include "nlohmann/json.hpp"
#include "prometheus/text_serializer.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MetricsTest : public ::testing::Test {
 protected:
  std::string Page() const {
    std::ostringstream text;
    prometheus::TextSerializer().Serialize(text, metrics_.Collect());
    return text.str();
  }

  Metrics metrics_{{.version = "1.2.3", .revision = ""}};
};

NodeState FullState() {
  return {.prepared_claims = 2,
          .prepared_npus = 3,
          .prepared_vnpus = 0,
          .unreadable_records = 1,
          .cdi_spec_files = 2,
          .registered = true};
}

// A changed name, type or label breaks dashboards and alerts: with intent, change the file too.
TEST_F(MetricsTest, FamiliesAreThoseOfTheContract) {
  metrics_.SetNodeState(FullState);
  const auto listed = nlohmann::json::parse(DescribeFamilies(metrics_.Collect()));
  std::string actual;
  for (const auto& family : listed) {
    const std::string labels = absl::StrJoin(family["labels"].get<std::vector<std::string>>(), ",");
    absl::StrAppend(&actual, family["name"].get<std::string>(), " ",
                    family["type"].get<std::string>(), " ", labels.empty() ? "-" : labels, "\n");
  }
  const std::string path = JoinPath(ASCEND_DRA_TESTDATA, "families.txt");
  const absl::StatusOr<std::string> golden = ReadFile(path);
  ASSERT_THAT(golden, IsOk());
  EXPECT_EQ(actual, *golden);
}

TEST_F(MetricsTest, HelpIsOneLineOfAsciiAndEverythingKeepsTheNamingRules) {
  metrics_.SetNodeState(FullState);
  std::set<std::string> names;
  size_t series = 0;
  for (const prometheus::MetricFamily& family : metrics_.Collect()) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name << " is there twice";
    EXPECT_FALSE(family.help.empty()) << family.name;
    for (const char c : family.help) EXPECT_TRUE(absl::ascii_isprint(c)) << family.name;
    const bool total = absl::EndsWith(family.name, "_total");
    EXPECT_EQ(total, family.type == prometheus::MetricType::Counter) << family.name;
    if (family.type == prometheus::MetricType::Histogram) {
      EXPECT_TRUE(absl::EndsWith(family.name, "_seconds")) << family.name;
    }
    EXPECT_FALSE(family.metric.empty()) << family.name << " has no series at the start";
    std::set<std::string> label_sets;
    for (const prometheus::ClientMetric& metric : family.metric) {
      EXPECT_EQ(metric.timestamp_ms, 0) << family.name;
      std::string labels;
      for (const auto& label : metric.label) {
        absl::StrAppend(&labels, label.name, "=", label.value, ";");
        EXPECT_THAT((std::set<std::string>{"type", "service", "region", "zone", "cluster", "env"}),
                    Not(::testing::Contains(label.name)));
      }
      EXPECT_TRUE(label_sets.insert(labels).second) << family.name << " " << labels;
      series += std::max<size_t>(1, metric.histogram.bucket.size());
    }
  }
  EXPECT_LT(series, 500u);
}

TEST_F(MetricsTest, CountersExistBeforeAnythingHappened) {
  const std::string page = Page();
  for (const PrepareError error : kPrepareErrors) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat("ascend_dra_claim_prepare_errors_total{reason=\"",
                                             Name(error), "\"} 0\n")));
  }
  EXPECT_THAT(page, HasSubstr("ascend_dra_claim_prepare_total{result=\"error\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("ascend_dra_apiserver_requests_total{code=\"503\","
                              "resource=\"resourceclaims\",verb=\"get\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("ascend_dra_claim_prepare_duration_seconds_count 0\n"));
  EXPECT_THAT(page, HasSubstr("revision=\"unknown\",version=\"1.2.3\"} 1\n"));
}

TEST_F(MetricsTest, OperationsAreCountedHoweverTheyEnd) {
  absl::Status next;
  int inflight = -1;
  const ClaimOperations operations = MeasureOperations(
      {.prepare = [&](const ClaimReference&) -> absl::StatusOr<std::vector<PreparedDevice>> {
         inflight =
             absl::StrContains(Page(), "ascend_dra_claims_inflight{operation=\"prepare\"} 1\n");
         if (!next.ok()) return next;
         return std::vector<PreparedDevice>(2);
       },
       .unprepare = [&](const ClaimReference&) { return next; }},
      metrics_);
  EXPECT_EQ(operations.prepare({})->size(), 2u);
  EXPECT_EQ(inflight, 1);
  next = WithReason(absl::DeadlineExceededError("chip 3"), PrepareError::kLock);
  EXPECT_EQ(operations.prepare({}).status(), next);
  EXPECT_EQ(operations.unprepare({}), next);
  operations.prepare_called({.cancelled = false, .duration = absl::Milliseconds(3)});
  operations.prepare_called({.cancelled = true, .duration = absl::Seconds(46)});
  operations.unprepare_called({.duration = absl::Milliseconds(1)});
  const std::string page = Page();
  for (const char* line : {
           "ascend_dra_claim_prepare_total{result=\"success\"} 1\n",
           "ascend_dra_claim_prepare_total{result=\"error\"} 1\n",
           "ascend_dra_claim_prepare_duration_seconds_count 2\n",
           "ascend_dra_claim_prepare_errors_total{reason=\"lock\"} 1\n",
           "ascend_dra_claim_prepare_errors_total{reason=\"deadline\"} 0\n",
           "ascend_dra_claim_unprepare_total{result=\"error\"} 1\n",
           "ascend_dra_claim_unprepare_duration_seconds_count 1\n",
           "ascend_dra_claims_inflight{operation=\"prepare\"} 0\n",
           "ascend_dra_claims_inflight{operation=\"unprepare\"} 0\n",
           "ascend_dra_grpc_requests_total{code=\"OK\",method=\"NodePrepareResources\"} 1\n",
           "ascend_dra_grpc_requests_total{code=\"CANCELLED\",method=\"NodePrepareResources\"} 1\n",
           "ascend_dra_grpc_request_duration_seconds_count{method=\"NodeUnprepareResources\"} 1\n",
       }) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST_F(MetricsTest, RequestsToTheApiServer) {
  const auto request = [&](kube::Verb verb, kube::Resource resource, int status) {
    metrics_.ApiRequest(
        {.kind = {verb, resource}, .http_status = status, .duration = absl::Milliseconds(7)});
  };
  request(kube::Verb::kGet, kube::Resource::kResourceClaims, 200);
  request(kube::Verb::kGet, kube::Resource::kResourceClaims, 404);
  request(kube::Verb::kGet, kube::Resource::kResourceClaims, 418);
  request(kube::Verb::kGet, kube::Resource::kResourceClaims, 0);
  request(kube::Verb::kDelete, kube::Resource::kNodes, 200);  // never made
  request(kube::Verb::kWatch, kube::Resource::kResourceSlices, 410);
  for (int i = 0; i < 3; ++i) {
    metrics_.ApiRequest(
        {.kind = {kube::Verb::kWatch, kube::Resource::kResourceSlices}, .watch_begins = true});
  }
  const std::string page = Page();
  const auto count = [&](const char* code, const char* resource, const char* verb) {
    return absl::StrCat("ascend_dra_apiserver_requests_total{code=\"", code, "\",resource=\"",
                        resource, "\",verb=\"", verb, "\"} 1\n");
  };
  EXPECT_THAT(page, HasSubstr(count("200", "resourceclaims", "get")));
  EXPECT_THAT(page, HasSubstr(count("404", "resourceclaims", "get")));
  EXPECT_THAT(page, HasSubstr(count("other", "resourceclaims", "get")));
  EXPECT_THAT(page, HasSubstr(count("error", "resourceclaims", "get")));
  EXPECT_THAT(page, HasSubstr(count("200", "other", "other")));
  EXPECT_THAT(page, HasSubstr(count("410", "resourceslices", "watch")));
  EXPECT_THAT(page, HasSubstr("ascend_dra_apiserver_request_duration_seconds_count{"
                              "resource=\"resourceclaims\",verb=\"get\"} 4\n"));
  EXPECT_THAT(page, HasSubstr("ascend_dra_watch_restarts_total{resource=\"resourceslices\"} 2\n"));
}

TEST_F(MetricsTest, SlicesAsPublished) {
  std::map<std::string, kube::ResourceSlice> slices;
  slices["s"].devices = {
      {.name = "npu-0"},
      {.name = "npu-1", .taints = {{.key = "k", .value = "major", .effect = "NoSchedule"}}},
      {.name = "npu-2"}};
  metrics_.SlicesPublished({.event = PublishReport::Event::kWritten});
  metrics_.SlicesPublished({.event = PublishReport::Event::kFailed});
  EXPECT_THAT(Page(), HasSubstr("ascend_dra_resourceslice_last_publish_timestamp_seconds 0\n"));
  metrics_.SlicesPublished(
      {.event = PublishReport::Event::kCurrent, .generation = 7, .slices = &slices});
  std::string page = Page();
  for (const char* line : {
           "ascend_dra_resourceslice_publish_total{result=\"success\"} 1\n",
           "ascend_dra_resourceslice_publish_total{result=\"error\"} 1\n",
           "ascend_dra_resourceslice_generation 7\n",
           "ascend_dra_published_devices{state=\"healthy\"} 2\n",
           "ascend_dra_published_devices{state=\"tainted\"} 1\n",
           "ascend_dra_device_taints{effect=\"NoSchedule\",key=\"npu.huawei.com/unhealthy\"} 1\n",
           "ascend_dra_device_taints{effect=\"NoExecute\",key=\"npu.huawei.com/unhealthy\"} 0\n",
       }) {
    EXPECT_THAT(page, HasSubstr(line));
  }
  EXPECT_THAT(page, Not(HasSubstr("ascend_dra_resourceslice_last_publish_timestamp_seconds 0\n")));
  // Two instances during an upgrade: only one tells of devices.
  metrics_.SlicesPublished({.event = PublishReport::Event::kNotPublisher});
  page = Page();
  EXPECT_THAT(page, HasSubstr("ascend_dra_resourceslice_generation 0\n"));
  EXPECT_THAT(page, HasSubstr("ascend_dra_published_devices{state=\"healthy\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("{effect=\"NoSchedule\",key=\"npu.huawei.com/unhealthy\"} 0\n"));
}

TEST_F(MetricsTest, TheRest) {
  metrics_.RecordWritten(absl::OkStatus(), absl::Milliseconds(1));
  metrics_.RecordWritten(absl::ResourceExhaustedError("full"), absl::Milliseconds(1));
  metrics_.OrphanRemoved(Orphan::kCdiFile);
  metrics_.OrphanRemoved(Orphan::kClaim);
  metrics_.Registration(true);
  metrics_.Registration(false);
  metrics_.PodResourcesAsked(absl::UnavailableError("x"), absl::FromUnixSeconds(5));
  metrics_.PodResourcesAsked(absl::OkStatus(), absl::FromUnixSeconds(1000));
  const std::string page = Page();
  for (const char* line : {
           "ascend_dra_record_writes_total{result=\"success\"} 1\n",
           "ascend_dra_record_writes_total{result=\"error\"} 1\n",
           "ascend_dra_record_write_duration_seconds_count 2\n",
           "ascend_dra_orphans_removed_total{kind=\"cdi_file\"} 1\n",
           "ascend_dra_orphans_removed_total{kind=\"claim\"} 1\n",
           "ascend_dra_orphans_removed_total{kind=\"claim_lock\"} 0\n",
           "ascend_dra_registrations_total{result=\"success\"} 1\n",
           "ascend_dra_registrations_total{result=\"error\"} 1\n",
           "ascend_dra_podresources_requests_total 2\n",
           "ascend_dra_podresources_errors_total 1\n",
           "ascend_dra_podresources_last_success_timestamp_seconds 1000\n",
       }) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST_F(MetricsTest, WhatCannotBeReadHasNoSeries) {
  EXPECT_THAT(Page(), Not(HasSubstr("ascend_dra_prepared_claims")));  // nobody to ask
  metrics_.SetNodeState([] { return NodeState{.cdi_spec_files = 4, .registered = false}; });
  std::string page = Page();
  EXPECT_THAT(page, HasSubstr("ascend_dra_cdi_spec_files 4\n"));
  EXPECT_THAT(page, HasSubstr("ascend_dra_kubelet_registered 0\n"));
  EXPECT_THAT(page, Not(HasSubstr("\nascend_dra_prepared_claims ")));
  EXPECT_THAT(page, Not(HasSubstr("\nascend_dra_unreadable_records ")));
  metrics_.SetNodeState(FullState);
  page = Page();
  EXPECT_THAT(page, HasSubstr("\nascend_dra_prepared_claims 2\n"));
  EXPECT_THAT(page, HasSubstr("ascend_dra_prepared_devices{kind=\"npu\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("ascend_dra_prepared_devices{kind=\"vnpu\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("\nascend_dra_unreadable_records 1\n"));
  metrics_.SetNodeState(nullptr);
  EXPECT_THAT(Page(), Not(HasSubstr("ascend_dra_prepared_claims")));
}

TEST_F(MetricsTest, TheProcessItself) {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : metrics_.Collect()) {
    if (!absl::StartsWith(family.name, "process_")) continue;
    const prometheus::ClientMetric& metric = family.metric.at(0);
    values[family.name] =
        family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
  }
  EXPECT_GT(values.at("process_cpu_seconds_total"), 0);
  EXPECT_GT(values.at("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GE(values.at("process_virtual_memory_bytes"), values.at("process_resident_memory_bytes"));
  EXPECT_GE(values.at("process_open_fds"), 3);
  EXPECT_GE(values.at("process_max_fds"), values.at("process_open_fds"));
  const double now = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  EXPECT_LT(values.at("process_start_time_seconds"), now + 2);
  EXPECT_GT(values.at("process_start_time_seconds"), now - 3600);
}

TEST_F(MetricsTest, ManyThreadsCountWhileOneCollects) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 500; ++n) {
        metrics_.PrepareBegins();
        metrics_.Prepared(absl::OkStatus(), absl::Milliseconds(1));
        metrics_.RecordWritten(absl::OkStatus(), absl::Milliseconds(1));
        metrics_.SetNodeState(FullState);
      }
    });
  }
  for (int i = 0; i < 5; ++i) metrics_.Collect();
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Page(), HasSubstr("ascend_dra_claim_prepare_total{result=\"success\"} 2000\n"));
}

}  // namespace
}  // namespace ascend::kubeletplugin
