// resource.k8s.io/v1 ResourceClaim: the parts a node driver reads.
#ifndef ASCEND_DRA_KUBELETPLUGIN_KUBE_RESOURCE_CLAIM_H_
#define ASCEND_DRA_KUBELETPLUGIN_KUBE_RESOURCE_CLAIM_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ascend::kube {

// One entry of status.allocation.devices.results.
struct DeviceResult {
  std::string request;  // "name" or "name/subrequest"
  std::string driver;
  std::string pool;
  std::string device;
  bool admin_access = false;
  std::string share_id;                                  // empty = none
  std::map<std::string, std::string> consumed_capacity;  // of a share: name -> quantity
};

// One opaque entry of status.allocation.devices.config, in the server's order (class entries come
// first). Entries of other kinds are left out.
struct OpaqueConfig {
  enum class Source { kClass, kClaim };
  Source source = Source::kClaim;
  std::vector<std::string> requests;  // empty = all; base name or "name/subrequest"
  std::string driver;
  std::string parameters_json;  // the object, as JSON text
};

struct Allocation {
  std::vector<DeviceResult> results;
  std::vector<OpaqueConfig> config;
};

struct ClaimConsumer {  // an entry of status.reservedFor
  std::string api_group;
  std::string resource;  // "pods"
  std::string name;
  std::string uid;
};

struct ResourceClaim {
  std::string namespace_name;
  std::string name;
  std::string uid;
  bool deletion_requested = false;
  // Annotation resource.kubernetes.io/pod-claim-name: what the pod calls a claim that was made for
  // it from a template. Empty for other claims, and before Kubernetes 1.36.
  std::string pod_claim_name;
  std::optional<Allocation> allocation;
  std::vector<ClaimConsumer> reserved_for;
};

// Tolerates unknown fields and absent parts; an object without name or uid, or with a member of the
// wrong type, is kInvalidArgument naming the member.
absl::StatusOr<ResourceClaim> ParseResourceClaim(absl::string_view json);

}  // namespace ascend::kube

#endif  // ASCEND_DRA_KUBELETPLUGIN_KUBE_RESOURCE_CLAIM_H_
