#include "kubeletplugin/metrics/metrics.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kubeletplugin/claims/prepare_error.h"
#include "kubeletplugin/metrics/process.h"
#include "kubeletplugin/slices/builder.h"
#include "nlohmann/json.hpp"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace ascend::kubeletplugin {
namespace {

using prometheus::ClientMetric;
using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::MetricFamily;
using prometheus::MetricType;
using prometheus::Registry;
using Buckets = Histogram::BucketBoundaries;

// A claim of whole chips takes milliseconds, one that waits for another to let go up to 45 s.
const Buckets kClaimBuckets = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
const Buckets kDiskBuckets = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1, 10};
const Buckets kApiBuckets = {0.005, 0.025, 0.1, 0.5, 1, 5, 10, 30};

// What an API server answers to us; anything else is "other", no answer "error".
constexpr std::array kHttpCodes = {200, 201, 400, 401, 403, 404, 409, 410, 422, 429, 500, 503, 504};
constexpr size_t kOtherCode = kHttpCodes.size();
constexpr size_t kNoAnswer = kOtherCode + 1;
constexpr size_t kCodes = kNoAnswer + 1;

std::string CodeLabel(size_t index) {
  if (index == kOtherCode) return "other";
  return index == kNoAnswer ? "error" : absl::StrCat(kHttpCodes[index]);
}

size_t CodeIndex(int http_status) {
  if (http_status == 0) return kNoAnswer;
  return std::find(kHttpCodes.begin(), kHttpCodes.end(), http_status) - kHttpCodes.begin();
}

constexpr std::array<kube::RequestKind, 11> kRequests = {{
    {kube::Verb::kGet, kube::Resource::kResourceClaims},
    {kube::Verb::kPatch, kube::Resource::kResourceClaimsStatus},
    {kube::Verb::kUpdate, kube::Resource::kResourceClaimsStatus},
    {kube::Verb::kGet, kube::Resource::kNodes},
    {kube::Verb::kList, kube::Resource::kResourceSlices},
    {kube::Verb::kWatch, kube::Resource::kResourceSlices},
    {kube::Verb::kCreate, kube::Resource::kResourceSlices},
    {kube::Verb::kUpdate, kube::Resource::kResourceSlices},
    {kube::Verb::kPatch, kube::Resource::kResourceSlices},
    {kube::Verb::kDelete, kube::Resource::kResourceSlices},
    {kube::Verb::kCreate, kube::Resource::kEvents},
}};

constexpr std::array kOrphans = {"cdi_file", "claim_lock", "claim"};
constexpr std::array kMethods = {"NodePrepareResources", "NodeUnprepareResources"};
constexpr std::array kEffects = {"NoSchedule", "NoExecute", "None"};

template <typename Metric>
prometheus::Family<Metric>& AddFamily(Registry& registry, const char* name, const char* help);
template <>
prometheus::Family<Counter>& AddFamily(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
template <>
prometheus::Family<Gauge>& AddFamily(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
template <>
prometheus::Family<Histogram>& AddFamily(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

// A counter by result, and how long it took either way.
struct Outcome {
  Outcome(Registry& registry, const char* total, const char* total_help, const char* duration,
          const char* duration_help, const Buckets& buckets) {
    auto& family = AddFamily<Counter>(registry, total, total_help);
    success = &family.Add({{"result", "success"}});
    error = &family.Add({{"result", "error"}});
    seconds = &AddFamily<Histogram>(registry, duration, duration_help).Add({}, buckets);
  }
  void Count(const absl::Status& status, absl::Duration took) const {
    (status.ok() ? success : error)->Increment();
    seconds->Observe(absl::ToDoubleSeconds(took));
  }
  Counter* success;
  Counter* error;
  Histogram* seconds;
};

MetricFamily StateGauge(const char* name, const char* help) {
  return {.name = name, .help = help, .type = MetricType::Gauge, .metric = {}};
}

void AddSample(MetricFamily* family, std::optional<int> value,
               std::vector<ClientMetric::Label> labels = {}) {
  if (!value) return;
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.gauge.value = *value;
  family->metric.push_back(std::move(metric));
}

// Families whose values are read when they are asked for.
void AppendState(const NodeState& state, std::vector<MetricFamily>* families) {
  MetricFamily claims =
      StateGauge("ascend_dra_prepared_claims", "Claims that are prepared on this node.");
  AddSample(&claims, state.prepared_claims);
  MetricFamily devices = StateGauge("ascend_dra_prepared_devices",
                                    "Devices that prepared claims hold, without admin access.");
  AddSample(&devices, state.prepared_npus, {{"kind", "npu"}});
  AddSample(&devices, state.prepared_vnpus, {{"kind", "vnpu"}});
  MetricFamily unreadable = StateGauge("ascend_dra_unreadable_records",
                                       "Claim records that cannot be read; their devices are "
                                       "withheld. See: ascend-dra claims verify.");
  AddSample(&unreadable, state.unreadable_records);
  MetricFamily files =
      StateGauge("ascend_dra_cdi_spec_files", "CDI files of this driver's claims.");
  AddSample(&files, state.cdi_spec_files);
  MetricFamily registered =
      StateGauge("ascend_dra_kubelet_registered", "1 while the kubelet has the driver registered.");
  AddSample(&registered, state.registered ? 1 : 0);
  for (MetricFamily* family : {&claims, &devices, &unreadable, &files, &registered}) {
    families->push_back(std::move(*family));
  }
}

const char* TypeName(MetricType type) {
  switch (type) {
    case MetricType::Counter:
      return "counter";
    case MetricType::Gauge:
      return "gauge";
    case MetricType::Histogram:
      return "histogram";
    case MetricType::Summary:
      return "summary";
    default:
      return "untyped";
  }
}

}  // namespace

struct Metrics::Families {
  explicit Families(const BuildInfo& build);

  Registry registry;

  struct Method {
    Counter* ok;
    Counter* cancelled;
    Histogram* seconds;
  };
  std::array<Method, kMethods.size()> methods;
  Gauge* prepares_inflight;
  Gauge* unprepares_inflight;
  Outcome prepare;
  Outcome unprepare;
  std::array<Counter*, kPrepareErrors.size()> prepare_errors;  // by the enum's value
  Outcome record_write;
  std::array<Counter*, kOrphans.size()> orphans;

  Counter* publish_success;
  Counter* publish_error;
  Gauge* last_publish;
  Gauge* generation;
  Gauge* published_healthy;
  Gauge* published_tainted;
  std::array<Gauge*, kEffects.size()> taints;

  Counter* registration_success;
  Counter* registration_error;

  struct Request {
    std::array<Counter*, kCodes> codes = {};
    Histogram* seconds = nullptr;
  };
  // By verb and resource; those that are never made are empty and counted as `other`.
  std::array<std::array<Request, kube::kResources>, kube::kVerbs> requests;
  Request other;
  Counter* watch_restarts;
  std::atomic<bool> watched = false;

  Counter* pod_resources_requests;
  Counter* pod_resources_errors;
  Gauge* pod_resources_success;
};

Metrics::Families::Families(const BuildInfo& build)
    : prepare(registry, "ascend_dra_claim_prepare_total", "Claims prepared, by result.",
              "ascend_dra_claim_prepare_duration_seconds",
              "Time to prepare a claim, failures included.", kClaimBuckets),
      unprepare(registry, "ascend_dra_claim_unprepare_total", "Claims unprepared, by result.",
                "ascend_dra_claim_unprepare_duration_seconds",
                "Time to unprepare a claim, failures included.", kClaimBuckets),
      record_write(registry, "ascend_dra_record_writes_total",
                   "Claim records written or removed, by result.",
                   "ascend_dra_record_write_duration_seconds",
                   "Time to write or remove a claim record durably, failures included.",
                   kDiskBuckets) {
  AddFamily<Gauge>(registry, "ascend_dra_build_info", "Version of the driver; always 1.")
      .Add({{"version", build.version},
            {"revision", build.revision.empty() ? "unknown" : build.revision},
            {"compiler", absl::StrCat(
#ifdef __clang__
                             "clang ",
#else
                             "gcc ",
#endif
                             __VERSION__)}})
      .Set(1);

  auto& calls = AddFamily<Counter>(registry, "ascend_dra_grpc_requests_total",
                                   "Calls of the kubelet with claims, by code; CANCELLED: it had "
                                   "given up when the answer was there.");
  auto& call_seconds = AddFamily<Histogram>(registry, "ascend_dra_grpc_request_duration_seconds",
                                            "Time to answer calls of the kubelet with claims.");
  for (size_t i = 0; i < kMethods.size(); ++i) {
    methods[i] = {.ok = &calls.Add({{"method", kMethods[i]}, {"code", "OK"}}),
                  .cancelled = &calls.Add({{"method", kMethods[i]}, {"code", "CANCELLED"}}),
                  .seconds = &call_seconds.Add({{"method", kMethods[i]}}, kClaimBuckets)};
  }
  auto& inflight = AddFamily<Gauge>(registry, "ascend_dra_claims_inflight",
                                    "Claims that are being prepared or unprepared now.");
  prepares_inflight = &inflight.Add({{"operation", "prepare"}});
  unprepares_inflight = &inflight.Add({{"operation", "unprepare"}});
  auto& errors = AddFamily<Counter>(registry, "ascend_dra_claim_prepare_errors_total",
                                    "Claims that could not be prepared, by reason.");
  for (const PrepareError error : kPrepareErrors) {
    prepare_errors[static_cast<size_t>(error)] = &errors.Add({{"reason", Name(error)}});
  }
  auto& removed = AddFamily<Counter>(registry, "ascend_dra_orphans_removed_total",
                                     "Things removed that belonged to no live claim, by kind.");
  for (size_t i = 0; i < kOrphans.size(); ++i) orphans[i] = &removed.Add({{"kind", kOrphans[i]}});

  auto& published = AddFamily<Counter>(registry, "ascend_dra_resourceslice_publish_total",
                                       "Rounds that wrote ResourceSlices, by result.");
  publish_success = &published.Add({{"result", "success"}});
  publish_error = &published.Add({{"result", "error"}});
  last_publish =
      &AddFamily<Gauge>(registry, "ascend_dra_resourceslice_last_publish_timestamp_seconds",
                        "When the API server was last found to hold the ResourceSlices "
                        "as wanted; 0 = never.")
           .Add({});
  generation = &AddFamily<Gauge>(registry, "ascend_dra_resourceslice_generation",
                                 "Generation of the pool as published; 0 = by another instance.")
                    .Add({});
  auto& states = AddFamily<Gauge>(registry, "ascend_dra_published_devices",
                                  "Devices in the ResourceSlices, by state.");
  published_healthy = &states.Add({{"state", "healthy"}});
  published_tainted = &states.Add({{"state", "tainted"}});
  auto& device_taints = AddFamily<Gauge>(registry, "ascend_dra_device_taints",
                                         "Taints on published devices, by key and effect.");
  for (size_t i = 0; i < kEffects.size(); ++i) {
    taints[i] = &device_taints.Add({{"key", kUnhealthyTaint}, {"effect", kEffects[i]}});
  }

  auto& registrations = AddFamily<Counter>(registry, "ascend_dra_registrations_total",
                                           "Registrations with the kubelet, by its answer.");
  registration_success = &registrations.Add({{"result", "success"}});
  registration_error = &registrations.Add({{"result", "error"}});

  auto& api = AddFamily<Counter>(registry, "ascend_dra_apiserver_requests_total",
                                 "Finished requests to the API server; code error: no answer.");
  auto& api_seconds =
      AddFamily<Histogram>(registry, "ascend_dra_apiserver_request_duration_seconds",
                           "Time of requests to the API server, without watches.");
  const auto add = [&](const char* verb, const char* resource, bool timed) {
    Request request;
    for (size_t i = 0; i < kCodes; ++i) {
      request.codes[i] = &api.Add({{"verb", verb}, {"resource", resource}, {"code", CodeLabel(i)}});
    }
    if (timed) {
      request.seconds = &api_seconds.Add({{"verb", verb}, {"resource", resource}}, kApiBuckets);
    }
    return request;
  };
  for (const kube::RequestKind& kind : kRequests) {
    requests[static_cast<size_t>(kind.verb)][static_cast<size_t>(kind.resource)] =
        add(Name(kind.verb), Name(kind.resource), kind.verb != kube::Verb::kWatch);
  }
  other = add("other", "other", /*timed=*/true);
  watch_restarts = &AddFamily<Counter>(registry, "ascend_dra_watch_restarts_total",
                                       "Watches begun again, also after the server's time-out.")
                        .Add({{"resource", Name(kube::Resource::kResourceSlices)}});

  pod_resources_requests = &AddFamily<Counter>(registry, "ascend_dra_podresources_requests_total",
                                               "Questions to the kubelet's PodResources service.")
                                .Add({});
  pod_resources_errors = &AddFamily<Counter>(registry, "ascend_dra_podresources_errors_total",
                                             "Questions to PodResources that failed.")
                              .Add({});
  pod_resources_success =
      &AddFamily<Gauge>(registry, "ascend_dra_podresources_last_success_timestamp_seconds",
                        "When PodResources last answered; 0 = never. Asked only while claims are "
                        "prepared.")
           .Add({});
}

Metrics::Metrics(const BuildInfo& build) : families_(std::make_unique<Families>(build)) {}
Metrics::~Metrics() = default;

void Metrics::GrpcCall(DraMethod method, bool cancelled, absl::Duration duration) {
  const Families::Method& counters = families_->methods[static_cast<size_t>(method)];
  (cancelled ? counters.cancelled : counters.ok)->Increment();
  counters.seconds->Observe(absl::ToDoubleSeconds(duration));
}

void Metrics::PrepareBegins() { families_->prepares_inflight->Increment(); }
void Metrics::Prepared(const absl::Status& status, absl::Duration duration) {
  families_->prepares_inflight->Decrement();
  families_->prepare.Count(status, duration);
  if (!status.ok()) {
    families_->prepare_errors[static_cast<size_t>(ReasonOf(status))]->Increment();
  }
}

void Metrics::UnprepareBegins() { families_->unprepares_inflight->Increment(); }
void Metrics::Unprepared(const absl::Status& status, absl::Duration duration) {
  families_->unprepares_inflight->Decrement();
  families_->unprepare.Count(status, duration);
}

void Metrics::RecordWritten(const absl::Status& status, absl::Duration duration) {
  families_->record_write.Count(status, duration);
}

void Metrics::OrphanRemoved(Orphan kind) {
  families_->orphans[static_cast<size_t>(kind)]->Increment();
}

void Metrics::SlicesPublished(const PublishReport& report) {
  Families& f = *families_;
  int healthy = 0, tainted = 0;
  std::array<int, kEffects.size()> taints = {};
  switch (report.event) {
    case PublishReport::Event::kWritten:
      f.publish_success->Increment();
      return;
    case PublishReport::Event::kFailed:
      f.publish_error->Increment();
      return;
    case PublishReport::Event::kNotPublisher:
      break;  // the other instance's figures count
    case PublishReport::Event::kCurrent:
      f.last_publish->SetToCurrentTime();
      if (report.slices == nullptr) break;
      for (const auto& [name, slice] : *report.slices) {
        for (const kube::SliceDevice& device : slice.devices) {
          ++(device.taints.empty() ? healthy : tainted);
          for (const kube::DeviceTaint& taint : device.taints) {
            const auto effect = std::find(kEffects.begin(), kEffects.end(), taint.effect);
            if (effect != kEffects.end()) ++taints[effect - kEffects.begin()];
          }
        }
      }
      break;
  }
  f.generation->Set(static_cast<double>(report.generation));
  f.published_healthy->Set(healthy);
  f.published_tainted->Set(tainted);
  for (size_t i = 0; i < taints.size(); ++i) f.taints[i]->Set(taints[i]);
}

void Metrics::Registration(bool accepted) {
  (accepted ? families_->registration_success : families_->registration_error)->Increment();
}

void Metrics::ApiRequest(const kube::RequestReport& report) {
  if (report.watch_begins) {
    if (families_->watched.exchange(true)) families_->watch_restarts->Increment();
    return;
  }
  Families::Request* request = &families_->requests[static_cast<size_t>(report.kind.verb)]
                                                   [static_cast<size_t>(report.kind.resource)];
  if (request->codes[0] == nullptr) request = &families_->other;
  request->codes[CodeIndex(report.http_status)]->Increment();
  if (request->seconds != nullptr) {
    request->seconds->Observe(absl::ToDoubleSeconds(report.duration));
  }
}

void Metrics::PodResourcesAsked(const absl::Status& status, absl::Time now) {
  families_->pod_resources_requests->Increment();
  if (status.ok()) {
    families_->pod_resources_success->Set(absl::ToDoubleSeconds(now - absl::UnixEpoch()));
  } else {
    families_->pod_resources_errors->Increment();
  }
}

void Metrics::SetNodeState(std::function<NodeState()> state) {
  MutexLock lock(&mutex_);
  state_ = std::move(state);
}

std::vector<MetricFamily> Metrics::Collect() const {
  std::vector<MetricFamily> families = families_->registry.Collect();
  {
    MutexLock lock(&mutex_);
    if (state_) AppendState(state_(), &families);
  }
  for (MetricFamily& family : ProcessFamilies()) families.push_back(std::move(family));
  std::sort(families.begin(), families.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  for (MetricFamily& family : families) {
    for (ClientMetric& metric : family.metric) {
      std::sort(metric.label.begin(), metric.label.end());
    }
    std::sort(family.metric.begin(), family.metric.end(),
              [](const auto& a, const auto& b) { return a.label < b.label; });
  }
  return families;
}

std::string DescribeFamilies(const std::vector<MetricFamily>& families) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MetricFamily& family : families) {
    std::set<std::string> labels;
    for (const ClientMetric& metric : family.metric) {
      for (const ClientMetric::Label& label : metric.label) labels.insert(label.name);
    }
    list.push_back({{"name", family.name},
                    {"type", TypeName(family.type)},
                    {"labels", labels},
                    {"help", family.help}});
  }
  return list.dump(2);
}

}  // namespace ascend::kubeletplugin
