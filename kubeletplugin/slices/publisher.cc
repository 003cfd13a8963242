#include "kubeletplugin/slices/publisher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/status_macros.h"
#include "base/runtime/clock.h"
#include "base/runtime/logging.h"
#include "kubeletplugin/slices/limits.h"

namespace ascend::kubeletplugin {
namespace {

// An idle publisher sleeps until it is woken.
constexpr absl::Duration kForever = absl::Hours(24);
// While a role is neither held nor free nobody tells when its holder ends.
constexpr absl::Duration kRolePoll = absl::Milliseconds(250);
constexpr absl::Duration kRoleHandOver = absl::Milliseconds(10);

absl::Duration Monotonic() { return Clock::Real().Monotonic(); }

// A taint's time is the server's unless somebody insists on one.
bool SameTaints(const std::vector<kube::DeviceTaint>& wanted,
                const std::vector<kube::DeviceTaint>& stored) {
  return std::equal(wanted.begin(), wanted.end(), stored.begin(), stored.end(),
                    [](const kube::DeviceTaint& a, const kube::DeviceTaint& b) {
                      return a.key == b.key && a.value == b.value && a.effect == b.effect &&
                             (a.time_added.empty() || a.time_added == b.time_added);
                    });
}

bool SameDevice(const kube::SliceDevice& wanted, const kube::SliceDevice& stored) {
  return wanted.name == stored.name && wanted.attributes == stored.attributes &&
         wanted.capacity == stored.capacity && SameTaints(wanted.taints, stored.taints);
}

// Apart from the pool's generation.
bool SameContent(const kube::ResourceSlice& wanted, const kube::ResourceSlice& stored) {
  return wanted.driver == stored.driver && wanted.node_name == stored.node_name &&
         wanted.pool_name == stored.pool_name &&
         wanted.pool_slice_count == stored.pool_slice_count &&
         std::equal(wanted.devices.begin(), wanted.devices.end(), stored.devices.begin(),
                    stored.devices.end(), SameDevice);
}

// Resource versions of one kind grow; what is no number is taken as newer.
bool IsOlder(const std::string& version, const std::string& than) {
  uint64_t a = 0, b = 0;
  return absl::SimpleAtoi(version, &a) && absl::SimpleAtoi(than, &b) && a < b;
}

void KeepTaintTimes(const kube::ResourceSlice& stored, kube::ResourceSlice* wanted) {
  for (kube::SliceDevice& device : wanted->devices) {
    const auto old = std::find_if(stored.devices.begin(), stored.devices.end(),
                                  [&](const auto& d) { return d.name == device.name; });
    if (old == stored.devices.end()) continue;
    for (kube::DeviceTaint& taint : device.taints) {
      for (const kube::DeviceTaint& known : old->taints) {
        if (taint.key == known.key && taint.value == known.value && taint.effect == known.effect) {
          taint.time_added = known.time_added;
        }
      }
    }
  }
}

}  // namespace

SlicePublisher::SlicePublisher(Options options, kube::Client& client, PublisherRole role,
                               std::function<Wanted()> wanted)
    : options_(std::move(options)),
      client_(client),
      wanted_(std::move(wanted)),
      role_(std::move(role)) {}

SlicePublisher::~SlicePublisher() {
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
  edited_since_.clear();
  resource_version_.clear();
  MutexLock lock(&mutex_);
  events_.clear();
  watch_ended_.reset();
}

absl::Duration SlicePublisher::Step() {
  const absl::StatusOr<bool> role = role_.Update();
  if (!role.ok()) {
    LogError("cannot tell which instance publishes ResourceSlices", {{"error", role.status()}});
    return options_.max_backoff;
  }
  if (!*role) {
    if (had_role_) {
      LogInfo("a newer instance of the driver publishes the ResourceSlices from now on");
      had_role_ = false;
      Forget();
      SetReady(absl::OkStatus());
      return kRolePoll;
    }
    return written_.empty() ? kRoleHandOver : kRolePoll;
  }
  had_role_ = true;

  const Wanted wanted = wanted_();
  absl::Duration wait = wanted.ask_again_after.value_or(kForever);
  absl::Status status = EnsureConnected();
  if (status.ok()) {
    ApplyEvents();
    if (watch_ == nullptr) return absl::ZeroDuration();  // the watch ended: list or continue it
    if (!wanted.known) {
      SetReady(absl::UnavailableError(
          "the chips of this node are not known yet: waiting for ascend-npu-agent"));
      return wait;
    }
    SliceInputs inputs = wanted.inputs;
    inputs.driver = options_.driver;
    inputs.node_name = options_.node_name;
    inputs.node_uid = node_uid_;
    inputs.server_keeps_taints = server_keeps_taints_;
    SlicePlan plan = BuildSlices(inputs);
    if (plan.problems != last_problems_) {
      last_problems_ = plan.problems;
      for (const std::string& problem : plan.problems) {
        LogError("a device cannot be published", {{"error", problem}});
      }
    }
    status = Reconcile(std::move(plan), &wait);
  }
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
  backoff_ = std::clamp(backoff_ * 2, options_.min_backoff, options_.max_backoff);
  return std::max(backoff_, kube::RetryAfter(status).value_or(absl::ZeroDuration()));
}

absl::Status SlicePublisher::EnsureConnected() {
  if (node_uid_.empty()) {
    ASCEND_ASSIGN_OR_RETURN(const kube::Node node,
                            client_.GetNode(options_.node_name, options_.request_timeout));
    node_uid_ = node.uid;
  }
  if (watch_ != nullptr) return absl::OkStatus();
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
  return absl::OkStatus();
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
    const auto known = on_server_.find(event.slice.name);
    // An event from before our own last write tells nothing new.
    if (known != on_server_.end() &&
        IsOlder(event.slice.resource_version, known->second.resource_version)) {
      continue;
    }
    if (event.type == kube::SliceEvent::Type::kDeleted) {
      on_server_.erase(event.slice.name);
    } else {
      on_server_[event.slice.name] = std::move(event.slice);
    }
  }
  if (!ended) return;
  watch_.reset();
  // Without an error the server's time-out ended it, and the last version seen is good. All else:
  // events may be missing, list again.
  if (!ended->ok()) Forget();
}

void SlicePublisher::NoticeDroppedFields(const kube::ResourceSlice& sent,
                                         const kube::ResourceSlice& stored) {
  if (SameContent(sent, stored)) return;
  bool taints = false;
  std::vector<std::string> fields;
  for (const kube::SliceDevice& device : sent.devices) {
    const auto kept = std::find_if(stored.devices.begin(), stored.devices.end(),
                                   [&](const auto& d) { return d.name == device.name; });
    if (kept == stored.devices.end()) continue;
    if (!SameTaints(device.taints, kept->taints)) taints = true;
    for (const auto& [name, value] : device.attributes) {
      if (kept->attributes.count(name) == 0) fields.push_back(absl::StrCat("attribute ", name));
    }
    for (const auto& [name, value] : device.capacity) {
      if (kept->capacity.count(name) == 0) fields.push_back(absl::StrCat("capacity ", name));
    }
  }
  if (taints) fields.push_back("taints (feature gate DRADeviceTaints)");
  if (!dropped_fields_named_ && !fields.empty()) {
    std::sort(fields.begin(), fields.end());
    fields.erase(std::unique(fields.begin(), fields.end()), fields.end());
    LogWarning("the API server does not store all fields of our ResourceSlices",
               {{"dropped", absl::StrJoin(fields, ", ")},
                {"effect", taints ? "unhealthy chips are withheld instead of tainted"
                                  : "selectors on them do not match"}});
    dropped_fields_named_ = true;
  }
  if (taints) server_keeps_taints_ = false;
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
  written_[slice.name] = {std::move(slice), *std::move(stored)};
  return absl::OkStatus();
}

absl::Status SlicePublisher::Reconcile(SlicePlan plan, absl::Duration* wait) {
  int64_t newest = generation_;
  for (const auto& [name, slice] : on_server_) newest = std::max(newest, slice.pool_generation);
  newest = std::max<int64_t>(newest, 1);

  std::map<std::string, kube::ResourceSlice> obsolete = on_server_;
  size_t changes = 0;
  bool waits_for_edit = false;
  bool ours_changed = false;  // because of us, not because somebody touched the server's copy
  for (const kube::ResourceSlice& slice : plan.slices) {
    obsolete.erase(slice.name);
    const auto stored = on_server_.find(slice.name);
    const auto last = written_.find(slice.name);
    const bool wrote_the_same = last != written_.end() && SameContent(slice, last->second.sent);
    if (!wrote_the_same) ours_changed = true;
    if (stored == on_server_.end()) {
      ++changes;
      ours_changed = true;  // deleted, or never there: at once
      continue;
    }
    const bool as_wanted = stored->second.pool_generation == newest &&
                           (SameContent(slice, stored->second) ||
                            // What a server without some fields made of exactly this slice.
                            (wrote_the_same && SameContent(last->second.stored, stored->second)));
    if (as_wanted) {
      edited_since_.erase(slice.name);
      continue;
    }
    ++changes;
    if (wrote_the_same) waits_for_edit = true;
  }
  changes += obsolete.size();
  if (changes == 0) {
    SetReady(absl::OkStatus());
    return absl::OkStatus();
  }
  if (waits_for_edit && !ours_changed) {
    const absl::Duration now = Monotonic();
    absl::Duration left = absl::ZeroDuration();
    for (const kube::ResourceSlice& slice : plan.slices) {
      const absl::Duration since = edited_since_.try_emplace(slice.name, now).first->second;
      left = std::max(left, since + options_.restore_edits_after - now);
    }
    if (left > absl::ZeroDuration()) {
      LogVerbose(2, "somebody edited our ResourceSlices, they will be restored",
                 {{"after", absl::FormatDuration(left)}});
      *wait = std::min(*wait, left);
      return absl::OkStatus();
    }
  }

  // One changed slice is replaced atomically. Several would be seen half changed, unless a new
  // generation makes consumers wait for all of them.
  generation_ = changes > 1 && !on_server_.empty() ? newest + 1 : newest;
  for (const auto& [name, slice] : obsolete) {
    const absl::Status deleted =
        client_.DeleteResourceSlice(name, slice.uid, options_.request_timeout);
    if (!deleted.ok() && !absl::IsNotFound(deleted)) return deleted;
    LogInfo("deleted obsolete ResourceSlice", {{"slice", name}});
    on_server_.erase(name);
    written_.erase(name);
  }
  for (kube::ResourceSlice& slice : plan.slices) {
    slice.pool_generation = generation_;
    const auto stored = on_server_.find(slice.name);
    if (stored == on_server_.end()) {
      ASCEND_RETURN_IF_ERROR(Store(slice, nullptr));
    } else if (stored->second.pool_generation != generation_ ||
               !SameContent(slice, stored->second)) {
      const kube::ResourceSlice existing = stored->second;
      ASCEND_RETURN_IF_ERROR(Store(slice, &existing));
    }
  }
  // A server that dropped fields may need another plan at once; else this finds nothing to do.
  *wait = absl::ZeroDuration();
  return absl::OkStatus();
}

}  // namespace ascend::kubeletplugin
