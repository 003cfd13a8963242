// A kube::Client whose answers a test scripts: the calls that claims need. Calls for ResourceSlices
// are kUnimplemented here; those are tested against a server.
#ifndef ASCEND_DRA_KUBELETPLUGIN_TESTING_FAKE_KUBE_CLIENT_H_
#define ASCEND_DRA_KUBELETPLUGIN_TESTING_FAKE_KUBE_CLIENT_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/core/mutex.h"
#include "kubeletplugin/kube/client.h"

namespace ascend::kube {

// Thread-safe.
class FakeClient : public Client {
 public:
  // Adds the claim or replaces the one of the same namespace and name.
  void SetClaim(const ResourceClaim& claim);
  // Without one, every node exists and has nothing.
  void SetNode(const Node& node);
  void RemoveClaim(const std::string& namespace_name, const std::string& name);

  // The next `times` calls fail with `status`, after those that are scripted already.
  void FailGets(absl::Status status, int times = 1);
  void FailEvents(absl::Status status, int times = 1);
  void FailStatuses(absl::Status status, int times = 1);

  // Holds every GET of a claim, already answered but not yet returned, until ReleaseGets().
  void BlockGets();
  void ReleaseGets();
  // Waits until `count` GETs are held; false after a generous time.
  bool WaitForBlockedGets(int count);

  int gets() const;
  int event_attempts() const;
  std::vector<Event> events() const;
  int status_attempts() const;
  // What was applied last to the claim with this UID; empty = nothing yet.
  std::vector<DeviceStatus> device_status(const std::string& uid) const;
  // Waits until `condition` holds, looking after every call; false after a generous time.
  bool WaitUntil(const std::function<bool()>& condition);

  absl::StatusOr<ResourceClaim> GetResourceClaim(const std::string& namespace_name,
                                                 const std::string& name,
                                                 absl::Duration timeout) override;
  absl::StatusOr<Node> GetNode(const std::string& name, absl::Duration timeout) override;
  absl::StatusOr<SliceList> ListResourceSlices(const std::string& driver,
                                               const std::string& node_name,
                                               absl::Duration timeout) override;
  std::unique_ptr<Watch> WatchResourceSlices(const std::string& driver,
                                             const std::string& node_name,
                                             const std::string& resource_version,
                                             std::function<void(SliceEvent)> on_event,
                                             std::function<void(absl::Status)> on_end) override;
  absl::StatusOr<ResourceSlice> CreateResourceSlice(const ResourceSlice& slice,
                                                    absl::Duration timeout) override;
  absl::StatusOr<ResourceSlice> UpdateResourceSlice(const ResourceSlice& slice,
                                                    absl::Duration timeout) override;
  absl::Status DeleteResourceSlice(const std::string& name, const std::string& uid,
                                   absl::Duration timeout) override;
  absl::Status ApplyDeviceStatus(const std::string& namespace_name, const std::string& name,
                                 const std::string& uid, const std::string& manager,
                                 const std::vector<DeviceStatus>& devices,
                                 absl::Duration timeout) override;
  absl::Status CreateEvent(const Event& event, absl::Duration timeout) override;

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::pair<std::string, std::string>, ResourceClaim> claims_ ABSL_GUARDED_BY(mutex_);
  std::deque<absl::Status> get_failures_ ABSL_GUARDED_BY(mutex_);
  std::deque<absl::Status> event_failures_ ABSL_GUARDED_BY(mutex_);
  std::vector<Event> events_ ABSL_GUARDED_BY(mutex_);
  std::deque<absl::Status> status_failures_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<DeviceStatus>> statuses_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Node> nodes_ ABSL_GUARDED_BY(mutex_);
  int status_attempts_ ABSL_GUARDED_BY(mutex_) = 0;
  bool block_ ABSL_GUARDED_BY(mutex_) = false;
  int blocked_ ABSL_GUARDED_BY(mutex_) = 0;
  int gets_ ABSL_GUARDED_BY(mutex_) = 0;
  int event_attempts_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace ascend::kube

#endif  // ASCEND_DRA_KUBELETPLUGIN_TESTING_FAKE_KUBE_CLIENT_H_
