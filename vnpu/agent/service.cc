#include "vnpu/agent/service.h"

#include <memory>
#include <utility>

#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "vnpu/agent/convert.h"

namespace ascend::agent {

// One client's stream. Owned by gRPC, which says with OnDone that it is no longer needed.
//
// At most one operation is under way: a write, or the final Finish. Operations are started under
// the lock: gRPC runs reactions on threads of its own, never within the call that causes them.
class AgentService::Watch : public grpc::ServerWriteReactor<v1alpha1::Inventory> {
 public:
  explicit Watch(AgentService* service) : service_(service) {}

  // The feed has something new.
  void Wake() {
    MutexLock lock(&mutex_);
    if (!writing_ && !finishing_) WriteIfNewer();
  }

  // Ends the stream, after a write in progress. Only the first call counts.
  void End(const grpc::Status& status) {
    MutexLock lock(&mutex_);
    if (finishing_) return;
    finishing_ = true;
    final_status_ = status;
    if (!writing_) Finish(final_status_);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok && !finishing_) {
      finishing_ = true;
      final_status_ = grpc::Status(grpc::StatusCode::CANCELLED, "the client went away");
    }
    if (finishing_) {
      Finish(final_status_);
    } else {
      WriteIfNewer();
    }
  }

  void OnCancel() override { End(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled")); }

  void OnDone() override {
    {
      MutexLock lock(&mutex_);  // whoever called Finish may still hold it
    }
    {
      MutexLock lock(&service_->mutex_);
      service_->watches_.erase(this);
    }
    delete this;
  }

 private:
  void WriteIfNewer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::shared_ptr<const vnpu::Inventory> next = service_->feed_->Current();
    if (next->revision == sent_revision_) return;
    writing_ = true;
    sent_revision_ = next->revision;
    message_ = ToProto(*next);
    StartWrite(&message_);
  }

  AgentService* const service_;
  Mutex mutex_;  // taken after the service's
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t sent_revision_ ABSL_GUARDED_BY(mutex_) = 0;
  v1alpha1::Inventory message_ ABSL_GUARDED_BY(mutex_);  // gRPC's while writing_
  grpc::Status final_status_ ABSL_GUARDED_BY(mutex_);
};

AgentService::AgentService(std::string version, InventoryFeed* feed)
    : version_(std::move(version)),
      feed_(feed),
      subscription_(feed_->Subscribe([this] { WakeWatches(); })) {}

AgentService::~AgentService() {
  feed_->Unsubscribe(subscription_);
  MutexLock lock(&mutex_);  // the last watch may be about to leave OnDone
}

void AgentService::WakeWatches() {
  MutexLock lock(&mutex_);
  for (Watch* watch : watches_) watch->Wake();
}

void AgentService::EndWatches() {
  MutexLock lock(&mutex_);
  ending_ = true;
  for (Watch* watch : watches_) {
    watch->End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the agent is shutting down"));
  }
}

grpc::ServerWriteReactor<v1alpha1::Inventory>* AgentService::WatchInventory(
    grpc::CallbackServerContext* /*context*/, const v1alpha1::WatchInventoryRequest* /*request*/) {
  auto* watch = new Watch(this);
  MutexLock lock(&mutex_);
  watches_.insert(watch);
  if (ending_) {
    watch->End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the agent is shutting down"));
  } else {
    watch->Wake();
  }
  return watch;
}

grpc::ServerUnaryReactor* AgentService::GetInventory(
    grpc::CallbackServerContext* context, const v1alpha1::GetInventoryRequest* /*request*/,
    v1alpha1::Inventory* response) {
  *response = ToProto(*feed_->Current());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* AgentService::Ping(grpc::CallbackServerContext* context,
                                             const v1alpha1::PingRequest* /*request*/,
                                             v1alpha1::PingResponse* response) {
  response->set_version(version_);
  response->set_instance(feed_->instance());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace ascend::agent
