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
constexpr absl::Duration kLongestVnpuCall = absl::Minutes(10);
constexpr absl::Duration kLongestReset = absl::Minutes(20);

// What is left of a call's time for the work itself: the answer has to travel, too.
absl::Duration TimeToAnswer(const grpc::CallbackServerContext& context, absl::Duration longest) {
  const absl::Duration left = absl::FromChrono(context.deadline()) - Clock::Real().Now();
  return std::clamp(left - std::min(left / 5, absl::Milliseconds(100)), absl::ZeroDuration(),
                    longest);
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  // The codes are the same by definition.
  return {static_cast<grpc::StatusCode>(status.raw_code()), std::string(status.message())};
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
                           std::shared_ptr<ProcessQueries> queries,
                           std::shared_ptr<VnpuCalls> calls, std::shared_ptr<ResetCalls> resets)
    : version_(std::move(version)),
      feed_(feed),
      queries_(std::move(queries)),
      calls_(std::move(calls)),
      resets_(std::move(resets)),
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
  calls_->Close("the agent is shutting down");
  resets_->Close("the agent is shutting down");
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
  alarm->Set(MonotonicIn(TimeToAnswer(*context, kLongestListing)),
             [query, reason = std::move(reason)](bool went_off) {
               if (went_off) query->Expire(reason);
             });
  queries_->Ask(std::move(query));
  return reactor;
}

// A call about vNPUs, or a reset. Owned by gRPC. A client that goes away takes a call with it that
// has not begun: nobody would know of what it does.
template <typename Calls, typename Call>
class AgentService::CallReactor : public grpc::ServerUnaryReactor {
 public:
  explicit CallReactor(std::shared_ptr<Calls> calls) : calls_(std::move(calls)) {}
  // Before the reactor is given to gRPC.
  void SetCall(std::shared_ptr<Call> call) {
    MutexLock lock(&mutex_);
    call_ = std::move(call);
  }

  void OnCancel() override {
    // To the end: gRPC lets OnDone() run only after this, but only the lock shows it to everybody.
    MutexLock lock(&mutex_);
    calls_->GiveUp(*call_, absl::StatusCode::kCancelled);
  }
  void OnDone() override {
    {
      MutexLock lock(&mutex_);  // what SetCall() did is done
    }
    delete this;
  }

 private:
  const std::shared_ptr<Calls> calls_;
  Mutex mutex_;
  std::shared_ptr<Call> call_ ABSL_GUARDED_BY(mutex_);
};

grpc::ServerUnaryReactor* AgentService::StartVnpuCall(
    const grpc::CallbackServerContext& context,
    absl::FunctionRef<std::shared_ptr<VnpuCall>(VnpuCall::Done)> make,
    std::function<void(const std::vector<vnpu::Vnpu>&)> fill) {
  auto* reactor = new CallReactor<VnpuCalls, VnpuCall>(calls_);
  // As in ListProcesses: who ends the call drops the alarm.
  auto alarm = std::make_shared<grpc::Alarm>();
  const std::shared_ptr<VnpuCall> call =
      make([reactor, alarm, fill = std::move(fill)](const VnpuCall::Answer& answer) {
        if (answer.ok()) fill(*answer);
        reactor->Finish(ToGrpcStatus(answer.status()));
      });
  reactor->SetCall(call);
  alarm->Set(MonotonicIn(TimeToAnswer(context, kLongestVnpuCall)),
             [calls = calls_, call](bool went_off) {
               if (went_off) calls->GiveUp(*call, absl::StatusCode::kDeadlineExceeded);
             });
  calls_->Start(call);
  return reactor;
}

grpc::ServerUnaryReactor* AgentService::ListVnpus(grpc::CallbackServerContext* context,
                                                  const v1alpha1::ListVnpusRequest* request,
                                                  v1alpha1::ListVnpusResponse* response) {
  return StartVnpuCall(
      *context,
      [&](VnpuCall::Done done) { return VnpuCall::List(request->physical_id(), std::move(done)); },
      [response](const std::vector<vnpu::Vnpu>& vnpus) {
        for (const vnpu::Vnpu& vnpu : vnpus) *response->add_vnpus() = ToProto(vnpu);
      });
}

grpc::ServerUnaryReactor* AgentService::CreateVnpu(grpc::CallbackServerContext* context,
                                                   const v1alpha1::CreateVnpuRequest* request,
                                                   v1alpha1::Vnpu* response) {
  VnpuRequest wanted = {.physical_id = request->physical_id(),
                        .uuid = request->uuid(),
                        .template_name = request->template_name()};
  if (request->has_id()) wanted.id = request->id();
  if (request->has_vgroup()) wanted.vgroup = request->vgroup();
  return StartVnpuCall(
      *context,
      [&](VnpuCall::Done done) { return VnpuCall::Create(std::move(wanted), std::move(done)); },
      [response](const std::vector<vnpu::Vnpu>& made) { *response = ToProto(made.front()); });
}

grpc::ServerUnaryReactor* AgentService::DestroyVnpu(grpc::CallbackServerContext* context,
                                                    const v1alpha1::DestroyVnpuRequest* request,
                                                    v1alpha1::DestroyVnpuResponse* /*response*/) {
  VnpuReference reference = {.physical_id = request->physical_id(),
                             .uuid = request->uuid(),
                             .id = request->id(),
                             .template_name = request->template_name()};
  return StartVnpuCall(
      *context,
      [&](VnpuCall::Done done) { return VnpuCall::Destroy(std::move(reference), std::move(done)); },
      [](const std::vector<vnpu::Vnpu>& /*none*/) {});
}

grpc::ServerUnaryReactor* AgentService::PrepareVnpuModes(
    grpc::CallbackServerContext* context, const v1alpha1::PrepareVnpuModesRequest* /*request*/,
    v1alpha1::PrepareVnpuModesResponse* /*response*/) {
  return StartVnpuCall(
      *context, [](VnpuCall::Done done) { return VnpuCall::PrepareModes(std::move(done)); },
      [](const std::vector<vnpu::Vnpu>& /*none*/) {});
}

grpc::ServerUnaryReactor* AgentService::ResetChips(grpc::CallbackServerContext* context,
                                                   const v1alpha1::ResetChipsRequest* request,
                                                   v1alpha1::ResetChipsResponse* response) {
  ResetRequest wanted = {.physical_id = request->physical_id(),
                         .group = {},
                         .boot_wait = absl::Milliseconds(request->boot_wait_ms())};
  for (const v1alpha1::ChipIdentity& chip : request->group()) {
    wanted.group.push_back({.physical_id = chip.physical_id(), .uuid = chip.uuid()});
  }
  auto* reactor = new CallReactor<ResetCalls, ResetCall>(resets_);
  // As in ListProcesses: who ends the call drops the alarm.
  auto alarm = std::make_shared<grpc::Alarm>();
  const auto call = std::make_shared<ResetCall>(
      std::move(wanted), [reactor, alarm, response](const ResetCall::Answer& answer) {
        if (answer.ok()) {
          for (const ChipReset& chip : *answer) {
            v1alpha1::ChipReset* const message = response->add_chips();
            message->set_physical_id(chip.physical_id);
            message->set_started(chip.started);
            message->set_problem(chip.problem);
          }
        }
        reactor->Finish(ToGrpcStatus(answer.status()));
      });
  reactor->SetCall(call);
  alarm->Set(MonotonicIn(TimeToAnswer(*context, kLongestReset)),
             [resets = resets_, call](bool went_off) {
               if (went_off) resets->GiveUp(*call, absl::StatusCode::kDeadlineExceeded);
             });
  resets_->Start(call);
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
