#include "kubeletplugin/health/health_monitor.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/runtime/clock.h"
#include "base/runtime/logging.h"

namespace ascend::kubeletplugin {
namespace {

// The policy's times are the wall clock's, which may be set: not slept on for longer than this.
constexpr absl::Duration kLongestSleep = absl::Minutes(1);

// How the policy names the chip that an order means.
std::string PolicyName(const ChipOrder& order) {
  return order.uuid.empty() ? absl::StrCat(order.physical_id) : order.uuid;
}

}  // namespace

HealthMonitor::HealthMonitor(Options options, Ask ask, OnChange on_change, OnLook on_look)
    : options_(std::move(options)),
      ask_(std::move(ask)),
      on_change_(std::move(on_change)),
      on_look_(std::move(on_look)),
      current_(std::make_shared<const ChipVerdicts>()),
      policy_(options_.table, options_.boot_id) {
  Restore();
  Look();
  {
    MutexLock lock(&mutex_);
    wake_ = true;
  }
  thread_ = std::thread([this] { Run(); });
}

HealthMonitor::~HealthMonitor() { Stop(); }

void HealthMonitor::Stop() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void HealthMonitor::Wake() {
  MutexLock lock(&mutex_);
  wake_ = true;
  changed_.SignalAll();
}

void HealthMonitor::Refresh() {
  MutexLock lock(&mutex_);
  const int64_t wanted = looks_begun_ + 1;  // the one under way may have asked before
  wake_ = true;
  changed_.SignalAll();
  while (!stop_ && looks_done_ < wanted) changed_.Wait(&mutex_);
}

std::shared_ptr<const ChipVerdicts> HealthMonitor::WithCauses() const {
  MutexLock lock(&mutex_);
  return with_causes_;
}

std::shared_ptr<const ChipVerdicts> HealthMonitor::Current() const {
  MutexLock lock(&mutex_);
  return current_;
}

std::shared_ptr<const vnpu::Inventory> HealthMonitor::judged() const {
  MutexLock lock(&mutex_);
  return judged_;
}

void HealthMonitor::Restore() {
  absl::StatusOr<HealthFile> file = ReadHealthFile(options_.file);
  absl::Status status = file.status();
  if (file.ok()) {
    status = policy_.Restore(file->policy);
    if (status.ok()) {
      saved_ = file->policy;
      told_ = std::move(file->verdicts);
      orders_done_ = std::move(file->orders_done);
      remembers_ = !told_.empty();
      return;
    }
  }
  if (absl::IsNotFound(status)) return;
  const std::string aside = absl::StrCat(options_.file, ".damaged");
  std::rename(options_.file.c_str(), aside.c_str());
  LogError(
      "what was known of the chips' health is lost: isolation by frequency and counts of "
      "faults begin anew, isolation by hand stays",
      {{"error", status}, {"path", aside}});
}

void HealthMonitor::Run() {
  absl::Duration sleep = absl::ZeroDuration();
  std::shared_ptr<const vnpu::Inventory> looked;
  while (true) {
    {
      MutexLock lock(&mutex_);
      const absl::Duration end = Clock::Real().Monotonic() + sleep;
      while (!stop_ && !wake_) {
        const absl::Duration left = end - Clock::Real().Monotonic();
        if (left <= absl::ZeroDuration()) break;
        changed_.WaitFor(&mutex_, left);
      }
      if (stop_) return;
      wake_ = false;
      ++looks_begun_;
    }
    sleep = Look();
    {
      MutexLock lock(&mutex_);
      looks_done_ = looks_begun_;
      changed_.SignalAll();
    }
    const std::shared_ptr<const ChipVerdicts> now = Current();
    if (told_ != *now) {
      const ChipVerdicts before = std::exchange(told_, *now);
      on_change_(before, *now);
    }
    const std::shared_ptr<const vnpu::Inventory> inventory = judged();
    if (std::exchange(looked, inventory) != inventory && on_look_) on_look_(*inventory);
  }
}

absl::Duration HealthMonitor::Look() {
  Input input = ask_();
  if (input.inventory == nullptr && !remembers_) input.inventory = options_.last_inventory;
  const absl::Time now = Clock::Real().Now();
  policy_.Update(input.inventory.get(), input.agent_known, now);
  const bool ordered = CarryOutOrders(now);
  if (ordered) policy_.Update(input.inventory.get(), input.agent_known, now);
  if (input.inventory != nullptr) remembers_ = true;
  // Causes come and go while the chip stays as it is: nothing to tell anybody of.
  ChipVerdicts verdicts = policy_.verdicts();
  for (auto& [id, verdict] : verdicts) verdict.causes.clear();
  {
    MutexLock lock(&mutex_);
    with_causes_ = std::make_shared<const ChipVerdicts>(policy_.verdicts());
    if (*current_ != verdicts) current_ = std::make_shared<const ChipVerdicts>(verdicts);
    judged_ = input.inventory;
  }
  Save(verdicts, ordered);
  return std::min(
      {policy_.next_change() - now, input.ask_again_after.value_or(kLongestSleep), kLongestSleep});
}

bool HealthMonitor::CarryOutOrders(absl::Time now) {
  const absl::StatusOr<ChipOrders> orders = ReadChipOrders(options_.orders_directory);
  std::vector<std::string> problems;
  bool changed = false;
  if (orders.ok()) {
    problems = orders->problems;
    for (const ChipOrder& order : orders->orders) changed |= CarryOut(order, now);
  } else {
    problems.push_back(std::string(orders.status().message()));
  }
  const std::string text = absl::StrJoin(problems, "; ");
  if (text != logged_problems_ && !text.empty()) {
    LogWarning("orders about chips cannot be carried out", {{"error", text}});
  }
  logged_problems_ = text;
  return changed;
}

bool HealthMonitor::CarryOut(const ChipOrder& order, absl::Time now) {
  const auto done = orders_done_.find(order.physical_id);
  if (done != orders_done_.end() && done->second == order.at) return false;
  const auto chip = policy_.verdicts().find(order.physical_id);
  // Of a chip that is not here (any more): it waits.
  if (chip == policy_.verdicts().end()) return false;
  if (!order.uuid.empty() && order.uuid != chip->second.uuid) return false;
  const bool isolate = order.action == ChipOrder::Action::kIsolate;
  const absl::Status status = isolate ? policy_.Isolate(PolicyName(order), order.reason, now)
                                      : policy_.Release(PolicyName(order), now);
  orders_done_[order.physical_id] = order.at;
  if (status.ok()) {
    LogInfo(isolate ? "a chip is isolated by order" : "a chip's isolation ends by order",
            {{"chip", order.physical_id}, {"reason", order.reason}});
  } else {
    LogWarning("an order about a chip fails", {{"chip", order.physical_id}, {"error", status}});
  }
  return true;
}

void HealthMonitor::Save(const ChipVerdicts& verdicts, bool ordered) {
  std::string memory = policy_.Save();
  if (memory == saved_ && told_ == verdicts && !ordered) return;
  const absl::Status written = WriteHealthFile(
      options_.file, {.policy = memory, .verdicts = verdicts, .orders_done = orders_done_});
  if (written.ok()) {
    saved_ = std::move(memory);
  } else if (written != save_error_) {
    LogError(
        "the chips' health cannot be saved: a restart now would forget what is isolated and "
        "which faults came too often",
        {{"error", written}});
  }
  save_error_ = written;
}

}  // namespace ascend::kubeletplugin
