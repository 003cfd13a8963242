// A Kubernetes API server for tests and the demo: real HTTP, real Status objects, the real limits
// of a ResourceSlice, but only what a DRA driver and its tests use:
//
//   resource.k8s.io/v1      resourceslices, deviceclasses, namespaced resourceclaims[/status]
//   events.k8s.io/v1        namespaced events
//   v1                      nodes, namespaced pods (stored as they come)
//   discovery               /version, /livez, /readyz, /apis/resource.k8s.io[/v1]
//
// with get, list (field selectors metadata.name, spec.driver, spec.nodeName), watch
// (resourceVersion, bookmarks, timeoutSeconds, "too old" after Compact), create, update and merge
// patch with optimistic concurrency, delete with preconditions, deletecollection.
//
//   ApiServer server({.token = "secret"});
//   server.AddRule({.verb = "create", .path_prefix = ".../resourceslices", .status = 503, .count =
//   2});
//
// UIDs, versions and generated names are counted, not random: two runs give the same ones. All
// methods are thread-safe. The same controls over HTTP, for programs in other languages:
// POST /sim/rules (a rule as JSON, answers its id), DELETE /sim/rules, GET /sim/requests,
// POST /sim/compact, POST /sim/close-watches.
#ifndef ASCEND_DRA_TEST_SIM_API_SERVER_H_
#define ASCEND_DRA_TEST_SIM_API_SERVER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nlohmann/json_fwd.hpp"

namespace ascend::sim {

inline constexpr char kSlicesPath[] = "/apis/resource.k8s.io/v1/resourceslices";

struct ApiServerOptions {
  std::string token;                  // required bearer token; empty = everyone may
  bool serve_resource_v1 = true;      // false: a server older than 1.34
  bool device_taints = true;          // false: taints are dropped (1.34, 1.35)
  bool partitionable_devices = true;  // false: counters are dropped (1.34, 1.35)
  bool gone_as_status = false;        // a too old watch answers 410 instead of an ERROR event
  absl::Duration bookmark_interval = absl::Minutes(1);
};

// What to do with requests instead of, or besides, serving them. The first rule that matches
// decides.
struct Rule {
  std::string verb;         // get list watch create update patch delete deletecollection; "" = any
  std::string path_prefix;  // "" = any
  int count = -1;           // requests it applies to, then it is gone; -1 = until removed
  absl::Duration delay;     // before anything else
  int status = 0;           // answer so without serving; 0 = serve
  std::string reason;       // of the Status object; "" = the usual one of `status`
  std::string message;
  std::optional<int> retry_after;  // seconds
  bool cut = false;                // serve, but close the connection in the middle of the answer
  bool hang = false;               // neither serve nor answer until the rule is removed
};

struct RecordedRequest {
  std::string verb;
  std::string path;
  std::string query;
  std::string body;
  std::string user_agent;
  std::string authorization;
  int status = 0;  // of the answer; 0 = none yet, or none at all
};

class ApiServer {
 public:
  // Serves when the constructor returns; a machine without loopback ends the process.
  explicit ApiServer(ApiServerOptions options = {});
  // Cuts all connections.
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  std::string url() const;  // "http://127.0.0.1:<port>"
  // Writes a kubeconfig that leads here, with the token.
  absl::Status WriteKubeconfig(const std::string& path) const;

  // --- Objects, past HTTP, rules and the record of requests; same checks otherwise. ---
  // Kind and apiVersion of the object choose the resource; the stored object is returned. The
  // status of a claim is written too.
  absl::StatusOr<nlohmann::json> Create(const nlohmann::json& object);
  absl::StatusOr<nlohmann::json> Update(const nlohmann::json& object);
  absl::StatusOr<nlohmann::json> Get(const std::string& resource, const std::string& namespace_name,
                                     const std::string& name) const;
  std::vector<nlohmann::json> List(const std::string& resource) const;  // in order of names
  absl::Status Delete(const std::string& resource, const std::string& namespace_name,
                      const std::string& name);

  std::string AddNode(const std::string& name);  // returns the UID
  std::vector<nlohmann::json> Slices() const;
  // As kubelet wipes them: all of the node, or only those of one driver. Returns how many.
  int DeleteSlices(const std::string& node_name, const std::string& driver = "");
  // Waits until `condition` holds for the slices (in order of names).
  absl::Status WaitForSlices(
      const std::function<bool(const std::vector<nlohmann::json>&)>& condition,
      absl::Duration timeout = absl::Seconds(10)) const;

  // --- Trouble ---
  int AddRule(Rule rule);  // returns its id
  void RemoveRule(int id);
  void ClearRules();
  void Compact();       // versions before now are too old for a watch
  void CloseWatches();  // cuts every running watch
  void SetFeatures(bool device_taints, bool partitionable_devices);
  void SetToken(const std::string& token);

  // --- What was asked, over HTTP ---
  std::vector<RecordedRequest> Requests(const std::string& verb = "",
                                        const std::string& path_prefix = "") const;
  int CountRequests(const std::string& verb, const std::string& path_prefix = "") const;
  // Creates, updates, patches and deletes of slices that changed something.
  int slice_writes() const;
  int active_watches() const;
  void ClearRequests();
  // Waits until at least `count` matching requests were answered since ClearRequests.
  absl::Status WaitForRequests(const std::string& verb, const std::string& path_prefix, int count,
                               absl::Duration timeout = absl::Seconds(10)) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ascend::sim

#endif  // ASCEND_DRA_TEST_SIM_API_SERVER_H_
