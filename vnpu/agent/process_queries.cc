#include "vnpu/agent/process_queries.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/core/file.h"

namespace ascend::agent {
namespace {

vnpu::ChipProcesses Unknown(int physical_id, absl::string_view why) {
  return {.physical_id = physical_id, .error = std::string(why)};
}

std::string NameOf(const std::string& proc, int pid) {
  if (pid <= 0) return "";
  const absl::StatusOr<std::string> comm = ReadFile(JoinPath(proc, absl::StrCat(pid, "/comm")));
  if (!comm.ok()) return "";
  std::string name(absl::StripAsciiWhitespace(*comm));
  // Any process may call itself anything; a message takes only valid UTF-8, a log only one line.
  std::replace_if(name.begin(), name.end(), [](char c) { return !absl::ascii_isprint(c); }, '?');
  return name;
}

}  // namespace

ProcessQuery::ProcessQuery(std::vector<int> physical_ids, Done done)
    : physical_ids_(std::move(physical_ids)), done_(std::move(done)) {}

bool ProcessQuery::ended() const {
  MutexLock lock(&mutex_);
  return done_ == nullptr;
}

std::optional<int> ProcessQuery::NextChip() {
  MutexLock lock(&mutex_);
  if (done_ == nullptr || next_ == physical_ids_.size()) return std::nullopt;
  return physical_ids_[next_++];
}

void ProcessQuery::Asking(int physical_id) {
  MutexLock lock(&mutex_);
  asked_.push_back(physical_id);
}

void ProcessQuery::Answer(vnpu::ChipProcesses answer) {
  std::map<int, vnpu::ChipProcesses> answers;
  Done done;
  {
    MutexLock lock(&mutex_);
    if (done_ == nullptr) return;
    const int physical_id = answer.physical_id;
    answers_.insert_or_assign(physical_id, std::move(answer));
    const bool complete = std::all_of(
        physical_ids_.begin(), physical_ids_.end(),
        [&](int id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return answers_.count(id) != 0; });
    if (!complete) return;
    answers = std::move(answers_);
    done = std::exchange(done_, nullptr);
  }
  End(std::move(answers), done);
}

void ProcessQuery::Expire(absl::string_view reason) {
  std::map<int, vnpu::ChipProcesses> answers;
  Done done;
  {
    MutexLock lock(&mutex_);
    if (done_ == nullptr) return;
    answers = std::move(answers_);
    done = std::exchange(done_, nullptr);
    for (const int id : physical_ids_) {
      if (asked_.empty()) {
        answers.try_emplace(id, Unknown(id, reason));
      } else if (std::find(asked_.begin(), asked_.end(), id) != asked_.end()) {
        answers.try_emplace(
            id, Unknown(id, "libdcmi did not answer in time; check the chip with npu-smi info"));
      } else {
        // One chip is asked after the other.
        answers.try_emplace(id, Unknown(id, absl::StrCat("libdcmi did not answer in time about "
                                                         "chip ",
                                                         asked_.back(),
                                                         ", so it was not asked about "
                                                         "this one")));
      }
    }
  }
  End(std::move(answers), done);
}

void ProcessQuery::End(std::map<int, vnpu::ChipProcesses> answers, const Done& done) const {
  std::vector<vnpu::ChipProcesses> in_order;
  in_order.reserve(physical_ids_.size());
  for (const int id : physical_ids_) in_order.push_back(answers[id]);
  done(std::move(in_order));
}

void ProcessQueries::Ask(std::shared_ptr<ProcessQuery> query) {
  std::optional<std::string> closed;
  {
    MutexLock lock(&mutex_);
    closed = closed_;
    if (!closed) waiting_.push_back(query);
  }
  if (closed) {
    query->Expire(*closed);
    return;
  }
  MutexLock lock(&listener_mutex_);
  if (listener_ != nullptr) listener_();
}

void ProcessQueries::Close(absl::string_view reason) {
  std::deque<std::shared_ptr<ProcessQuery>> open;
  {
    MutexLock lock(&mutex_);
    closed_ = std::string(reason);
    open.swap(waiting_);
    if (std::shared_ptr<ProcessQuery> serving = serving_.lock()) open.push_back(serving);
  }
  for (const std::shared_ptr<ProcessQuery>& query : open) query->Expire(reason);
}

void ProcessQueries::SetListener(std::function<void()> listener) {
  MutexLock lock(&listener_mutex_);
  listener_ = std::move(listener);
}

std::shared_ptr<ProcessQuery> ProcessQueries::Next() {
  MutexLock lock(&mutex_);
  while (!waiting_.empty()) {
    std::shared_ptr<ProcessQuery> query = std::move(waiting_.front());
    waiting_.pop_front();
    if (query->ended()) continue;
    serving_ = query;
    return query;
  }
  return nullptr;
}

bool ProcessQueries::ServeNext(ProcessQuery& query, InventorySource& source,
                               const vnpu::Inventory& inventory) const {
  const std::optional<int> next = query.NextChip();
  if (!next.has_value()) return false;
  const int id = *next;
  const auto chip = std::find_if(inventory.chips.begin(), inventory.chips.end(),
                                 [id](const auto& c) { return c.physical_id == id; });
  if (inventory.library != vnpu::LibraryState::kReady) {
    query.Answer(Unknown(id, inventory.library_message));
    return true;
  }
  if (chip == inventory.chips.end()) {
    query.Answer(Unknown(id, absl::StrCat("this node has no chip with physical id ", id)));
    return true;
  }
  query.Asking(id);
  const absl::StatusOr<std::vector<dcmi::ChipProcess>> processes = source.Processes(*chip);
  if (!processes.ok()) {
    query.Answer(Unknown(id, processes.status().message()));
    return true;
  }
  vnpu::ChipProcesses answer = {.physical_id = id, .known = true};
  for (const dcmi::ChipProcess& process : *processes) {
    answer.processes.push_back({.pid = process.pid,
                                .name = NameOf(proc_, process.pid),
                                .memory_bytes = process.memory_bytes});
  }
  query.Answer(std::move(answer));
  return true;
}

}  // namespace ascend::agent
