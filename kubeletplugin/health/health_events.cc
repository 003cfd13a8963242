#include "kubeletplugin/health/health_events.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/runtime/clock.h"
#include "base/runtime/logging.h"

namespace ascend::kubeletplugin {
namespace {

constexpr absl::Duration kRequestTimeout = absl::Seconds(10);
constexpr absl::Duration kRetry = absl::Seconds(5);

constexpr char kUnhealthy[] = "NpuUnhealthy";
constexpr char kDegraded[] = "NpuDegraded";
constexpr char kUnknown[] = "NpuHealthUnknown";
constexpr char kHealthy[] = "NpuHealthy";

// What a verdict is called towards people.
const char* ReasonOf(const vnpu::Verdict& verdict) {
  if (verdict.state == vnpu::HealthState::kUnknown) return kUnknown;
  if (verdict.state == vnpu::HealthState::kUnhealthy ||
      verdict.effect != vnpu::TaintEffect::kNone) {
    return kUnhealthy;
  }
  return verdict.level > vnpu::HealthLevel::kNotHandleFault ? kDegraded : kHealthy;
}

std::string Consequence(vnpu::TaintEffect effect) {
  switch (effect) {
    case vnpu::TaintEffect::kNoExecute:
      return "; no new pods get it, and pods that do not tolerate this are evicted";
    case vnpu::TaintEffect::kNoSchedule:
      return "; no new pods get it";
    case vnpu::TaintEffect::kNone:
      break;
  }
  return "";
}

std::string MessageOf(const vnpu::Verdict& verdict) {
  if (ReasonOf(verdict) == kHealthy) {
    // With the time: once more is other news.
    return absl::StrCat("healthy again since ",
                        absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", verdict.since, absl::UTCTimeZone()));
  }
  return absl::StrCat(verdict.message, Consequence(verdict.effect));
}

std::string ChipsText(const std::vector<int>& chips) {
  return absl::StrCat(chips.size() == 1 ? "NPU chip " : "NPU chips ", absl::StrJoin(chips, ", "));
}

bool Uses(const RecordedDevice& device, const std::vector<int>& chips) {
  return std::any_of(device.chips.begin(), device.chips.end(), [&](const RecordedChip& chip) {
    return std::find(chips.begin(), chips.end(), chip.physical_id) != chips.end();
  });
}

}  // namespace

std::vector<HealthNews> NewsOf(const ChipVerdicts& before, const ChipVerdicts& now) {
  std::map<std::tuple<std::string, std::string>, HealthNews> news;
  for (const auto& [id, verdict] : now) {
    const auto known = before.find(id);
    const vnpu::Verdict last = known == before.end() ? vnpu::Verdict() : known->second;
    const char* const reason = ReasonOf(verdict);
    // The causes of a bad chip may change without making it another one.
    if (reason == ReasonOf(last) && verdict.level == last.level && verdict.effect == last.effect) {
      continue;
    }
    if (reason == kHealthy && ReasonOf(last) == kHealthy) continue;
    const std::string message = MessageOf(verdict);
    HealthNews& entry = news[{reason, message}];
    entry.chips.push_back(id);
    entry.warning = reason != kHealthy;
    entry.reason = reason;
    entry.message = message;
  }
  std::vector<HealthNews> result;
  for (auto& [key, entry] : news) result.push_back(std::move(entry));
  return result;
}

HealthEvents::HealthEvents(RecordStore& records, kube::Client& client, kube::EventRecorder& events)
    : records_(records), client_(client), events_(events), thread_([this] { Run(); }) {}

HealthEvents::~HealthEvents() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void HealthEvents::Changed(const ChipVerdicts& before, const ChipVerdicts& now) {
  const std::vector<HealthNews> all = NewsOf(before, now);
  if (all.empty()) return;
  const absl::StatusOr<RecordStore::Contents> contents = records_.ReadAll();
  if (!contents.ok()) {
    LogWarning("the pods of sick chips are not told: claim records cannot be read",
               {{"error", contents.status()}});
  }
  for (const HealthNews& news : all) {
    const std::string message = absl::StrCat(ChipsText(news.chips), ": ", news.message);
    if (news.warning) {
      LogWarning("health of a chip changed", {{"chip", absl::StrJoin(news.chips, ",")},
                                              {"reason", news.reason},
                                              {"message", news.message}});
    } else {
      LogInfo("health of a chip changed", {{"chip", absl::StrJoin(news.chips, ",")},
                                           {"reason", news.reason},
                                           {"message", news.message}});
    }
    events_.Post({.regarding = events_.node(),
                  .reason = news.reason,
                  .message = message,
                  .warning = news.warning});
    // That the driver lost sight of a chip is nothing that a pod's user can act on.
    if (!contents.ok() || news.reason == kUnknown) continue;
    MutexLock lock(&mutex_);
    for (const auto& record : contents->records) {
      for (const RecordedDevice& device : record->devices) {
        if (!Uses(device, news.chips)) continue;
        waiting_[{record->claim_uid, device.device}] = {
            .regarding = {},
            .reason = news.reason,
            .message = absl::StrCat("device ", device.device, " of claim ", record->claim(), ": ",
                                    news.message),
            .warning = news.warning};
      }
    }
    changed_.SignalAll();
  }
}

void HealthEvents::Versions(const vnpu::Inventory& inventory) {
  if (inventory.version_problem == version_problem_) return;
  version_problem_ = inventory.version_problem;
  if (version_problem_.empty()) return;
  LogWarning("versions on the node do not fit together", {{"error", version_problem_}});
  events_.Post({.regarding = events_.node(),
                .reason = "DriverVersionMismatch",
                .message = version_problem_});
}

void HealthEvents::Run() {
  bool retry = false;
  MutexLock lock(&mutex_);
  while (true) {
    if (retry) {
      const absl::Duration end = Clock::Real().Monotonic() + kRetry;
      for (absl::Duration left = kRetry; !stop_ && left > absl::ZeroDuration();
           left = end - Clock::Real().Monotonic()) {
        changed_.WaitFor(&mutex_, left);
      }
    }
    while (!stop_ && waiting_.empty()) changed_.Wait(&mutex_);
    if (stop_) return;
    retry = false;
    auto news = std::exchange(waiting_, {});
    mutex_.Unlock();
    for (auto entry = news.begin(); entry != news.end();) {
      entry = TellPods(entry->first.first, entry->second) ? news.erase(entry) : std::next(entry);
    }
    mutex_.Lock();
    retry = !news.empty();
    waiting_.merge(news);  // what came meanwhile is newer
  }
}

bool HealthEvents::TellPods(const std::string& claim_uid, const kube::Event& event) {
  const absl::StatusOr<std::shared_ptr<const ClaimRecord>> record = records_.Read(claim_uid);
  if (!record.ok() || *record == nullptr) return true;  // released meanwhile
  // The claim knows the UIDs of its pods, without which `kubectl describe` shows no Event.
  const absl::StatusOr<kube::ResourceClaim> claim =
      client_.GetResourceClaim((*record)->claim_namespace, (*record)->claim_name, kRequestTimeout);
  if (absl::IsUnavailable(claim.status()) || absl::IsDeadlineExceeded(claim.status())) return false;
  if (!claim.ok()) {
    if (!absl::IsNotFound(claim.status()) && !absl::IsCancelled(claim.status())) {
      LogWarning("the pods of a sick chip are not told",
                 {{"claim", (*record)->claim()}, {"error", claim.status()}});
    }
    return true;
  }
  if (claim->uid != claim_uid) return true;
  for (const kube::ClaimConsumer& consumer : claim->reserved_for) {
    if (consumer.resource != "pods") continue;
    kube::Event of_pod = event;
    of_pod.regarding = kube::PodObject((*record)->claim_namespace, consumer.name, consumer.uid);
    events_.Post(std::move(of_pod));
  }
  return true;
}

}  // namespace ascend::kubeletplugin
