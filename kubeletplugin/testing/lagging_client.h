// A client whose watch lags behind.
#ifndef ASCEND_DRA_KUBELETPLUGIN_TESTING_LAGGING_CLIENT_H_
#define ASCEND_DRA_KUBELETPLUGIN_TESTING_LAGGING_CLIENT_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "base/runtime/clock.h"
#include "kubeletplugin/kube/client.h"

namespace ascend::kubeletplugin {

// Hands everything on to `client` but the events of watches, which it holds back while it is told
// to. Thread-safe.
class LaggingClient : public kube::Client {
 public:
  explicit LaggingClient(std::unique_ptr<kube::Client> client) : client_(std::move(client)) {}

  void Hold() {
    MutexLock lock(&mutex_);
    hold_ = true;
  }
  // Waits until `events` are held back, then delivers them. False if they do not come.
  bool Release(size_t events) {
    MutexLock lock(&mutex_);
    const absl::Duration end = Clock::Real().Monotonic() + absl::Seconds(20);
    while (held_.size() < events) {
      const absl::Duration left = end - Clock::Real().Monotonic();
      if (left <= absl::ZeroDuration()) return false;
      held_more_.WaitFor(&mutex_, left);
    }
    hold_ = false;
    for (auto& deliver : held_) deliver();
    held_.clear();
    return true;
  }

  void Shutdown() override { client_->Shutdown(); }
  absl::StatusOr<kube::ResourceClaim> GetResourceClaim(const std::string& space,
                                                       const std::string& name,
                                                       absl::Duration timeout) override {
    return client_->GetResourceClaim(space, name, timeout);
  }
  absl::StatusOr<kube::Node> GetNode(const std::string& name, absl::Duration timeout) override {
    return client_->GetNode(name, timeout);
  }
  absl::StatusOr<kube::SliceList> ListResourceSlices(const std::string& driver,
                                                     const std::string& node,
                                                     absl::Duration timeout) override {
    return client_->ListResourceSlices(driver, node, timeout);
  }
  std::unique_ptr<kube::Watch> WatchResourceSlices(
      const std::string& driver, const std::string& node, const std::string& version,
      std::function<void(kube::SliceEvent)> on_event,
      std::function<void(absl::Status)> on_end) override {
    return client_->WatchResourceSlices(
        driver, node, version,
        [this, on_event](kube::SliceEvent event) {
          MutexLock lock(&mutex_);
          if (hold_) {
            held_.push_back([on_event, event = std::move(event)] { on_event(event); });
            held_more_.SignalAll();
          } else {
            on_event(std::move(event));
          }
        },
        std::move(on_end));
  }
  absl::Status ApplyDeviceStatus(const std::string&, const std::string&, const std::string&,
                                 const std::string&, const std::vector<kube::DeviceStatus>&,
                                 absl::Duration) override {
    return absl::UnimplementedError("not needed");
  }
  absl::StatusOr<kube::ResourceSlice> CreateResourceSlice(const kube::ResourceSlice& slice,
                                                          absl::Duration timeout) override {
    return client_->CreateResourceSlice(slice, timeout);
  }
  absl::StatusOr<kube::ResourceSlice> UpdateResourceSlice(const kube::ResourceSlice& slice,
                                                          absl::Duration timeout) override {
    return client_->UpdateResourceSlice(slice, timeout);
  }
  absl::Status DeleteResourceSlice(const std::string& name, const std::string& uid,
                                   absl::Duration timeout) override {
    return client_->DeleteResourceSlice(name, uid, timeout);
  }
  absl::Status CreateEvent(const kube::Event& event, absl::Duration timeout) override {
    return client_->CreateEvent(event, timeout);
  }

 private:
  Mutex mutex_;
  CondVar held_more_;
  bool hold_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> held_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<kube::Client> client_;  // first to go: ends the watch's callbacks
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_TESTING_LAGGING_CLIENT_H_
