// The faults of a node's chips over time: made of the library's lists, which decide, and of its
// events, which are quick and see what came and went between two lists, but get lost.
#ifndef ASCEND_DRA_VNPU_AGENT_FAULT_LOG_H_
#define ASCEND_DRA_VNPU_AGENT_FAULT_LOG_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "base/runtime/clock.h"
#include "vnpu/chip.h"
#include "vnpu/dcmi/dcmi.h"

namespace ascend::agent {

// Thread-safe. One occurrence of a fault may be told by a list, by an event, or by both in any
// order: it counts once. Counts never fall while this lives.
class FaultLog {
 public:
  static constexpr size_t kMostFaults = 128;  // of a chip
  static constexpr absl::Duration kKept = absl::Hours(1);
  // An event that comes within this time after a list is taken for the same occurrence.
  static constexpr absl::Duration kSame = absl::Seconds(10);

  explicit FaultLog(const Clock& clock = Clock::Real()) : clock_(clock) {}
  FaultLog(const FaultLog&) = delete;
  FaultLog& operator=(const FaultLog&) = delete;

  // Runs after each event that Note() takes, on the library's thread. It must return quickly and
  // must not call this. Waits for a running call of the one before; null = none.
  void SetListener(std::function<void()> listener);

  // A look at the hardware begins: what events tell from now on is newer than its lists.
  uint64_t BeginLook();
  // Takes what a look that began at `began` listed for `chip`, whose faults are then as
  // Chip::faults says. Nothing if they are nullopt.
  void Merge(uint64_t began, vnpu::Chip& chip);
  // The same for a chip that the look did not ask: only events tell something new.
  void Refresh(vnpu::Chip& chip);
  // These chips are there, by the logic ids that they have now. A chip that took another one's
  // place begins anew; of one that is away the counts are kept.
  void SetChips(const std::vector<vnpu::Chip>& chips);

  // False, and nothing happens, if there is no chip of this logic id, or if it was told before.
  bool Note(const dcmi::FaultEvent& event);

 private:
  enum class Source { kNone, kList, kEvent };
  struct Entry {
    bool active = false;
    uint64_t occurrences = 0;
    vnpu::FaultSeverity severity = vnpu::FaultSeverity::kUnknown;
    std::string text;
    absl::Duration last_occurrence;
    Source told_by = Source::kNone;  // who alone has told of its last occurrence by now
    uint64_t last_event = 0;         // its place among looks and events
    std::deque<int> serials;         // of the last events about it
    bool shown = false;              // false: kept for its count alone
  };
  struct ChipLog {
    std::string uuid;
    int logic_id = -1;                  // -1: it is away
    std::map<uint64_t, Entry> entries;  // by code
  };

  static void Occurred(Entry& entry, absl::Duration now);
  static void Prune(ChipLog& log, absl::Duration now);
  static void Show(ChipLog& log, absl::Duration now, vnpu::Chip& chip);
  ChipLog& LogOf(const vnpu::Chip& chip) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Take(const dcmi::FaultEvent& event);

  const Clock& clock_;
  Mutex mutex_;
  uint64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;         // counts looks and events
  std::map<int, ChipLog> chips_ ABSL_GUARDED_BY(mutex_);  // by physical id

  // Held while the listener runs, so that SetListener can wait for it.
  Mutex listener_mutex_;
  std::function<void()> listener_ ABSL_GUARDED_BY(listener_mutex_);
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_FAULT_LOG_H_
