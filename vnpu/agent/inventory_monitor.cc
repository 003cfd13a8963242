#include "vnpu/agent/inventory_monitor.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/mutex.h"
#include "base/runtime/clock.h"
#include "vnpu/agent/alarm.h"
#include "vnpu/agent/inventory_log.h"
#include "vnpu/discovery.h"

namespace ascend::agent {

struct InventoryMonitor::State {
  State(std::unique_ptr<InventorySource> inventory_source, InventoryFeed* inventory_feed,
        std::shared_ptr<ProcessQueries> process_queries, Options monitor_options,
        std::function<void(absl::Duration)> stuck)
      : source(std::move(inventory_source)),
        feed(inventory_feed),
        queries(std::move(process_queries)),
        options(monitor_options),
        on_stuck(std::move(stuck)) {}

  void PublishFailure(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void PublishFound(vnpu::Inventory inventory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void PublishNotResponding() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The last known chips under a library that cannot be asked about them.
  void PublishUnseen(vnpu::LibraryState library, std::string message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Publish(vnpu::Inventory inventory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // Whether this reader is to go on.
  bool InCharge(int reader) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return !stopping && in_charge == reader;
  }
  // Puts a new thread in charge.
  static void StartReader(const std::shared_ptr<State>& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state->mutex);
  // These let go of the mutex for a call, after which somebody else may be in charge.
  void BeginLook() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void StepLook(int reader) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void StepQuery(int reader) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void StartStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void EndStep(int reader) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void EndLook() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Until the next look is due; zero or less if it is.
  absl::Duration Rest() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  const std::unique_ptr<InventorySource> source;
  InventoryFeed* const feed;  // used only while !stopping
  const std::shared_ptr<ProcessQueries> queries;
  const Options options;
  const std::function<void(absl::Duration)> on_stuck;

  // Held while publishing, so that a time-out and the late result keep their order.
  Mutex mutex;
  CondVar wake;  // stopping, a new query, or read_soon
  CondVar reader_ended;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  int in_charge ABSL_GUARDED_BY(mutex) = 0;  // the newest reader
  int readers ABSL_GUARDED_BY(mutex) = 0;    // with those that were left to their calls
  std::shared_ptr<InventorySource::Look> look ABSL_GUARDED_BY(mutex);  // under way
  std::shared_ptr<ProcessQuery> query ABSL_GUARDED_BY(mutex);          // the same
  absl::Duration look_began ABSL_GUARDED_BY(mutex);
  absl::Duration next_look ABSL_GUARDED_BY(mutex) = Clock::Real().Monotonic();
  std::optional<absl::Duration> read_soon ABSL_GUARDED_BY(mutex);  // when; reset by the next look
  std::optional<absl::Duration> call_started ABSL_GUARDED_BY(mutex);  // about the node
  std::optional<absl::Duration> step_started ABSL_GUARDED_BY(mutex);  // by who is in charge
  Alarm* alarm ABSL_GUARDED_BY(mutex) = nullptr;                      // null when stopping
  InventoryLog log ABSL_GUARDED_BY(mutex);
};

void InventoryMonitor::State::Publish(vnpu::Inventory inventory) {
  if (feed->Publish(std::move(inventory))) log.Note(*feed->Current());
}

void InventoryMonitor::State::PublishUnseen(vnpu::LibraryState library, std::string message) {
  vnpu::Inventory inventory = *feed->Current();
  inventory.library = library;
  inventory.library_message = std::move(message);
  for (vnpu::Chip& chip : inventory.chips) vnpu::ForgetState(chip, inventory.library_message);
  Publish(std::move(inventory));
}

void InventoryMonitor::State::PublishFailure(const absl::Status& status) {
  PublishUnseen(
      absl::IsNotFound(status) ? vnpu::LibraryState::kMissing : vnpu::LibraryState::kFailed,
      std::string(status.message()));
}

void InventoryMonitor::State::PublishFound(vnpu::Inventory inventory) {
  inventory.library = vnpu::LibraryState::kReady;
  inventory.library_message.clear();
  Publish(std::move(inventory));
}

void InventoryMonitor::State::PublishNotResponding() {
  // A point in time rather than an age: the content, and so the revision, stays the same.
  const absl::Time since = Clock::Real().Now() - (Clock::Real().Monotonic() - call_started.value());
  PublishUnseen(vnpu::LibraryState::kNotResponding,
                absl::StrCat("libdcmi has not answered since ",
                             absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", since, absl::UTCTimeZone()),
                             " (limit ", absl::FormatDuration(options.call_timeout),
                             "); chips are shown as last known, the agent restarts after ",
                             absl::FormatDuration(options.stuck_timeout),
                             "; check the driver with npu-smi info and dmesg"));
}

void InventoryMonitor::State::BeginLook() {
  read_soon.reset();
  look_began = Clock::Real().Monotonic();
  call_started = look_began;
  mutex.Unlock();
  absl::StatusOr<std::shared_ptr<InventorySource::Look>> begun = source->Begin();
  mutex.Lock();
  call_started.reset();
  if (stopping) return;
  if (begun.ok()) {
    look = *std::move(begun);
  } else {
    PublishFailure(begun.status());
    EndLook();
  }
}

void InventoryMonitor::State::EndLook() {
  // A fixed rhythm; after a slow look the missed beats are left out.
  const absl::Duration now = Clock::Real().Monotonic();
  next_look += options.poll_interval;
  if (next_look < now) next_look = now + options.poll_interval;
}

void InventoryMonitor::State::StepLook(int reader) {
  const std::shared_ptr<InventorySource::Look> current = look;
  StartStep();
  mutex.Unlock();
  const bool more = current->Step();
  mutex.Lock();
  EndStep(reader);
  if (more || !InCharge(reader)) return;
  look.reset();
  PublishFound(current->Finish());
  EndLook();
}

void InventoryMonitor::State::StepQuery(int reader) {
  const std::shared_ptr<ProcessQuery> current = query;
  const std::shared_ptr<const vnpu::Inventory> inventory = feed->Current();
  StartStep();
  mutex.Unlock();
  const bool more = queries->ServeNext(*current, *source, *inventory);
  mutex.Lock();
  EndStep(reader);
  if (!more && InCharge(reader)) query.reset();
}

void InventoryMonitor::State::StartStep() {
  step_started = Clock::Real().Monotonic();
  alarm->Set(options.patience);
}

void InventoryMonitor::State::EndStep(int reader) {
  if (stopping) return;
  if (in_charge == reader) {
    step_started.reset();
    alarm->Clear();
    return;
  }
  // Its chip answers again: worth a look.
  read_soon = Clock::Real().Monotonic();
  wake.SignalAll();
}

absl::Duration InventoryMonitor::State::Rest() const {
  const absl::Duration due = read_soon ? std::min(*read_soon, next_look) : next_look;
  return due - Clock::Real().Monotonic();
}

void InventoryMonitor::ReadLoop(const std::shared_ptr<State>& state, int reader) {
  state->mutex.Lock();
  while (state->InCharge(reader)) {
    if (state->query != nullptr) {
      state->StepQuery(reader);
    } else if (state->look != nullptr) {
      state->StepLook(reader);
    } else if (const absl::Duration rest = state->Rest(); rest <= absl::ZeroDuration()) {
      state->BeginLook();
    } else if (state->query = state->queries->Next(); state->query == nullptr) {
      state->wake.WaitFor(&state->mutex, rest);
    }
  }
  --state->readers;
  state->reader_ended.SignalAll();
  state->mutex.Unlock();
}

void InventoryMonitor::State::StartReader(const std::shared_ptr<State>& state) {
  const int reader = ++state->in_charge;
  ++state->readers;
  std::thread([state, reader] { ReadLoop(state, reader); }).detach();
}

// The alarm's: a step takes too long, so another reader goes on.
void InventoryMonitor::Relieve(const std::shared_ptr<State>& state) {
  MutexLock lock(&state->mutex);
  if (state->stopping || !state->step_started) return;
  const absl::Duration left =
      *state->step_started + state->options.patience - Clock::Real().Monotonic();
  if (left > absl::ZeroDuration()) {
    state->alarm->Set(left);  // it rang for an earlier step
    return;
  }
  state->step_started.reset();
  State::StartReader(state);
}

void InventoryMonitor::SuperviseLoop(const std::shared_ptr<State>& state) {
  const Options& options = state->options;
  std::optional<absl::Duration> late;   // start of the read that was shown as kNotResponding
  std::optional<absl::Duration> stuck;  // start of the read that on_stuck was told of
  state->mutex.Lock();
  while (!state->stopping) {
    const absl::Duration now = Clock::Real().Monotonic();
    // Needs no signal for each read: one that starts later cannot be late before this.
    absl::Duration wake = now + std::min(options.call_timeout, options.stuck_timeout);
    if (const std::optional<absl::Duration> started = state->call_started) {
      if (late != started && now >= *started + options.call_timeout) {
        late = started;
        state->PublishNotResponding();
      }
      if (stuck != started && now >= *started + options.stuck_timeout) {
        stuck = started;
        state->mutex.Unlock();
        state->on_stuck(now - *started);
        state->mutex.Lock();
        continue;
      }
      if (late != started) wake = std::min(wake, *started + options.call_timeout);
      if (stuck != started) wake = std::min(wake, *started + options.stuck_timeout);
    }
    state->wake.WaitFor(&state->mutex, wake - now);
  }
  state->mutex.Unlock();
}

InventoryMonitor::InventoryMonitor(std::unique_ptr<InventorySource> source, InventoryFeed* feed,
                                   std::shared_ptr<ProcessQueries> queries, Options options,
                                   std::function<void(absl::Duration)> on_stuck)
    : state_(std::make_shared<State>(std::move(source), feed, std::move(queries), options,
                                     std::move(on_stuck))),
      alarm_(std::make_unique<Alarm>([state = state_] { Relieve(state); })),
      supervisor_([state = state_] { SuperviseLoop(state); }) {
  {
    MutexLock lock(&state_->mutex);
    state_->alarm = alarm_.get();
    State::StartReader(state_);
  }
  state_->queries->SetListener([state = state_.get()] {
    MutexLock lock(&state->mutex);
    state->wake.SignalAll();
  });
}

void InventoryMonitor::ReadSoon(absl::Duration rest) {
  MutexLock lock(&state_->mutex);
  const absl::Duration due = std::max(Clock::Real().Monotonic(), state_->look_began + rest);
  if (!state_->read_soon || due < *state_->read_soon) state_->read_soon = due;
  state_->wake.SignalAll();
}

InventoryMonitor::~InventoryMonitor() { Stop(absl::Seconds(1)); }

bool InventoryMonitor::Stop(absl::Duration grace) {
  state_->queries->SetListener(nullptr);
  bool ended = false;
  {
    const absl::Duration end = Clock::Real().Monotonic() + grace;
    MutexLock lock(&state_->mutex);
    state_->stopping = true;
    state_->alarm = nullptr;
    state_->wake.SignalAll();
    while (state_->readers > 0) {
      const absl::Duration left = end - Clock::Real().Monotonic();
      if (left <= absl::ZeroDuration()) break;
      state_->reader_ended.WaitFor(&state_->mutex, left);
    }
    ended = state_->readers == 0;
  }
  alarm_.reset();
  if (supervisor_.joinable()) supervisor_.join();
  return ended;
}

}  // namespace ascend::agent
