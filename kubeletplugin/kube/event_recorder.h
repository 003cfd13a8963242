// Sends the driver's Events. Who has an API thread of its own calls Send() and tries again as it
// likes; everybody else calls Post(), which never waits.
#ifndef ASCEND_DRA_KUBELETPLUGIN_KUBE_EVENT_RECORDER_H_
#define ASCEND_DRA_KUBELETPLUGIN_KUBE_EVENT_RECORDER_H_

#include <deque>
#include <map>
#include <string>
#include <thread>
#include <tuple>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "kubeletplugin/kube/client.h"

namespace ascend::kube {

// What Events are about.
ObjectReference NodeObject(const std::string& name, const std::string& uid = "");
ObjectReference PodObject(const std::string& namespace_name, const std::string& name,
                          const std::string& uid);
ObjectReference ClaimObject(const std::string& namespace_name, const std::string& name,
                            const std::string& uid);

// Thread-safe.
class EventRecorder {
 public:
  struct Options {
    std::string controller;  // the driver's name
    std::string node_name;   // ours
    absl::Duration request_timeout = absl::Seconds(10);
    absl::Duration retry = absl::Seconds(5);
    // What could not be written for so long is news no more; nor is the same word of the same
    // object within this time.
    absl::Duration max_age = absl::Minutes(10);
  };
  // What becomes of an Event about a ResourceClaim that is gone, or is another one by that name.
  enum class IfGone { kDrop, kTellNode };

  // The client must outlive it.
  EventRecorder(Options options, Client& client);
  // Drops what was not sent; waits for a request under way: shut the client down before.
  ~EventRecorder();

  // The node that this driver is on.
  ObjectReference node() const { return NodeObject(options_.node_name); }

  // Sends it now. Reporting controller and instance are filled in, and the UID of our Node, which
  // `kubectl describe node` goes by. Too long texts are cut to what the API takes.
  absl::Status Send(Event event);

  // Sends it from a thread of the recorder, in order, and tries again while the API server is away.
  // The same (object, reason, message) as one of the last max_age is dropped, and so is what comes
  // while hundreds wait; the log says so.
  void Post(Event event, IfGone if_gone = IfGone::kDrop);

 private:
  struct Posted {
    Event event;
    IfGone if_gone;
    absl::Duration since;  // monotonic
    bool logged = false;   // that it could not be sent
  };
  using Key = std::tuple<std::string, std::string, std::string>;  // object's UID, reason, message

  void Run();
  absl::Status Deliver(const Posted& posted);
  absl::StatusOr<std::string> NodeUid();

  const Options options_;
  Client& client_;

  Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Posted> queue_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, absl::Duration> recent_ ABSL_GUARDED_BY(mutex_);
  std::string node_uid_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace ascend::kube

#endif  // ASCEND_DRA_KUBELETPLUGIN_KUBE_EVENT_RECORDER_H_
