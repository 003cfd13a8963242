#include "vnpu/agent/service.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/runtime/clock.h"
#include "grpcpp/alarm.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "vnpu/agent/channel.h"
#include "vnpu/agent/convert.h"

namespace ascend::agent {
namespace {

constexpr absl::Duration kLongestListing = absl::Seconds(10);

// What is left of a call's time for the work itself: the answer has to travel, too.
absl::Duration TimeToAnswer(const grpc::CallbackServerContext& context) {
  const absl::Duration left = absl::FromChrono(context.deadline()) - Clock::Real().Now();
  return std::clamp(left - std::min(left / 5, absl::Milliseconds(100)), absl::ZeroDuration(),
                    kLongestListing);
}

}  // namespace

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

AgentService::AgentService(std::string version, InventoryFeed* feed,
                           std::shared_ptr<ProcessQueries> queries)
    : version_(std::move(version)),
      feed_(feed),
      queries_(std::move(queries)),
      subscription_(feed_->Subscribe([this] { WakeWatches(); })) {}

AgentService::~AgentService() {
  feed_->Unsubscribe(subscription_);
  MutexLock lock(&mutex_);  // the last watch may be about to leave OnDone
}

void AgentService::WakeWatches() {
  MutexLock lock(&mutex_);
  for (Watch* watch : watches_) watch->Wake();
}

void AgentService::EndCalls() {
  queries_->Close("the agent is shutting down");
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

grpc::ServerUnaryReactor* AgentService::ListProcesses(grpc::CallbackServerContext* context,
                                                      const v1alpha1::ListProcessesRequest* request,
                                                      v1alpha1::ListProcessesResponse* response) {
  const std::shared_ptr<const vnpu::Inventory> inventory = feed_->Current();
  std::vector<int> ids(request->physical_ids().begin(), request->physical_ids().end());
  if (ids.empty()) {
    for (const vnpu::Chip& chip : inventory->chips) ids.push_back(chip.physical_id);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (ids.empty()) {
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  // Whoever ends the query, the answer or the alarm, finishes the call, and drops the alarm with
  // it.
  auto alarm = std::make_shared<grpc::Alarm>();
  auto query = std::make_shared<ProcessQuery>(
      std::move(ids), [response, reactor, alarm](const std::vector<vnpu::ChipProcesses>& chips) {
        for (const vnpu::ChipProcesses& chip : chips) *response->add_chips() = ToProto(chip);
        reactor->Finish(grpc::Status::OK);
      });
  // Nothing of the service is used when the alarm goes off: the call may have ended a moment
  // before.
  std::string reason = inventory->library_message.empty()
                           ? "libdcmi was busy with other calls all the time; try again"
                           : inventory->library_message;
  alarm->Set(MonotonicIn(TimeToAnswer(*context)),
             [query, reason = std::move(reason)](bool went_off) {
               if (went_off) query->Expire(reason);
             });
  queries_->Ask(std::move(query));
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
