#include "vnpu/agent/vnpu_calls.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "base/runtime/clock.h"
#include "base/runtime/logging.h"
#include "vnpu/agent/vnpu_operations.h"

namespace ascend::agent {
namespace {

constexpr int kNode = -1;

std::string Noun(int physical_id) {
  return physical_id == kNode ? "vNPU modes of the node" : absl::StrCat("chip ", physical_id);
}

// The chip as the newest inventory has it.
absl::StatusOr<vnpu::Chip> FindChip(const vnpu::Inventory& inventory, int physical_id) {
  // While a call of the reader hangs, others may be asked about other chips.
  if (inventory.library != vnpu::LibraryState::kReady &&
      inventory.library != vnpu::LibraryState::kNotResponding) {
    return absl::UnavailableError(absl::StrCat(Noun(physical_id), ": ", inventory.library_message));
  }
  if (physical_id == kNode) {
    return vnpu::Chip{.card_id = vnpu::kNodeTurn.card, .device_id = vnpu::kNodeTurn.device};
  }
  const auto chip =
      std::find_if(inventory.chips.begin(), inventory.chips.end(),
                   [physical_id](const auto& c) { return c.physical_id == physical_id; });
  if (chip == inventory.chips.end()) {
    return absl::UnavailableError(
        absl::StrCat("this node has no chip with physical id ", physical_id));
  }
  return *chip;
}

dcmi::ChipAddress AddressOf(const vnpu::Chip& chip) { return {chip.card_id, chip.device_id}; }

auto CallingOf(ChipTurns::Turn& turn) {
  return [&turn](absl::string_view function) { turn.Calling(function); };
}

}  // namespace

VnpuCall::VnpuCall(int physical_id, std::string uuid, bool changes, Work work, Done done)
    : physical_id_(physical_id),
      uuid_(std::move(uuid)),
      changes_(changes),
      work_(std::move(work)),
      done_(std::move(done)) {}

std::shared_ptr<VnpuCall> VnpuCall::List(int physical_id, Done done) {
  const auto work = [](dcmi::Dcmi& dcmi, const vnpu::Chip& chip, ChipTurns::Turn& turn) -> Answer {
    return ListVnpus(dcmi, chip, CallingOf(turn));
  };
  return std::shared_ptr<VnpuCall>(new VnpuCall(physical_id, "", false, work, std::move(done)));
}

std::shared_ptr<VnpuCall> VnpuCall::Create(VnpuRequest request, Done done) {
  const int physical_id = request.physical_id;
  const std::string uuid = request.uuid;
  const auto work = [request = std::move(request)](dcmi::Dcmi& dcmi, const vnpu::Chip& chip,
                                                   ChipTurns::Turn& turn) -> Answer {
    ASCEND_ASSIGN_OR_RETURN(vnpu::Vnpu made, CreateVnpu(dcmi, chip, request, CallingOf(turn)));
    return std::vector<vnpu::Vnpu>{std::move(made)};
  };
  return std::shared_ptr<VnpuCall>(new VnpuCall(physical_id, uuid, true, work, std::move(done)));
}

std::shared_ptr<VnpuCall> VnpuCall::Destroy(VnpuReference reference, Done done) {
  const int physical_id = reference.physical_id;
  const std::string uuid = reference.uuid;
  const auto work = [reference = std::move(reference)](dcmi::Dcmi& dcmi, const vnpu::Chip& chip,
                                                       ChipTurns::Turn& turn) -> Answer {
    ASCEND_RETURN_IF_ERROR(DestroyVnpu(dcmi, chip, reference, CallingOf(turn)));
    return std::vector<vnpu::Vnpu>();
  };
  return std::shared_ptr<VnpuCall>(new VnpuCall(physical_id, uuid, true, work, std::move(done)));
}

std::shared_ptr<VnpuCall> VnpuCall::PrepareModes(Done done) {
  const auto work = [](dcmi::Dcmi& dcmi, const vnpu::Chip& /*chip*/,
                       ChipTurns::Turn& turn) -> Answer {
    ASCEND_RETURN_IF_ERROR(PrepareVnpuModes(dcmi, CallingOf(turn)));
    return std::vector<vnpu::Vnpu>();
  };
  return std::shared_ptr<VnpuCall>(new VnpuCall(kNode, "", true, work, std::move(done)));
}

bool VnpuCall::Begin() {
  MutexLock lock(&mutex_);
  if (done_ == nullptr) return false;
  begun_ = true;
  return true;
}

bool VnpuCall::ended() const {
  MutexLock lock(&mutex_);
  return done_ == nullptr;
}

bool VnpuCall::End(const Answer& answer) {
  Done done;
  {
    MutexLock lock(&mutex_);
    done = std::exchange(done_, nullptr);
  }
  if (done == nullptr) return false;
  done(answer);
  return true;
}

bool VnpuCall::EndUnbegun(const absl::Status& status) {
  Done done;
  {
    MutexLock lock(&mutex_);
    if (begun_) return false;
    done = std::exchange(done_, nullptr);
  }
  if (done == nullptr) return false;
  done(status);
  return true;
}

struct VnpuCalls::State {
  State(const InventoryFeed* inventory_feed, std::shared_ptr<ChipTurns> chip_turns)
      : feed(inventory_feed), turns(std::move(chip_turns)) {}

  void Changed() {
    MutexLock lock(&listener_mutex);
    if (listener != nullptr) listener();
  }

  // A chip's thread.
  struct Worker {
    std::deque<std::shared_ptr<VnpuCall>> waiting;
    std::shared_ptr<VnpuCall> current;
    std::optional<dcmi::ChipAddress> at;  // whose turn `current` has or waits for
  };

  const InventoryFeed* const feed;
  const std::shared_ptr<ChipTurns> turns;

  Mutex mutex;
  CondVar worker_ended;
  std::shared_ptr<dcmi::Dcmi> library ABSL_GUARDED_BY(mutex);
  std::map<int, Worker> workers ABSL_GUARDED_BY(mutex);  // by physical id
  std::optional<std::string> closed ABSL_GUARDED_BY(mutex);

  // Held while the listener runs, so that SetListener can wait for it.
  Mutex listener_mutex;
  std::function<void()> listener ABSL_GUARDED_BY(listener_mutex);
};

VnpuCalls::VnpuCalls(const InventoryFeed* feed, std::shared_ptr<ChipTurns> turns)
    : state_(std::make_shared<State>(feed, std::move(turns))) {}

VnpuCalls::~VnpuCalls() {
  Close("the agent is shutting down");
  Stop(absl::Seconds(1));
}

void VnpuCalls::SetLibrary(std::shared_ptr<dcmi::Dcmi> library) {
  MutexLock lock(&state_->mutex);
  state_->library = std::move(library);
}

void VnpuCalls::SetListener(std::function<void()> listener) {
  MutexLock lock(&state_->listener_mutex);
  state_->listener = std::move(listener);
}

void VnpuCalls::Start(const std::shared_ptr<VnpuCall>& call) {
  std::optional<std::string> closed;
  {
    MutexLock lock(&state_->mutex);
    closed = state_->closed;
    if (!closed) {
      const int physical_id = call->physical_id_;
      const bool has_thread = state_->workers.count(physical_id) != 0;
      state_->workers[physical_id].waiting.push_back(call);
      if (!has_thread) {
        std::thread([state = state_, physical_id] { Run(state, physical_id); }).detach();
      }
    }
  }
  if (closed) call->End(absl::UnavailableError(absl::StrCat(*closed, "; nothing was changed")));
}

void VnpuCalls::Run(const std::shared_ptr<State>& state, int physical_id) {
  state->mutex.Lock();
  // Others add to this one's queue only; its place in the map stays.
  State::Worker& worker = state->workers[physical_id];
  while (!worker.waiting.empty()) {
    worker.current = std::move(worker.waiting.front());
    worker.waiting.pop_front();
    const std::shared_ptr<VnpuCall> call = worker.current;
    state->mutex.Unlock();
    if (!call->ended()) Serve(*state, *call);
    state->mutex.Lock();
    worker.current.reset();
    worker.at.reset();
  }
  state->workers.erase(physical_id);
  state->worker_ended.SignalAll();
  state->mutex.Unlock();
}

void VnpuCalls::Serve(State& state, VnpuCall& call) {
  std::unique_ptr<ChipTurns::Turn> turn;
  std::shared_ptr<dcmi::Dcmi> library;
  vnpu::Chip chip;
  while (turn == nullptr) {
    // The chip may have moved to another address while this waited.
    absl::StatusOr<vnpu::Chip> found = absl::UnavailableError("");
    dcmi::ChipAddress address;
    {
      MutexLock lock(&state.mutex);
      if (state.closed) return;  // it was answered
      library = state.library;
      found = FindChip(*state.feed->Current(), call.physical_id_);
      if (found.ok()) {
        address = AddressOf(*found);
        state.workers[call.physical_id_].at = address;
      }
    }
    if (found.ok() && library == nullptr) {
      found = absl::UnavailableError("the NPU library is not loaded yet; try again");
    }
    if (!found.ok()) {
      call.End(found.status());
      return;
    }
    turn = state.turns->Take(address);
    if (turn == nullptr) return;  // closed, and answered
    MutexLock lock(&state.mutex);
    if (state.closed) return;
    const absl::StatusOr<vnpu::Chip> now = FindChip(*state.feed->Current(), call.physical_id_);
    if (!now.ok() || AddressOf(*now) != address) {
      turn.reset();
    } else {
      chip = *now;
    }
  }
  if (!call.Begin()) return;  // nobody waits for it any more

  VnpuCall::Answer answer = std::vector<vnpu::Vnpu>();
  if (call.physical_id_ != kNode) {
    const absl::Status right_chip = CheckChip(*library, chip, call.uuid_, CallingOf(*turn));
    if (!right_chip.ok()) answer = right_chip;
  }
  if (answer.ok()) answer = call.work_(*library, chip, *turn);
  const bool kept_the_reader_away = state.turns->IsStuck(AddressOf(chip));
  turn.reset();
  if (call.changes_ || kept_the_reader_away) state.Changed();
  if (!call.End(answer)) {
    LogWarning(
        "a vNPU call ended for which nobody waits any more",
        {{"chip", call.physical_id_},
         {"error", answer.status()},
         {"vnpu", answer.ok() && !answer->empty() ? absl::StrCat(answer->front().id) : "-"}});
  }
}

void VnpuCalls::GiveUp(VnpuCall& call, absl::StatusCode code) {
  if (call.ended()) return;
  std::string doing;
  {
    MutexLock lock(&state_->mutex);
    const auto worker = state_->workers.find(call.physical_id_);
    if (worker != state_->workers.end() && worker->second.at.has_value()) {
      doing = state_->turns->Doing(*worker->second.at);
    }
  }
  if (doing.empty()) doing = "other calls were before it";
  const std::string noun = Noun(call.physical_id_);
  // Begin() decides: after it the library is called, whatever is answered.
  if (call.EndUnbegun(absl::Status(
          code, absl::StrCat(noun, ": the call was not begun and is dropped, nothing was changed: ",
                             doing)))) {
    return;
  }
  call.End(absl::Status(
      code, absl::StrCat(noun, ": ", doing,
                         "; the library goes on with it, and the next call about this waits; "
                         "check the chip with npu-smi info and dmesg")));
}

void VnpuCalls::Close(absl::string_view reason) {
  std::vector<std::shared_ptr<VnpuCall>> calls;
  {
    MutexLock lock(&state_->mutex);
    state_->closed = std::string(reason);
    for (auto& [physical_id, worker] : state_->workers) {
      calls.insert(calls.end(), worker.waiting.begin(), worker.waiting.end());
      worker.waiting.clear();
      if (worker.current != nullptr) calls.push_back(worker.current);
    }
  }
  for (const std::shared_ptr<VnpuCall>& call : calls) {
    call->EndUnbegun(absl::UnavailableError(absl::StrCat(reason, "; nothing was changed")));
  }
  state_->turns->Close();
}

bool VnpuCalls::Stop(absl::Duration grace) {
  SetListener(nullptr);
  const absl::Duration end = Clock::Real().Monotonic() + grace;
  MutexLock lock(&state_->mutex);
  while (!state_->workers.empty()) {
    const absl::Duration left = end - Clock::Real().Monotonic();
    if (left <= absl::ZeroDuration()) return false;
    state_->worker_ended.WaitFor(&state_->mutex, left);
  }
  return true;
}

}  // namespace ascend::agent
