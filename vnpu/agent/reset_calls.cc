#include "vnpu/agent/reset_calls.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/status_macros.h"
#include "base/runtime/clock.h"
#include "base/runtime/logging.h"
#include "vnpu/agent/reset_operations.h"

namespace ascend::agent {
namespace {

constexpr absl::Duration kLongestBootWait = absl::Minutes(15);

dcmi::ChipAddress AddressOf(const vnpu::Chip& chip) { return {chip.card_id, chip.device_id}; }

const vnpu::Chip* Find(const vnpu::Inventory& inventory, int physical_id) {
  const auto chip =
      std::find_if(inventory.chips.begin(), inventory.chips.end(),
                   [physical_id](const auto& c) { return c.physical_id == physical_id; });
  return chip == inventory.chips.end() ? nullptr : &*chip;
}

absl::Status CheckRequest(const ResetRequest& request) {
  std::set<int> ids;
  for (const ResetRequest::Member& member : request.group) ids.insert(member.physical_id);
  if (ids.size() != request.group.size() || ids.count(request.physical_id) == 0) {
    return absl::InvalidArgumentError(
        "a reset takes a group of different chips, that which is reset among them");
  }
  if (request.boot_wait <= absl::ZeroDuration() || request.boot_wait > kLongestBootWait) {
    return absl::InvalidArgumentError(
        absl::StrCat("boot wait of a reset: ", absl::FormatDuration(request.boot_wait),
                     " is not from 1ms to 15m"));
  }
  return absl::OkStatus();
}

}  // namespace

ResetCall::ResetCall(ResetRequest request, Done done)
    : request_(std::move(request)), done_(std::move(done)) {}

bool ResetCall::Begin() {
  MutexLock lock(&mutex_);
  if (done_ == nullptr) return false;
  begun_ = true;
  return true;
}

bool ResetCall::End(const Answer& answer) {
  Done done;
  {
    MutexLock lock(&mutex_);
    done = std::exchange(done_, nullptr);
  }
  if (done == nullptr) return false;
  done(answer);
  return true;
}

bool ResetCall::EndUnbegun(const absl::Status& status) {
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

struct ResetCalls::State {
  State(Options reset_options, const InventoryFeed* inventory_feed,
        std::shared_ptr<ChipTurns> chip_turns)
      : options(reset_options), feed(inventory_feed), turns(std::move(chip_turns)) {}

  void Changed() {
    MutexLock lock(&listener_mutex);
    if (listener != nullptr) listener();
  }
  // False after Close().
  bool Pause(absl::Duration duration) {
    const absl::Duration end = Clock::Real().Monotonic() + duration;
    MutexLock lock(&mutex);
    while (!closed) {
      const absl::Duration left = end - Clock::Real().Monotonic();
      if (left <= absl::ZeroDuration()) return true;
      changed.WaitFor(&mutex, left);
    }
    return false;
  }

  const Options options;
  const InventoryFeed* const feed;
  const std::shared_ptr<ChipTurns> turns;

  Mutex mutex;
  CondVar changed;  // a thread has ended, or closed
  std::shared_ptr<dcmi::Dcmi> library ABSL_GUARDED_BY(mutex);
  std::set<std::shared_ptr<ResetCall>> calls ABSL_GUARDED_BY(mutex);  // with a thread each
  std::optional<std::string> closed ABSL_GUARDED_BY(mutex);

  // Held while the listener runs, so that SetListener can wait for it.
  Mutex listener_mutex;
  std::function<void()> listener ABSL_GUARDED_BY(listener_mutex);
};

// What the thread of one call does.
class ResetCalls::Run {
 public:
  Run(State& state, ResetCall& call) : state_(state), call_(call), request_(call.request_) {}

  ResetCall::Answer Work() {
    ASCEND_RETURN_IF_ERROR(CheckRequest(request_));
    {
      MutexLock lock(&state_.mutex);
      library_ = state_.library;
    }
    if (library_ == nullptr) {
      return absl::UnavailableError("the NPU library is not loaded yet; try again");
    }
    ASCEND_RETURN_IF_ERROR(FindMembers());
    ASCEND_RETURN_IF_ERROR(TakeTurns());
    const auto calling = [this](absl::string_view function) { Announce(function); };
    absl::Status status = CheckIdle(*library_, members_, calling);
    // Of a call that was given up nobody hears.
    if (status.ok() && !call_.Begin()) status = absl::CancelledError("nobody waits any more");
    if (!status.ok()) {
      KeptTheReader();
      return status;
    }
    LogWarning("chips are reset", {{"chip", request_.physical_id}, {"group", Group()}});
    status = StartReset(
        *library_, *target_, [this] { state_.Pause(state_.options.outband_pause); }, calling);
    std::vector<ChipReset> chips;
    if (status.ok()) chips = WaitForBoot(calling);
    turns_.clear();
    state_.Changed();
    if (!status.ok()) return status;
    return chips;
  }

 private:
  absl::Status FindMembers() {
    const std::shared_ptr<const vnpu::Inventory> inventory = state_.feed->Current();
    std::vector<ResetRequest::Member> group = request_.group;
    // So that no two calls wait for each other.
    std::sort(group.begin(), group.end(),
              [](const auto& a, const auto& b) { return a.physical_id < b.physical_id; });
    members_.clear();
    for (const ResetRequest::Member& member : group) {
      const vnpu::Chip* const chip = Find(*inventory, member.physical_id);
      if (chip != nullptr) members_.push_back({.chip = *chip, .uuid = member.uuid});
    }
    target_ = nullptr;
    for (const ResetMember& member : members_) {
      if (member.chip.physical_id == request_.physical_id) target_ = &member.chip;
    }
    if (target_ != nullptr) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("the library lists no chip ", request_.physical_id));
  }

  absl::Status TakeTurns() {
    const absl::Duration end = Clock::Real().Monotonic() + state_.options.turn_wait;
    for (const ResetMember& member : members_) {
      const dcmi::ChipAddress address = AddressOf(member.chip);
      auto turn = state_.turns->TakeWithin(address, end - Clock::Real().Monotonic());
      if (turn == nullptr) {
        return absl::FailedPreconditionError(absl::StrCat(
            "chip ", member.chip.physical_id, " is busy: ", state_.turns->Doing(address)));
      }
      turns_.push_back(std::move(turn));
    }
    // They may have moved to other addresses meanwhile.
    std::vector<ResetMember> before = std::move(members_);
    ASCEND_RETURN_IF_ERROR(FindMembers());
    const bool same = std::equal(before.begin(), before.end(), members_.begin(), members_.end(),
                                 [](const ResetMember& a, const ResetMember& b) {
                                   return AddressOf(a.chip) == AddressOf(b.chip) &&
                                          a.chip.physical_id == b.chip.physical_id;
                                 });
    if (same) return absl::OkStatus();
    return absl::FailedPreconditionError("chips have come, gone or moved meanwhile; try again");
  }

  // A reset that hangs keeps all of them.
  void Announce(absl::string_view function) {
    for (const auto& turn : turns_) turn->Calling(function);
  }

  void KeptTheReader() {
    const bool kept = std::any_of(members_.begin(), members_.end(), [this](const ResetMember& m) {
      return state_.turns->IsStuck(AddressOf(m.chip));
    });
    turns_.clear();
    if (kept) state_.Changed();
  }

  std::vector<ChipReset> WaitForBoot(Calling calling) {
    const absl::Duration end = Clock::Real().Monotonic() + request_.boot_wait;
    std::map<int, ChipReset> found;
    bool open = state_.Pause(std::min(state_.options.settle, request_.boot_wait));
    while (true) {
      bool all = true;
      for (const ResetMember& member : members_) {
        ChipReset& chip = found[member.chip.physical_id];
        if (!chip.started) chip = LookAtBoot(*library_, member.chip, calling);
        all = all && chip.started;
      }
      const absl::Duration left = end - Clock::Real().Monotonic();
      if (all || !open || left <= absl::ZeroDuration()) break;
      open = state_.Pause(std::min(left, state_.options.boot_poll));
    }
    std::vector<ChipReset> answer;
    for (const ResetRequest::Member& member : request_.group) {
      const auto chip = found.find(member.physical_id);
      answer.push_back(chip != found.end() ? chip->second
                                           : ChipReset{.physical_id = member.physical_id,
                                                       .problem = "the library does not list it"});
    }
    return answer;
  }

  std::string Group() const {
    return absl::StrJoin(members_, ",", [](std::string* out, const ResetMember& member) {
      absl::StrAppend(out, member.chip.physical_id);
    });
  }

  State& state_;
  ResetCall& call_;
  const ResetRequest& request_;
  std::shared_ptr<dcmi::Dcmi> library_;
  std::vector<ResetMember> members_;    // those that the library lists, ascending
  const vnpu::Chip* target_ = nullptr;  // among them
  std::vector<std::unique_ptr<ChipTurns::Turn>> turns_;
};

ResetCalls::ResetCalls(Options options, const InventoryFeed* feed, std::shared_ptr<ChipTurns> turns)
    : state_(std::make_shared<State>(options, feed, std::move(turns))) {}

ResetCalls::~ResetCalls() {
  Close("the agent is shutting down");
  Stop(absl::Seconds(1));
}

void ResetCalls::SetLibrary(std::shared_ptr<dcmi::Dcmi> library) {
  MutexLock lock(&state_->mutex);
  state_->library = std::move(library);
}

void ResetCalls::SetListener(std::function<void()> listener) {
  MutexLock lock(&state_->listener_mutex);
  state_->listener = std::move(listener);
}

void ResetCalls::Start(const std::shared_ptr<ResetCall>& call) {
  std::optional<std::string> closed;
  {
    MutexLock lock(&state_->mutex);
    closed = state_->closed;
    if (!closed) {
      state_->calls.insert(call);
      std::thread([state = state_, call] {
        const ResetCall::Answer answer = Run(*state, *call).Work();
        if (!call->End(answer)) {
          LogWarning("a reset ended for which nobody waits any more",
                     {{"chip", call->request_.physical_id}, {"error", answer.status()}});
        }
        MutexLock done(&state->mutex);
        state->calls.erase(call);
        state->changed.SignalAll();
      }).detach();
    }
  }
  if (closed) call->End(absl::UnavailableError(absl::StrCat(*closed, "; nothing was reset")));
}

void ResetCalls::GiveUp(ResetCall& call, absl::StatusCode code) {
  std::string doing;
  if (const vnpu::Chip* chip = Find(*state_->feed->Current(), call.request_.physical_id)) {
    doing = state_->turns->Doing(AddressOf(*chip));
  }
  if (doing.empty()) doing = "other calls were before it";
  const std::string noun = absl::StrCat("reset of chip ", call.request_.physical_id);
  // Begin() decides: after it the library is told, whatever is answered.
  if (call.EndUnbegun(absl::Status(
          code, absl::StrCat(noun, ": not begun and dropped, nothing was reset: ", doing)))) {
    return;
  }
  call.End(absl::Status(code, absl::StrCat(noun, ": ", doing,
                                           "; it goes on, and the chips stay stuck until it ends; "
                                           "check them with npu-smi info and dmesg")));
}

void ResetCalls::Close(absl::string_view reason) {
  std::set<std::shared_ptr<ResetCall>> calls;
  {
    MutexLock lock(&state_->mutex);
    state_->closed = std::string(reason);
    calls = state_->calls;
    state_->changed.SignalAll();
  }
  for (const std::shared_ptr<ResetCall>& call : calls) {
    call->EndUnbegun(absl::UnavailableError(absl::StrCat(reason, "; nothing was reset")));
  }
}

bool ResetCalls::Stop(absl::Duration grace) {
  SetListener(nullptr);
  const absl::Duration end = Clock::Real().Monotonic() + grace;
  MutexLock lock(&state_->mutex);
  while (!state_->calls.empty()) {
    const absl::Duration left = end - Clock::Real().Monotonic();
    if (left <= absl::ZeroDuration()) return false;
    state_->changed.WaitFor(&state_->mutex, left);
  }
  return true;
}

}  // namespace ascend::agent
