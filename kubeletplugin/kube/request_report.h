// What a finished request to the API server was, for metrics.
#ifndef ASCEND_DRA_KUBELETPLUGIN_KUBE_REQUEST_REPORT_H_
#define ASCEND_DRA_KUBELETPLUGIN_KUBE_REQUEST_REPORT_H_

#include <functional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace ascend::kube {

enum class Verb { kGet, kList, kWatch, kCreate, kUpdate, kPatch, kDelete };
inline constexpr int kVerbs = 7;
enum class Resource {
  kResourceClaims,
  kResourceClaimsStatus,
  kResourceSlices,
  kNodes,
  kEvents,
  kOther
};
inline constexpr int kResources = 6;

// As Kubernetes' own metrics write them: "get", "resourceclaims/status".
const char* Name(Verb verb);
const char* Name(Resource resource);

struct RequestKind {
  Verb verb = Verb::kGet;
  Resource resource = Resource::kOther;
  friend bool operator==(const RequestKind&, const RequestKind&) = default;
};
// From the HTTP method and the path with its query.
RequestKind KindOfRequest(absl::string_view method, absl::string_view target);

struct RequestReport {
  RequestKind kind;
  // The watch has begun; a later report tells how it ended, unless the client ended it.
  bool watch_begins = false;
  int http_status = 0;  // 0: no answer
  absl::Duration duration;
};

// Called on any thread, after each request; must return quickly.
using RequestObserver = std::function<void(const RequestReport&)>;

}  // namespace ascend::kube

#endif  // ASCEND_DRA_KUBELETPLUGIN_KUBE_REQUEST_REPORT_H_
