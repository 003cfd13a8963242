#include "kubeletplugin/slices/publisher.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/status_macros.h"
#include "base/runtime/clock.h"
#include "base/runtime/logging.h"
#include "kubeletplugin/slices/comparison.h"
#include "kubeletplugin/slices/limits.h"

namespace ascend::kubeletplugin {
namespace {

// An idle publisher sleeps until it is woken.
constexpr absl::Duration kForever = absl::Hours(24);
// Nobody tells when a newer instance ends, or when an older one has let go.
constexpr absl::Duration kRolePoll = absl::Milliseconds(250);
constexpr absl::Duration kRoleHandOver = absl::Milliseconds(10);
// A watch that lived so long was a good one; slices deleted after so long are a new story.
constexpr absl::Duration kCalm = absl::Seconds(10);

absl::Duration Monotonic() { return Clock::Real().Monotonic(); }

// Resource versions of one kind grow; what is no number is taken as newer.
bool IsOlder(const std::string& version, const std::string& than) {
  uint64_t a = 0, b = 0;
  return absl::SimpleAtoi(version, &a) && absl::SimpleAtoi(than, &b) && a < b;
}

}  // namespace

SlicePublisher::SlicePublisher(Options options, kube::Client& client, PublisherRole role,
                               std::function<Wanted()> wanted)
    : options_(std::move(options)),
      client_(client),
      wanted_(std::move(wanted)),
      role_(std::move(role)) {}

SlicePublisher::~SlicePublisher() { Stop(); }

void SlicePublisher::Stop() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
  watch_.reset();
}

void SlicePublisher::Start() {
  thread_ = std::thread([this] { Run(); });
}

void SlicePublisher::Wake() {
  MutexLock lock(&mutex_);
  wake_ = true;
  changed_.SignalAll();
}

absl::Status SlicePublisher::ready() const {
  MutexLock lock(&mutex_);
  return ready_;
}

void SlicePublisher::SetReady(absl::Status status) {
  MutexLock lock(&mutex_);
  ready_ = std::move(status);
}

void SlicePublisher::Report(PublishReport::Event event) const {
  if (!options_.observe) return;
  PublishReport report = {.event = event};
  if (event == PublishReport::Event::kCurrent) {
    report.slices = &on_server_;
    for (const auto& [name, slice] : on_server_) {
      report.generation = std::max(report.generation, slice.pool_generation);
    }
  }
  options_.observe(report);
}

void SlicePublisher::Run() {
  while (true) {
    const absl::Duration wait = Step();
    const absl::Duration deadline = Monotonic() + wait;
    MutexLock lock(&mutex_);
    while (!wake_ && !stop_) {
      const absl::Duration left = deadline - Monotonic();
      if (left <= absl::ZeroDuration()) break;
      changed_.WaitFor(&mutex_, left);
    }
    if (stop_) return;
    wake_ = false;
  }
}

void SlicePublisher::Forget() {
  watch_.reset();
  on_server_.clear();
  deleted_uids_.clear();
  resource_version_.clear();
  MutexLock lock(&mutex_);
  events_.clear();
  watch_ended_.reset();
}

absl::Duration SlicePublisher::Step() {
  const Wanted wanted = wanted_();
  absl::Duration wait = wanted.ask_again_after.value_or(kForever);
  if (!wanted.known) {
    SetReady(absl::UnavailableError(wanted.unknown_because));
    if (!had_role_) return wait;
  }

  const absl::StatusOr<bool> role = role_.Update();
  if (std::string error(role.status().message()); error != role_error_) {
    role_error_ = std::move(error);
    if (!role.ok()) {
      LogError("cannot tell which instance publishes ResourceSlices", {{"error", role.status()}});
    }
  }
  if (!role.ok()) {
    SetReady(Annotate(role.status(), "cannot tell which instance publishes ResourceSlices"));
    return options_.max_backoff;
  }
  if (!*role) {
    if (had_role_) {
      LogInfo("a newer instance of the driver publishes the ResourceSlices from now on");
      had_role_ = false;
      Report(PublishReport::Event::kNotPublisher);
      Forget();
      // What it writes is no edit of ours.
      written_.clear();
      edited_since_.clear();
    }
    if (role_.newest()) return kRoleHandOver;
    SetReady(absl::OkStatus());
    return kRolePoll;
  }
  had_role_ = true;
  if (!wanted.known) return wait;

  // Whatever woke us: a server in trouble is left alone for a while.
  if (const absl::Duration left = not_before_ - Monotonic(); left > absl::ZeroDuration()) {
    return left;
  }
  const absl::Status status = Publish(wanted, &wait);
  if (status.ok()) {
    if (!last_error_.empty()) LogInfo("publishing ResourceSlices works again");
    last_error_.clear();
    backoff_ = absl::ZeroDuration();
    return wait;
  }
  if (absl::IsAborted(status) || absl::IsOutOfRange(status) || absl::IsAlreadyExists(status) ||
      absl::IsNotFound(status)) {
    Forget();  // somebody else wrote: look again before writing
  }
  if (std::string error(status.message()); error != last_error_) {
    LogWarning("publishing ResourceSlices failed, trying again", {{"error", error}});
    last_error_ = std::move(error);
  }
  SetReady(Annotate(status, "ResourceSlices are not published"));
  Report(PublishReport::Event::kFailed);
  backoff_ = std::clamp(backoff_ * 2, options_.min_backoff, options_.max_backoff);
  wait = std::max(backoff_, kube::RetryAfter(status).value_or(absl::ZeroDuration()));
  not_before_ = Monotonic() + wait;
  return wait;
}

absl::Status SlicePublisher::Publish(const Wanted& wanted, absl::Duration* wait) {
  if (node_uid_.empty()) {
    ASCEND_RETURN_IF_ERROR(RefreshNodeUid());
  }
  ApplyEvents();
  ASCEND_ASSIGN_OR_RETURN(const bool view_known, EnsureView(wait));
  if (!view_known) return absl::OkStatus();

  SliceInputs inputs = wanted.inputs;
  inputs.driver = options_.driver;
  inputs.node_name = options_.node_name;
  inputs.node_uid = node_uid_;
  inputs.server_keeps_taints = server_keeps_taints_;
  inputs.server_keeps_counters = server_keeps_counters_;
  SlicePlan plan = BuildSlices(inputs);
  if (plan.warnings != last_warnings_) {
    last_warnings_ = plan.warnings;
    for (const std::string& warning : plan.warnings) {
      LogWarning("chips are not offered as configured", {{"reason", warning}});
    }
  }
  if (plan.problems != last_problems_) {
    last_problems_ = plan.problems;
    for (const std::string& problem : plan.problems) {
      LogError("a device cannot be published", {{"error", problem}});
    }
  }
  return Reconcile(std::move(plan), wait);
}

absl::Status SlicePublisher::RefreshNodeUid() {
  ASCEND_ASSIGN_OR_RETURN(const kube::Node node,
                          client_.GetNode(options_.node_name, options_.request_timeout));
  node_uid_ = node.uid;
  return absl::OkStatus();
}

absl::StatusOr<bool> SlicePublisher::EnsureView(absl::Duration* wait) {
  if (watch_ != nullptr) return true;
  const absl::Duration now = Monotonic();
  if (now < watch_not_before_) {
    *wait = std::min(*wait, watch_not_before_ - now);
    return !resource_version_.empty();
  }
  if (resource_version_.empty()) {
    ASCEND_ASSIGN_OR_RETURN(
        kube::SliceList list,
        client_.ListResourceSlices(options_.driver, options_.node_name, options_.request_timeout));
    on_server_.clear();
    for (kube::ResourceSlice& slice : list.slices) {
      std::string name = slice.name;
      on_server_.emplace(std::move(name), std::move(slice));
    }
    resource_version_ = list.resource_version;
  }
  watch_started_ = now;
  may_retry_taints_ = true;  // another server may answer from now on
  may_retry_counters_ = true;
  watch_ = client_.WatchResourceSlices(
      options_.driver, options_.node_name, resource_version_,
      [this](kube::SliceEvent event) {
        MutexLock lock(&mutex_);
        events_.push_back(std::move(event));
        wake_ = true;
        changed_.SignalAll();
      },
      [this](absl::Status status) {
        MutexLock lock(&mutex_);
        watch_ended_ = std::move(status);
        wake_ = true;
        changed_.SignalAll();
      });
  return true;
}

void SlicePublisher::ApplyEvents() {
  std::vector<kube::SliceEvent> events;
  std::optional<absl::Status> ended;
  {
    MutexLock lock(&mutex_);
    events.swap(events_);
    ended.swap(watch_ended_);
  }
  for (kube::SliceEvent& event : events) {
    if (!event.slice.resource_version.empty()) resource_version_ = event.slice.resource_version;
    if (event.type == kube::SliceEvent::Type::kBookmark) continue;
    const bool deleted = event.type == kube::SliceEvent::Type::kDeleted;
    // Events from before our own last write tell nothing new.
    if (deleted_uids_.count(event.slice.uid) != 0) {
      if (deleted) deleted_uids_.erase(event.slice.uid);
      continue;
    }
    const auto known = on_server_.find(event.slice.name);
    if (known != on_server_.end() &&
        IsOlder(event.slice.resource_version, known->second.resource_version)) {
      continue;
    }
    if (deleted) {
      on_server_.erase(event.slice.name);
    } else {
      on_server_[event.slice.name] = std::move(event.slice);
    }
  }
  if (ended) WatchEnded(*ended);
}

void SlicePublisher::WatchEnded(const absl::Status& status) {
  watch_.reset();
  const absl::Duration now = Monotonic();
  if (now - watch_started_ >= kCalm) {
    watch_backoff_ = absl::ZeroDuration();
    watch_error_.clear();
  } else {
    watch_backoff_ = std::clamp(watch_backoff_ * 2, options_.min_backoff, options_.max_backoff);
  }
  watch_not_before_ =
      now + std::max(watch_backoff_, kube::RetryAfter(status).value_or(absl::ZeroDuration()));
  if (status.ok()) return;  // the server's time-out
  if (std::string error(status.message()); error != watch_error_) {
    LogWarning("the watch of ResourceSlices ended, beginning another", {{"error", error}});
    watch_error_ = std::move(error);
  }
  // The last version seen is good after a broken connection too: what came later is sent again.
  if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) Forget();
}

void SlicePublisher::RetryTaints(absl::Duration* wait) {
  if (server_keeps_taints_ || !may_retry_taints_) return;
  const absl::Duration left = taints_dropped_ + options_.retry_taints_after - Monotonic();
  if (!kept_taints_ && left > absl::ZeroDuration()) {
    *wait = std::min(*wait, left);
    return;
  }
  may_retry_taints_ = false;
  server_keeps_taints_ = true;
  *wait = absl::ZeroDuration();
}

void SlicePublisher::RetryCounters(absl::Duration* wait) {
  // Rarely: what the server drops changes the layout of all slices.
  if (server_keeps_counters_ || !may_retry_counters_) return;
  const absl::Duration left = counters_dropped_ + options_.retry_counters_after - Monotonic();
  if (left > absl::ZeroDuration()) {
    *wait = std::min(*wait, left);
    return;
  }
  may_retry_counters_ = false;
  server_keeps_counters_ = true;
  *wait = absl::ZeroDuration();
}

void SlicePublisher::CountersRefused(const absl::Status& error) {
  LogWarning("the API server does not take counters in our ResourceSlices, chips are offered whole",
             {{"error", error}});
  server_keeps_counters_ = false;
  counters_dropped_ = Monotonic();
}

void SlicePublisher::NoticeDroppedFields(const kube::ResourceSlice& sent,
                                         const kube::ResourceSlice& stored) {
  if (SameContent(sent, stored)) {
    kept_taints_ = kept_taints_ || std::any_of(sent.devices.begin(), sent.devices.end(),
                                               [](const auto& d) { return !d.taints.empty(); });
    return;
  }
  auto [fields, taints, counters] = DroppedFields(sent, stored);
  // Each is named once.
  std::erase_if(fields, [this](const std::string& f) { return !dropped_fields_.insert(f).second; });
  if (!fields.empty()) {
    LogWarning("the API server does not store all fields of our ResourceSlices",
               {{"dropped", absl::StrJoin(fields, ", ")},
                {"effect", taints     ? "unhealthy chips that no claim holds are withheld"
                           : counters ? "chips are offered whole only"
                                      : "selectors on them do not match"}});
  }
  if (counters) {
    server_keeps_counters_ = false;
    counters_dropped_ = Monotonic();
  }
  if (taints) {
    server_keeps_taints_ = false;
    kept_taints_ = false;
    taints_dropped_ = Monotonic();
  }
}

absl::Status SlicePublisher::Store(kube::ResourceSlice slice, const kube::ResourceSlice* existing) {
  ASCEND_RETURN_IF_ERROR(CheckSlice(slice));
  absl::StatusOr<kube::ResourceSlice> stored;
  if (existing == nullptr) {
    stored = client_.CreateResourceSlice(slice, options_.request_timeout);
  } else {
    KeepTaintTimes(*existing, &slice);
    slice.resource_version = existing->resource_version;
    stored = client_.UpdateResourceSlice(slice, options_.request_timeout);
  }
  ASCEND_RETURN_IF_ERROR(stored.status());
  LogInfo(existing == nullptr ? "published ResourceSlice" : "updated ResourceSlice",
          {{"slice", slice.name},
           {"devices", slice.devices.size()},
           {"generation", slice.pool_generation}});
  NoticeDroppedFields(slice, *stored);
  on_server_[slice.name] = *stored;
  edited_since_.erase(slice.name);
  Written& written = written_[slice.name];
  written.sent = std::move(slice);
  written.stored = *std::move(stored);
  return absl::OkStatus();
}

absl::Status SlicePublisher::DeleteObsolete(
    const std::map<std::string, kube::ResourceSlice>& obsolete) {
  for (const auto& [name, slice] : obsolete) {
    const absl::Status deleted =
        client_.DeleteResourceSlice(name, slice.uid, options_.request_timeout);
    if (!deleted.ok() && !absl::IsNotFound(deleted)) return deleted;
    LogInfo("deleted obsolete ResourceSlice", {{"slice", name}});
    if (deleted.ok()) deleted_uids_.insert(slice.uid);
    on_server_.erase(name);
    written_.erase(name);
  }
  return absl::OkStatus();
}

absl::Status SlicePublisher::Reconcile(SlicePlan plan, absl::Duration* wait) {
  int64_t newest = std::max<int64_t>(generation_, 1);
  for (const auto& [name, slice] : on_server_) newest = std::max(newest, slice.pool_generation);

  std::map<std::string, kube::ResourceSlice> obsolete = on_server_;
  std::set<std::string> to_write;
  std::vector<std::string> edited;  // by somebody else
  size_t new_contents = 0;          // of to_write, those that differ in more than taints
  bool at_once = false;             // there is more to do than to undo edits
  bool lost = false;                // somebody deleted what we had written
  for (const kube::ResourceSlice& slice : plan.slices) {
    const auto stored = on_server_.find(slice.name);
    const auto last = written_.find(slice.name);
    const bool wrote_the_same = last != written_.end() && SameContent(slice, last->second.sent);
    // The pool of a slice cannot be changed: one of another pool has to go first.
    if (stored == on_server_.end() || stored->second.pool_name != slice.pool_name) {
      at_once = true;
      lost = lost || last != written_.end();
      to_write.insert(slice.name);
      ++new_contents;
      continue;
    }
    obsolete.erase(slice.name);
    const bool newest_generation = stored->second.pool_generation == newest;
    if (newest_generation &&
        (SameContent(slice, stored->second) ||
         // What a server without some fields made of exactly this slice.
         (wrote_the_same && SameContent(last->second.stored, stored->second)))) {
      edited_since_.erase(slice.name);
      if (!wrote_the_same) written_[slice.name] = {slice, stored->second};  // an earlier run did
      continue;
    }
    to_write.insert(slice.name);
    if (!newest_generation || !SameContentButTaints(slice, stored->second)) ++new_contents;
    if (wrote_the_same) {
      edited.push_back(slice.name);
    } else {
      at_once = true;
    }
  }
  if (to_write.empty() && obsolete.empty()) {
    Report(PublishReport::Event::kCurrent);
    SetReady(absl::OkStatus());
    RetryTaints(wait);
    RetryCounters(wait);
    return absl::OkStatus();
  }

  const absl::Duration now = Monotonic();
  if (!edited.empty() && !at_once) {
    absl::Duration left = absl::InfiniteDuration();
    for (const std::string& name : edited) {
      const absl::Duration since = edited_since_.try_emplace(name, now).first->second;
      left = std::min(left, since + options_.restore_edits_after - now);
    }
    if (left > absl::ZeroDuration()) {
      LogVerbose(2, "somebody edited our ResourceSlices, they will be restored",
                 {{"after", absl::FormatDuration(left)}});
      *wait = std::min(*wait, left);
      return absl::OkStatus();
    }
  }
  if (lost) {
    if (now - last_restore_ >= kCalm) restore_backoff_ = absl::ZeroDuration();
    if (const absl::Duration left = last_restore_ + restore_backoff_ - now;
        left > absl::ZeroDuration()) {
      *wait = std::min(*wait, left);
      return absl::OkStatus();
    }
    last_restore_ = now;
    restore_backoff_ = std::clamp(restore_backoff_ * 2, options_.min_backoff, options_.max_backoff);
    // They may have gone with their owner: a slice of a Node that is not there any more, or not the
    // same, would be collected again at once.
    ASCEND_RETURN_IF_ERROR(RefreshNodeUid());
    for (kube::ResourceSlice& slice : plan.slices) slice.owner_node.uid = node_uid_;
  }

  // One changed slice is replaced atomically, and taints count for each slice alone. Several
  // contents would be seen half changed, unless a new generation makes consumers wait for all of
  // them; but what is new altogether is incomplete anyway until the last slice is there.
  const bool bump = new_contents + obsolete.size() > 1 && !on_server_.empty() &&
                    newest < std::numeric_limits<int64_t>::max();
  generation_ = bump ? newest + 1 : newest;
  ASCEND_RETURN_IF_ERROR(DeleteObsolete(obsolete));
  const bool with_counters = !plan.slices.front().shared_counters.empty();
  for (kube::ResourceSlice& slice : plan.slices) {
    if (!bump && to_write.count(slice.name) == 0) continue;
    slice.pool_generation = generation_;
    const auto stored = on_server_.find(slice.name);
    const bool consumes = std::any_of(slice.devices.begin(), slice.devices.end(),
                                      [](const auto& d) { return !d.consumes_counters.empty(); });
    absl::Status written;
    if (stored == on_server_.end()) {
      written = Store(std::move(slice), nullptr);
    } else {
      const kube::ResourceSlice existing = stored->second;
      written = Store(std::move(slice), &existing);
    }
    if (consumes && absl::IsInvalidArgument(written)) {
      // 1.34 with the feature gate on wants the sets in the same slice.
      CountersRefused(written);
      break;
    }
    ASCEND_RETURN_IF_ERROR(written);
    // Counter sets come first: without them the parts of a chip must not be seen at all.
    if (with_counters && !server_keeps_counters_) break;
  }
  Report(PublishReport::Event::kWritten);
  // A server that dropped fields may need another plan at once; else this finds nothing to do.
  *wait = absl::ZeroDuration();
  return absl::OkStatus();
}

}  // namespace ascend::kubeletplugin
