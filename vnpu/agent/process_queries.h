// Questions about the processes on chips, on their way from the calls that ask to the thread that
// reads the chips.
#ifndef ASCEND_DRA_VNPU_AGENT_PROCESS_QUERIES_H_
#define ASCEND_DRA_VNPU_AGENT_PROCESS_QUERIES_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/core/mutex.h"
#include "vnpu/agent/inventory_source.h"
#include "vnpu/chip.h"

namespace ascend::agent {

// One question. Thread-safe. It ends once: with the last answer, or before that by Expire().
class ProcessQuery {
 public:
  using Done = std::function<void(std::vector<vnpu::ChipProcesses>)>;
  // `done` runs once, on the thread that ends the query, with one entry per id in the order given.
  ProcessQuery(std::vector<int> physical_ids, Done done);
  ProcessQuery(const ProcessQuery&) = delete;
  ProcessQuery& operator=(const ProcessQuery&) = delete;

  const std::vector<int>& physical_ids() const { return physical_ids_; }
  bool ended() const;
  // Each chip once, in order; nothing more once it has ended.
  std::optional<int> NextChip();
  // The library is about to be asked about this chip.
  void Asking(int physical_id);
  void Answer(vnpu::ChipProcesses answer);
  // Ends it with what there is; the rest is unknown. `reason` is for a query that has not had its
  // turn yet.
  void Expire(absl::string_view reason);

 private:
  void End(std::map<int, vnpu::ChipProcesses> answers, const Done& done) const;

  const std::vector<int> physical_ids_;
  mutable Mutex mutex_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<int> asked_ ABSL_GUARDED_BY(mutex_);  // the library, whether it answered or not
  std::map<int, vnpu::ChipProcesses> answers_ ABSL_GUARDED_BY(mutex_);
  Done done_ ABSL_GUARDED_BY(mutex_);  // null once ended
};

// Thread-safe.
class ProcessQueries {
 public:
  // `proc` is where the names of processes are looked up.
  explicit ProcessQueries(std::string proc = "/proc") : proc_(std::move(proc)) {}
  ProcessQueries(const ProcessQueries&) = delete;
  ProcessQueries& operator=(const ProcessQueries&) = delete;

  // The caller sets the time limit: it expires the query.
  void Ask(std::shared_ptr<ProcessQuery> query);
  // Expires every query with this reason, and at once those that still come.
  void Close(absl::string_view reason);

  // For the library's threads. `listener` runs after each Ask(), on the asking thread; it must
  // return quickly and must not call SetListener. Waits for a running call of the one before; null
  // = none.
  void SetListener(std::function<void()> listener);
  // The oldest query that has not ended; null if there is none.
  std::shared_ptr<ProcessQuery> Next();
  // Answers about one chip more, from the library. False: there was none left to begin with, or the
  // query has ended. If it does not return, another thread may go on with the rest. `inventory` is
  // the newest.
  bool ServeNext(ProcessQuery& query, InventorySource& source,
                 const vnpu::Inventory& inventory) const;

 private:
  const std::string proc_;
  Mutex mutex_;
  std::deque<std::shared_ptr<ProcessQuery>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::weak_ptr<ProcessQuery> serving_ ABSL_GUARDED_BY(mutex_);  // the last that Next() gave
  std::optional<std::string> closed_ ABSL_GUARDED_BY(mutex_);

  // Held while the listener runs, so that SetListener can wait for it.
  Mutex listener_mutex_;
  std::function<void()> listener_ ABSL_GUARDED_BY(listener_mutex_);
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_PROCESS_QUERIES_H_
