#include "vnpu/agent/inventory_monitor.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/mutex.h"
#include "base/runtime/clock.h"
#include "vnpu/agent/inventory_log.h"

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

  void PublishResult(absl::StatusOr<vnpu::Inventory> result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void PublishNotResponding() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The last known chips under a library that cannot be asked about them.
  void PublishUnseen(vnpu::LibraryState library, std::string message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Publish(vnpu::Inventory inventory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Lets go of the mutex meanwhile. False if there was no query.
  bool AnswerQuery() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

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
  bool read_soon ABSL_GUARDED_BY(mutex) = false;  // reset when a read starts
  bool reader_has_ended ABSL_GUARDED_BY(mutex) = false;
  std::optional<absl::Duration> read_started ABSL_GUARDED_BY(mutex);  // set during a read
  InventoryLog log ABSL_GUARDED_BY(mutex);
};

void InventoryMonitor::State::Publish(vnpu::Inventory inventory) {
  if (feed->Publish(std::move(inventory))) log.Note(*feed->Current());
}

void InventoryMonitor::State::PublishUnseen(vnpu::LibraryState library, std::string message) {
  vnpu::Inventory inventory = *feed->Current();
  inventory.library = library;
  inventory.library_message = std::move(message);
  for (vnpu::Chip& chip : inventory.chips) {
    chip.health = vnpu::Health::kUnknown;
    chip.busy.reset();
  }
  Publish(std::move(inventory));
}

void InventoryMonitor::State::PublishResult(absl::StatusOr<vnpu::Inventory> result) {
  if (!result.ok()) {
    PublishUnseen(absl::IsNotFound(result.status()) ? vnpu::LibraryState::kMissing
                                                    : vnpu::LibraryState::kFailed,
                  std::string(result.status().message()));
    return;
  }
  result->library = vnpu::LibraryState::kReady;
  result->library_message.clear();
  Publish(*std::move(result));
}

void InventoryMonitor::State::PublishNotResponding() {
  // A point in time rather than an age: the content, and so the revision, stays the same.
  const absl::Time since = Clock::Real().Now() - (Clock::Real().Monotonic() - read_started.value());
  PublishUnseen(vnpu::LibraryState::kNotResponding,
                absl::StrCat("libdcmi has not answered since ",
                             absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", since, absl::UTCTimeZone()),
                             " (limit ", absl::FormatDuration(options.call_timeout),
                             "); chips are shown as last known, the agent restarts after ",
                             absl::FormatDuration(options.stuck_timeout),
                             "; check the driver with npu-smi info and dmesg"));
}

bool InventoryMonitor::State::AnswerQuery() {
  const std::shared_ptr<ProcessQuery> query = queries->Next();
  if (query == nullptr) return false;
  const std::shared_ptr<const vnpu::Inventory> inventory = feed->Current();
  read_started = Clock::Real().Monotonic();
  mutex.Unlock();
  queries->Serve(*query, *source, *inventory);
  mutex.Lock();
  read_started.reset();
  return true;
}

void InventoryMonitor::ReadLoop(const std::shared_ptr<State>& state) {
  absl::Duration next = Clock::Real().Monotonic();
  state->mutex.Lock();
  while (!state->stopping) {
    state->read_soon = false;
    state->read_started = Clock::Real().Monotonic();
    state->mutex.Unlock();
    absl::StatusOr<vnpu::Inventory> result = state->source->Read();
    state->mutex.Lock();
    state->read_started.reset();
    if (state->stopping) break;
    state->PublishResult(std::move(result));

    // A fixed rhythm; after a slow read the missed beats are left out.
    const absl::Duration now = Clock::Real().Monotonic();
    next += state->options.poll_interval;
    if (next < now) next = now + state->options.poll_interval;
    for (absl::Duration left = next - now;
         !state->stopping && !state->read_soon && left > absl::ZeroDuration();
         left = next - Clock::Real().Monotonic()) {
      if (!state->AnswerQuery()) state->wake.WaitFor(&state->mutex, left);
    }
  }
  state->reader_has_ended = true;
  state->reader_ended.SignalAll();
  state->mutex.Unlock();
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
    if (const std::optional<absl::Duration> started = state->read_started) {
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
      reader_([state = state_] { ReadLoop(state); }),
      supervisor_([state = state_] { SuperviseLoop(state); }) {
  state_->queries->SetListener([state = state_.get()] {
    MutexLock lock(&state->mutex);
    state->wake.SignalAll();
  });
}

void InventoryMonitor::ReadSoon() {
  MutexLock lock(&state_->mutex);
  state_->read_soon = true;
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
    state_->wake.SignalAll();
    while (!state_->reader_has_ended) {
      const absl::Duration left = end - Clock::Real().Monotonic();
      if (left <= absl::ZeroDuration()) break;
      state_->reader_ended.WaitFor(&state_->mutex, left);
    }
    ended = state_->reader_has_ended;
  }
  if (supervisor_.joinable()) supervisor_.join();
  if (reader_.joinable()) {
    if (ended) {
      reader_.join();
    } else {
      reader_.detach();
    }
  }
  return ended;
}

}  // namespace ascend::agent
