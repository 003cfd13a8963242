// The plugin's metrics about itself. Names, types and labels are a contract
// (testdata/families.txt): a changed one breaks dashboards and alerts.
//
// Whoever counts calls one method; label sets are made at the start, so that a call is an index and
// an atomic addition, and every series of a bounded set exists from the first scrape on. What can
// be read from the node's state is not counted but asked for at collection.
#ifndef ASCEND_DRA_KUBELETPLUGIN_METRICS_METRICS_H_
#define ASCEND_DRA_KUBELETPLUGIN_METRICS_METRICS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "kubeletplugin/claims/orphan.h"
#include "kubeletplugin/kube/request_report.h"
#include "kubeletplugin/slices/publish_report.h"
#include "prometheus/metric_family.h"

namespace ascend::kubeletplugin {

enum class DraMethod { kNodePrepareResources, kNodeUnprepareResources };

// The state of the node, as far as it can be read now: what is unknown has no series.
struct NodeState {
  std::optional<int> prepared_claims;
  std::optional<int> prepared_npus;
  std::optional<int> prepared_vnpus;
  std::optional<int> unreadable_records;
  std::optional<int> cdi_spec_files;  // of ours
  bool registered = false;
};

// Thread-safe. Must outlive whoever reports to it.
class Metrics {
 public:
  struct BuildInfo {
    std::string version;
    std::string revision;  // empty = unknown
  };
  explicit Metrics(const BuildInfo& build);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // `cancelled`: the kubelet had given up when the answer was there.
  void GrpcCall(DraMethod method, bool cancelled, absl::Duration duration);
  void PrepareBegins();
  void Prepared(const absl::Status& status, absl::Duration duration);  // ends PrepareBegins()
  void UnprepareBegins();
  void Unprepared(const absl::Status& status, absl::Duration duration);
  void RecordWritten(const absl::Status& status, absl::Duration duration);
  void OrphanRemoved(Orphan kind);
  void SlicesPublished(const PublishReport& report);
  void Registration(bool accepted);
  void ApiRequest(const kube::RequestReport& report);
  void PodResourcesAsked(const absl::Status& status, absl::Time now);

  // Asked at every collection until another is set; null = none. Does not return while the former
  // one runs.
  void SetNodeState(std::function<NodeState()> state);

  // All families by name, samples by labels.
  std::vector<prometheus::MetricFamily> Collect() const;

 private:
  struct Families;
  const std::unique_ptr<Families> families_;
  mutable Mutex mutex_;
  std::function<NodeState()> state_ ABSL_GUARDED_BY(mutex_);
};

// Name, type, label names and help of every family as JSON: what --list-metrics prints.
std::string DescribeFamilies(const std::vector<prometheus::MetricFamily>& families);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_METRICS_METRICS_H_
