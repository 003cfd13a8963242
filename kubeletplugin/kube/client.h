// What this driver asks of the Kubernetes API, behind an interface so that tests can stand in.
//
// Errors of every call: kNotFound (404), kAlreadyExists / kAborted (409 on create / on update or a
// failed precondition), kOutOfRange (410: list again), kInvalidArgument (400, 422, with the server's
// causes in the message), kUnauthenticated (401 also after the token was re-read),
// kPermissionDenied (403), kUnavailable (no connection, 429, 5xx; worth a retry, see RetryAfter),
// kDeadlineExceeded, kCancelled (the client is shutting down). Messages name verb, path and, from
// the server's Status object, the reason.
#ifndef ASCEND_DRA_KUBELETPLUGIN_KUBE_CLIENT_H_
#define ASCEND_DRA_KUBELETPLUGIN_KUBE_CLIENT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kubeletplugin/kube/resource_claim.h"
#include "kubeletplugin/kube/resource_slice.h"

namespace ascend::kube {

// The server's Retry-After of a kUnavailable error, if it sent one.
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

struct Node {
  std::string name;
  std::string uid;
};

struct ObjectReference {  // what an Event is about
  std::string api_version;
  std::string kind;
  std::string namespace_name;
  std::string name;
  std::string uid;
};

struct Event {
  ObjectReference regarding;
  std::string reason;  // CamelCase
  std::string message;
  bool warning = true;
  std::string reporting_component;
  std::string reporting_instance;
};

struct SliceList {
  std::vector<ResourceSlice> slices;
  std::string resource_version;  // where a watch continues
};

struct SliceEvent {
  enum class Type { kAdded, kModified, kDeleted, kBookmark };
  Type type;
  ResourceSlice slice;  // kBookmark: only resource_version is set
};

// A running watch. Destroying it cancels it at once and waits for a running callback.
class Watch {
 public:
  virtual ~Watch() = default;
};

// Thread-safe. Calls block the caller until the answer or `timeout`.
class Client {
 public:
  virtual ~Client() = default;

  virtual absl::StatusOr<ResourceClaim> GetResourceClaim(const std::string& namespace_name,
                                                         const std::string& name,
                                                         absl::Duration timeout) = 0;
  virtual absl::StatusOr<Node> GetNode(const std::string& name, absl::Duration timeout) = 0;

  // Slices of one driver on one node.
  virtual absl::StatusOr<SliceList> ListResourceSlices(const std::string& driver,
                                                       const std::string& node_name,
                                                       absl::Duration timeout) = 0;
  // `on_event` for each event, then `on_end` exactly once unless the watch is destroyed first
  // (kOutOfRange: list again; OK: the server's time-out, continue from the last version seen).
  // Both run on the client's thread and must return quickly.
  virtual std::unique_ptr<Watch> WatchResourceSlices(
      const std::string& driver, const std::string& node_name, const std::string& resource_version,
      std::function<void(SliceEvent)> on_event, std::function<void(absl::Status)> on_end) = 0;

  // Each returns the object as the server stored it: fields it does not know are missing there.
  virtual absl::StatusOr<ResourceSlice> CreateResourceSlice(const ResourceSlice& slice,
                                                            absl::Duration timeout) = 0;
  // Needs slice.resource_version; kAborted if it is not the newest.
  virtual absl::StatusOr<ResourceSlice> UpdateResourceSlice(const ResourceSlice& slice,
                                                            absl::Duration timeout) = 0;
  // Deletes only the object with this UID; kNotFound is the caller's to judge.
  virtual absl::Status DeleteResourceSlice(const std::string& name, const std::string& uid,
                                           absl::Duration timeout) = 0;

  virtual absl::Status CreateEvent(const Event& event, absl::Duration timeout) = 0;
};

}  // namespace ascend::kube

#endif  // ASCEND_DRA_KUBELETPLUGIN_KUBE_CLIENT_H_
