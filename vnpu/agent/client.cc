#include "vnpu/agent/client.h"

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "agent.grpc.pb.h"
#include "base/core/directory_watch.h"
#include "base/core/mutex.h"
#include "base/core/status_macros.h"
#include "base/runtime/clock.h"
#include "base/runtime/logging.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/async_stream.h"
#include "vnpu/agent/channel.h"
#include "vnpu/agent/convert.h"

namespace ascend::agent {

class Client::Impl {
 public:
  Impl(Options options, std::function<void()> on_change)
      : options_(std::move(options)),
        on_change_(std::move(on_change)),
        disconnected_since_(Clock::Real().Monotonic()) {
    // Shortens the wait for a new socket. Without it (no inotify left) the back-off remains.
    const std::string directory = options_.socket_path.substr(0, options_.socket_path.rfind('/'));
    absl::StatusOr<std::unique_ptr<DirectoryWatch>> watch =
        DirectoryWatch::Start(directory.empty() ? "/" : directory, [this] { SocketMayBeNew(); });
    if (watch.ok()) {
      directory_watch_ = *std::move(watch);
    } else {
      LogWarning("cannot watch for the agent's socket, will look every second",
                 {{"path", directory}, {"error", watch.status()}});
    }
    thread_ = std::thread([this] { Run(); });
  }

  ~Impl() {
    directory_watch_.reset();
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      wake_.SignalAll();
      if (context_ != nullptr) context_->TryCancel();
    }
    thread_.join();
  }

  View Current() const {
    MutexLock lock(&mutex_);
    return {.connected = connected_,
            .disconnected_for =
                connected_ ? absl::ZeroDuration() : Clock::Real().Monotonic() - disconnected_since_,
            .inventory = inventory_};
  }

  absl::StatusOr<std::vector<vnpu::ChipProcesses>> ListProcesses(
      const std::vector<int>& physical_ids, absl::Duration timeout) const;

  // One call about chips. `what` says what it does, `capability` what an agent that does not know
  // the call lacks.
  template <typename Method, typename Request, typename Response>
  absl::Status CallAboutChips(Method method, const Request& request, Response* response,
                              absl::Duration timeout, absl::string_view what,
                              absl::string_view capability = "vNPUs",
                              grpc::ClientContext* context = nullptr) const;
  absl::Status CallReset(const v1alpha1::ResetChipsRequest& request,
                         v1alpha1::ResetChipsResponse* response, absl::Duration timeout);
  void CancelResets() {
    MutexLock lock(&mutex_);
    resets_cancelled_ = true;
    for (grpc::ClientContext* context : resets_) context->TryCancel();
  }

 private:
  // The watch's connection, or one of its own while that is down.
  std::shared_ptr<grpc::Channel> ChannelForCall() const;
  void Run();
  // One watch from its start to its end. Returns why it ended.
  grpc::Status Watch();
  void Received(const v1alpha1::Inventory& message);
  void Ended(const grpc::Status& status);
  void WaitBeforeRetry();
  void SocketMayBeNew();
  bool Stopping() const {
    MutexLock lock(&mutex_);
    return stopping_;
  }

  const Options options_;
  const std::function<void()> on_change_;
  std::unique_ptr<DirectoryWatch> directory_watch_;

  mutable Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool socket_may_be_new_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of the watch under way
  absl::Duration backoff_ ABSL_GUARDED_BY(mutex_);                  // zero: begin anew
  bool connected_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration disconnected_since_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const vnpu::Inventory> inventory_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mutex_);  // of the watch under way
  std::set<grpc::ClientContext*> resets_ ABSL_GUARDED_BY(mutex_);   // under way
  bool resets_cancelled_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

void Client::Impl::SocketMayBeNew() {
  MutexLock lock(&mutex_);
  socket_may_be_new_ = true;
  wake_.SignalAll();
}

void Client::Impl::Run() {
  while (!Stopping()) {
    const grpc::Status status = Watch();
    Ended(status);
    WaitBeforeRetry();
  }
}

void Client::Impl::WaitBeforeRetry() {
  MutexLock lock(&mutex_);
  // A socket is there a moment before it is listened on: also one that was just seen to appear gets
  // the shortest wait, and the attempts after it start from there.
  backoff_ = backoff_ == absl::ZeroDuration() || socket_may_be_new_
                 ? options_.connect_backoff_min
                 : std::min(2 * backoff_, options_.connect_backoff_max);
  socket_may_be_new_ = false;
  const absl::Duration end = Clock::Real().Monotonic() + backoff_;
  while (!stopping_) {
    if (socket_may_be_new_) {
      socket_may_be_new_ = false;
      backoff_ = absl::ZeroDuration();
      return;
    }
    const absl::Duration left = end - Clock::Real().Monotonic();
    if (left <= absl::ZeroDuration()) return;
    wake_.WaitFor(&mutex_, left);
  }
}

grpc::Status Client::Impl::Watch() {
  const std::shared_ptr<grpc::Channel> channel =
      NewChannel(options_.socket_path, options_.keepalive_time, options_.keepalive_timeout);
  const std::unique_ptr<v1alpha1::NpuAgent::Stub> stub = v1alpha1::NpuAgent::NewStub(channel);
  grpc::ClientContext context;
  // A queue on this thread alone: its waits take a deadline, and no thread of gRPC is needed.
  grpc::CompletionQueue queue;
  {
    MutexLock lock(&mutex_);
    if (stopping_) return grpc::Status::CANCELLED;
    context_ = &context;
    channel_ = channel;
  }

  // One operation is under way at any time, so that the tags need not tell them apart.
  enum class Step { kStart, kRead, kFinish, kEnd } step = Step::kStart;
  v1alpha1::Inventory message;
  grpc::Status status;
  bool first = true;
  const gpr_timespec connect_deadline = MonotonicIn(options_.connect_timeout);
  const auto reader =
      stub->PrepareAsyncWatchInventory(&context, v1alpha1::WatchInventoryRequest(), &queue);
  reader->StartCall(nullptr);
  bool gave_up = false;
  while (step != Step::kEnd) {
    void* tag = nullptr;
    bool ok = false;
    const gpr_timespec deadline =
        first && !gave_up ? connect_deadline : gpr_inf_future(GPR_CLOCK_MONOTONIC);
    if (queue.AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::TIMEOUT) {
      gave_up = true;
      context.TryCancel();
      continue;
    }
    switch (step) {
      case Step::kRead:
        if (ok) {
          first = false;
          Received(message);
        }
        [[fallthrough]];
      case Step::kStart:
        if (ok) {
          step = Step::kRead;
          message.Clear();
          reader->Read(&message, nullptr);
        } else {
          step = Step::kFinish;
          reader->Finish(&status, nullptr);
        }
        break;
      case Step::kFinish:
      case Step::kEnd:
        step = Step::kEnd;
        break;
    }
  }
  {
    MutexLock lock(&mutex_);
    context_ = nullptr;
    channel_ = nullptr;
  }
  queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) {
  }
  if (gave_up) return {grpc::StatusCode::DEADLINE_EXCEEDED, "the agent does not answer"};
  return status;
}

void Client::Impl::Received(const v1alpha1::Inventory& message) {
  auto inventory = std::make_shared<const vnpu::Inventory>(FromProto(message));
  bool came_up = false;
  {
    MutexLock lock(&mutex_);
    if (stopping_) return;
    came_up = !connected_;
    connected_ = true;
    backoff_ = absl::ZeroDuration();
    inventory_ = inventory;
  }
  if (came_up) {
    LogInfo("agent connected",
            {{"path", options_.socket_path}, {"instance", inventory->agent_instance}});
  }
  on_change_();
}

void Client::Impl::Ended(const grpc::Status& status) {
  {
    MutexLock lock(&mutex_);
    if (stopping_ || !connected_) return;
    connected_ = false;
    disconnected_since_ = Clock::Real().Monotonic();
  }
  LogWarning("agent disconnected, the last inventory stays in use",
             {{"path", options_.socket_path}, {"error", status.error_message()}});
  on_change_();
}

std::shared_ptr<grpc::Channel> Client::Impl::ChannelForCall() const {
  {
    MutexLock lock(&mutex_);
    if (connected_ && channel_ != nullptr) return channel_;
  }
  return NewChannel(options_.socket_path, absl::InfiniteDuration(), absl::InfiniteDuration());
}

absl::StatusOr<std::vector<vnpu::ChipProcesses>> Client::Impl::ListProcesses(
    const std::vector<int>& physical_ids, absl::Duration timeout) const {
  const std::shared_ptr<grpc::Channel> channel = ChannelForCall();
  grpc::ClientContext context;
  context.set_deadline(MonotonicIn(timeout));
  v1alpha1::ListProcessesRequest request;
  request.mutable_physical_ids()->Add(physical_ids.begin(), physical_ids.end());
  v1alpha1::ListProcessesResponse response;
  const grpc::Status status =
      v1alpha1::NpuAgent::NewStub(channel)->ListProcesses(&context, request, &response);
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      break;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return absl::DeadlineExceededError(
          absl::StrCat("agent on ", options_.socket_path, " did not say within ",
                       absl::FormatDuration(timeout), " which processes use the chips"));
    case grpc::StatusCode::UNIMPLEMENTED:
      return absl::UnimplementedError(
          absl::StrCat("agent on ", options_.socket_path,
                       " is of a version that cannot tell processes; upgrade it"));
    default:
      return absl::UnavailableError(absl::StrCat("agent on ", options_.socket_path,
                                                 " cannot be asked which processes use "
                                                 "the chips: ",
                                                 status.error_message()));
  }
  std::vector<vnpu::ChipProcesses> chips;
  for (const v1alpha1::ChipProcesses& chip : response.chips()) chips.push_back(FromProto(chip));
  return chips;
}

template <typename Method, typename Request, typename Response>
absl::Status Client::Impl::CallAboutChips(Method method, const Request& request, Response* response,
                                          absl::Duration timeout, absl::string_view what,
                                          absl::string_view capability,
                                          grpc::ClientContext* given_context) const {
  const std::unique_ptr<v1alpha1::NpuAgent::Stub> stub =
      v1alpha1::NpuAgent::NewStub(ChannelForCall());
  grpc::ClientContext own_context;
  grpc::ClientContext& context = given_context == nullptr ? own_context : *given_context;
  context.set_deadline(MonotonicIn(timeout));
  const grpc::Status status = ((*stub).*method)(&context, request, response);
  if (status.ok()) return absl::OkStatus();
  const auto answer = [&](absl::StatusCode code, absl::string_view reason) {
    return absl::Status(code,
                        absl::StrCat("agent on ", options_.socket_path, ", ", what, ": ", reason));
  };
  switch (status.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      // gRPC's own text says nothing; the agent's says what the library is at.
      return answer(absl::StatusCode::kDeadlineExceeded,
                    absl::StrCat("no result within ", absl::FormatDuration(timeout), ": ",
                                 status.error_message()));
    case grpc::StatusCode::UNIMPLEMENTED:
      return answer(absl::StatusCode::kUnimplemented,
                    status.error_message().empty() ? absl::StrCat("it is of a version that has no ",
                                                                  capability, "; upgrade it")
                                                   : status.error_message());
    case grpc::StatusCode::CANCELLED:  // it was shut down meanwhile
      return answer(absl::StatusCode::kUnavailable, status.error_message());
    default:
      return answer(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }
}

absl::Status Client::Impl::CallReset(const v1alpha1::ResetChipsRequest& request,
                                     v1alpha1::ResetChipsResponse* response,
                                     absl::Duration timeout) {
  grpc::ClientContext context;
  {
    MutexLock lock(&mutex_);
    if (resets_cancelled_) return absl::UnavailableError("resets are cancelled");
    resets_.insert(&context);
  }
  absl::Status status = CallAboutChips(&v1alpha1::NpuAgent::Stub::ResetChips, request, response,
                                       timeout, "resetting chips", "resets", &context);
  MutexLock lock(&mutex_);
  resets_.erase(&context);
  return status;
}

Client::Client(Options options, std::function<void()> on_change)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(on_change))) {}

Client::~Client() = default;

View Client::Current() const { return impl_->Current(); }

absl::StatusOr<std::vector<vnpu::ChipProcesses>> Client::ListProcesses(
    const std::vector<int>& physical_ids, absl::Duration timeout) const {
  return impl_->ListProcesses(physical_ids, timeout);
}

absl::StatusOr<std::vector<vnpu::Vnpu>> Client::ListVnpus(int physical_id,
                                                          absl::Duration timeout) const {
  v1alpha1::ListVnpusRequest message;
  message.set_physical_id(physical_id);
  v1alpha1::ListVnpusResponse response;
  ASCEND_RETURN_IF_ERROR(impl_->CallAboutChips(&v1alpha1::NpuAgent::Stub::ListVnpus, message,
                                               &response, timeout, "listing vNPUs"));
  std::vector<vnpu::Vnpu> vnpus;
  for (const v1alpha1::Vnpu& vnpu : response.vnpus()) vnpus.push_back(FromProto(vnpu));
  return vnpus;
}

absl::StatusOr<vnpu::Vnpu> Client::CreateVnpu(const VnpuRequest& request,
                                              absl::Duration timeout) const {
  v1alpha1::CreateVnpuRequest message;
  message.set_physical_id(request.physical_id);
  message.set_uuid(request.uuid);
  message.set_template_name(request.template_name);
  if (request.id) message.set_id(*request.id);
  if (request.vgroup) message.set_vgroup(*request.vgroup);
  v1alpha1::Vnpu response;
  ASCEND_RETURN_IF_ERROR(impl_->CallAboutChips(&v1alpha1::NpuAgent::Stub::CreateVnpu, message,
                                               &response, timeout, "creating a vNPU"));
  return FromProto(response);
}

absl::Status Client::DestroyVnpu(const VnpuReference& vnpu, absl::Duration timeout) const {
  v1alpha1::DestroyVnpuRequest message;
  message.set_physical_id(vnpu.physical_id);
  message.set_uuid(vnpu.uuid);
  message.set_id(vnpu.id);
  message.set_template_name(vnpu.template_name);
  v1alpha1::DestroyVnpuResponse response;
  return impl_->CallAboutChips(&v1alpha1::NpuAgent::Stub::DestroyVnpu, message, &response, timeout,
                               "destroying a vNPU");
}

absl::Status Client::PrepareVnpuModes(absl::Duration timeout) const {
  v1alpha1::PrepareVnpuModesResponse response;
  return impl_->CallAboutChips(&v1alpha1::NpuAgent::Stub::PrepareVnpuModes,
                               v1alpha1::PrepareVnpuModesRequest(), &response, timeout,
                               "preparing the vNPU modes");
}

absl::StatusOr<std::vector<ChipReset>> Client::ResetChips(const ResetRequest& request,
                                                          absl::Duration timeout) const {
  v1alpha1::ResetChipsRequest message;
  message.set_physical_id(request.physical_id);
  for (const ResetRequest::Member& member : request.group) {
    v1alpha1::ChipIdentity* const chip = message.add_group();
    chip->set_physical_id(member.physical_id);
    chip->set_uuid(member.uuid);
  }
  message.set_boot_wait_ms(absl::ToInt64Milliseconds(request.boot_wait));
  v1alpha1::ResetChipsResponse response;
  ASCEND_RETURN_IF_ERROR(impl_->CallReset(message, &response, timeout));
  std::vector<ChipReset> chips;
  for (const v1alpha1::ChipReset& chip : response.chips()) {
    chips.push_back(
        {.physical_id = chip.physical_id(), .started = chip.started(), .problem = chip.problem()});
  }
  return chips;
}

void Client::CancelResets() { impl_->CancelResets(); }

}  // namespace ascend::agent
