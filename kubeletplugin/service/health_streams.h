// The kubelet's watch on the devices' health, in both versions it may speak:
// v1.DRAResourceHealth (kubelet 1.37 and later) and v1alpha1.DRAResourceHealth (1.34 and later).
//
// A stream gets the whole state at once, after each change and with a heartbeat: the kubelet drops
// what it has not heard for a while, all of it when a stream ends, and also when that of another
// instance of the driver does. States that nobody confirms any more are sent as unknown (see
// HealthFeed): a kubelet that merely hears nothing would show the old ones until it looks at the
// pod for another reason.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SERVICE_HEALTH_STREAMS_H_
#define ASCEND_DRA_KUBELETPLUGIN_SERVICE_HEALTH_STREAMS_H_

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "kubeletplugin/service/health_feed.h"

namespace grpc {
class Service;
}

namespace ascend::kubeletplugin {

// As the registration names them (services, not versions).
inline constexpr char kHealthServiceV1[] = "v1.DRAResourceHealth";
inline constexpr char kHealthServiceV1alpha1[] = "v1alpha1.DRAResourceHealth";

// Thread-safe. Its thread sleeps while no stream is open.
class HealthStreams {
 public:
  struct Options {
    absl::Duration heartbeat = absl::Seconds(4);  // the kubelet wants 5 s or less
    // After which the kubelet takes what it was told for unknown. More than a heartbeat that is
    // late, less than anybody would want to see a state that nobody knows of.
    absl::Duration timeout = absl::Seconds(30);
    // Runs before each heartbeat, on the streams' thread: the owner says what it knows to be true
    // still. May call the feed; null = nothing to do.
    std::function<void()> confirm = {};
  };
  // `feed` must outlive it. Until its first Publish() streams are open and silent.
  HealthStreams(HealthFeed& feed, Options options);
  // Services and the server they are in must be gone.
  ~HealthStreams();
  HealthStreams(const HealthStreams&) = delete;
  HealthStreams& operator=(const HealthStreams&) = delete;

  std::unique_ptr<grpc::Service> MakeServiceV1();
  std::unique_ptr<grpc::Service> MakeServiceV1alpha1();

  // Ends all streams with UNAVAILABLE, and at once those that still come; `confirm` runs no more.
  // Before the server is shut
  // down, or it would wait for them.
  void End();

  int open() const;  // how many streams there are

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SERVICE_HEALTH_STREAMS_H_
