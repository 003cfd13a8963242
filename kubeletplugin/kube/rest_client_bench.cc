// Latency of GetResourceClaim against a loopback server, and the cost of parsing one claim.
//   kube_rest_client_bench [requests]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/runtime/clock.h"
#include "kubeletplugin/kube/rest_client.h"
#include "kubeletplugin/kube/testing/http_test_server.h"

namespace ascend::kube {
namespace {

// A claim of eight devices with what a real one carries, managedFields above all.
std::string TypicalClaim() {
  std::string results, fields;
  for (int i = 0; i < 8; ++i) {
    absl::StrAppend(&results, i == 0 ? "" : ",", R"({"request":"npu","driver":"npu.huawei.com",)",
                    R"("pool":"node-17","device":"npu-)", i, R"("})");
  }
  for (int i = 0; i < 60; ++i) {
    absl::StrAppend(&fields, i == 0 ? "" : ",", R"("f:field)", i, R"(":{".":{},"f:sub":{}})");
  }
  return absl::StrCat(
      R"({"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1","metadata":{"name":"job-1",)",
      R"("namespace":"ml","uid":"0f7c7d1c-5a44-4c36-8f57-0f1f2c1e9a11","managedFields":[{)",
      R"("manager":"kube-scheduler","fieldsV1":{)", fields, R"(}}]},"spec":{"devices":{)",
      R"("requests":[{"name":"npu","exactly":{"deviceClassName":"npu","count":8}}]}},)",
      R"("status":{"allocation":{"devices":{"results":[)", results,
      R"(],"config":[{"source":"FromClaim","opaque":{"driver":"npu.huawei.com","parameters":{)",
      R"("apiVersion":"npu.huawei.com/v1","kind":"NpuConfig"}}}]}},"reservedFor":[)",
      R"({"resource":"pods","name":"job-1","uid":"aa"}]}})");
}

absl::Duration Percentile(std::vector<absl::Duration>& sorted, double fraction) {
  return sorted[static_cast<size_t>(fraction * static_cast<double>(sorted.size() - 1))];
}

int Main(int requests) {
  const std::string claim = TypicalClaim();
  const Clock& clock = Clock::Real();
  HttpTestServer server(
      [&](const HttpTestServer::Request&, HttpTestServer::Connection& c) { c.Reply(200, claim); });
  auto client = CreateRestClient({.server = server.url()}, "bench/1");
  if (!client.ok()) return 1;

  std::vector<absl::Duration> times;
  for (int i = 0; i < requests; ++i) {
    const absl::Duration start = clock.Monotonic();
    if (!(*client)->GetResourceClaim("ml", "job-1", absl::Seconds(10)).ok()) return 1;
    times.push_back(clock.Monotonic() - start);
  }
  std::sort(times.begin(), times.end());
  std::vector<absl::Duration> parses;
  for (int i = 0; i < requests; ++i) {
    const absl::Duration start = clock.Monotonic();
    if (!ParseResourceClaim(claim).ok()) return 1;
    parses.push_back(clock.Monotonic() - start);
  }
  std::sort(parses.begin(), parses.end());
  std::printf("%d GETs of %zu bytes, %d connections: p50 %.0f us, p99 %.0f us; parse p50 %.1f us\n",
              requests, claim.size(), server.accepted(),
              absl::ToDoubleMicroseconds(Percentile(times, 0.5)),
              absl::ToDoubleMicroseconds(Percentile(times, 0.99)),
              absl::ToDoubleMicroseconds(Percentile(parses, 0.5)));
  return 0;
}

}  // namespace
}  // namespace ascend::kube

int main(int argc, char** argv) {
  return ascend::kube::Main(argc > 1 ? std::max(1, std::atoi(argv[1])) : 5000);
}
