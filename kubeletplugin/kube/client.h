// What this driver asks of the Kubernetes API, behind an interface so that tests can stand in.
//
// Errors of every call: kNotFound (404), kAlreadyExists / kAborted (409 on create / on update or a
// failed precondition), kOutOfRange (410: list again), kInvalidArgument (400, 413, 422, with the
// server's causes in the message, see HasCause; also a name that cannot be one),
// kUnauthenticated (401 also after the token was re-read), kPermissionDenied (403), kUnimplemented
// (404 for the whole API: a server before Kubernetes 1.34), kUnavailable (no connection, 429, 5xx;
// worth a retry, see RetryAfter), kDeadlineExceeded, kInternal (an answer that is too large or not
// what the API promises), kCancelled (the client is shutting down). Messages name verb, path and,
// from the server's Status object, the reason.
//
// The client repeats a request by itself only after a 401 and when a kept connection turns out to
// be dead before any answer; a create may therefore report kAlreadyExists for its own object.
#ifndef ASCEND_DRA_KUBELETPLUGIN_KUBE_CLIENT_H_
#define ASCEND_DRA_KUBELETPLUGIN_KUBE_CLIENT_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kubeletplugin/kube/device_status.h"
#include "kubeletplugin/kube/resource_claim.h"
#include "kubeletplugin/kube/resource_slice.h"

namespace ascend::kube {

// The server's Retry-After of a kUnavailable error, if it sent one.
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

// Whether the server gave `reason` ("FieldValueForbidden") among its causes of the error.
bool HasCause(const absl::Status& status, absl::string_view reason);

struct Node {
  std::string name;
  std::string uid;
  std::string container_runtime_version;           // "containerd://2.1.4"; empty = unknown
  std::map<std::string, std::string> allocatable;  // resource name -> quantity
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
  std::string action = {};  // what was done or tried, in one CamelCase word; empty = the reason
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

// Thread-safe. Calls block the caller until the answer or `timeout`. Destroying the client ends
// running calls and watches with kCancelled.
class Client {
 public:
  virtual ~Client() = default;

  // Ends running calls and watches with kCancelled, and every later one: for a stop that must not
  // wait for a server which does not answer. Not from a callback.
  virtual void Shutdown() {}

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
  // Both run on the client's thread, must return quickly and must not call the client; they may
  // destroy the watch.
  virtual std::unique_ptr<Watch> WatchResourceSlices(const std::string& driver,
                                                     const std::string& node_name,
                                                     const std::string& resource_version,
                                                     std::function<void(SliceEvent)> on_event,
                                                     std::function<void(absl::Status)> on_end) = 0;

  // Each returns the object as the server stored it: fields it does not know are missing there.
  virtual absl::StatusOr<ResourceSlice> CreateResourceSlice(const ResourceSlice& slice,
                                                            absl::Duration timeout) = 0;
  // Needs slice.resource_version; kAborted if it is not the newest.
  virtual absl::StatusOr<ResourceSlice> UpdateResourceSlice(const ResourceSlice& slice,
                                                            absl::Duration timeout) = 0;
  // Deletes only the object with this UID; kNotFound is the caller's to judge.
  virtual absl::Status DeleteResourceSlice(const std::string& name, const std::string& uid,
                                           absl::Duration timeout) = 0;

  // Server-side apply of all that `manager` says in the claim's status.devices: what it said before
  // and not now is removed, what others say stays. Only if the claim still has this UID.
  // kInvalidArgument also for missing rights since Kubernetes 1.36 (HasCause
  // "FieldValueForbidden").
  virtual absl::Status ApplyDeviceStatus(const std::string& namespace_name, const std::string& name,
                                         const std::string& uid, const std::string& manager,
                                         const std::vector<DeviceStatus>& devices,
                                         absl::Duration timeout) = 0;

  virtual absl::Status CreateEvent(const Event& event, absl::Duration timeout) = 0;
};

}  // namespace ascend::kube

#endif  // ASCEND_DRA_KUBELETPLUGIN_KUBE_CLIENT_H_
