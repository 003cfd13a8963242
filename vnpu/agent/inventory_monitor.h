// Reads the hardware over and over and publishes what changed, however the library behaves; in
// between it answers questions about processes.
#ifndef ASCEND_DRA_VNPU_AGENT_INVENTORY_MONITOR_H_
#define ASCEND_DRA_VNPU_AGENT_INVENTORY_MONITOR_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/time/time.h"
#include "vnpu/agent/alarm.h"
#include "vnpu/agent/inventory_feed.h"
#include "vnpu/agent/inventory_source.h"
#include "vnpu/agent/process_queries.h"

namespace ascend::agent {

// What the feed shows after a look that
//   returned chips             kReady and exactly these chips
//   failed with kNotFound      kMissing   \  with the error's message, and the chips of the last
//   failed otherwise           kFailed     | successful look, their health kUnknown: what is not
//   has not begun in time      kNotResponding / seen is not gone
// A call about the node is never abandoned: if it does not return, only a new process helps, see
// `on_stuck`. A step of a look, or a question, that does not return concerns one chip: after
// `patience` its thread is left to it and another one goes on with the rest. What becomes of that
// chip is the source's to say; when the call returns, its result is dropped, and the next look
// begins soon. Questions are answered between looks.
class InventoryMonitor {
 public:
  struct Options {
    absl::Duration poll_interval = absl::Seconds(1);   // from start to start of a look
    absl::Duration call_timeout = absl::Seconds(10);   // then the feed says kNotResponding
    absl::Duration stuck_timeout = absl::Seconds(60);  // then on_stuck is called
    absl::Duration patience = absl::Seconds(1);        // with a call about one chip
  };

  // Starts reading at once, on a thread of its own. `on_stuck` runs once for each call about the
  // node that lasts longer than stuck_timeout, on another thread; the program ends itself there.
  // `feed` must outlive the monitor, which is its only publisher.
  InventoryMonitor(std::unique_ptr<InventorySource> source, InventoryFeed* feed,
                   std::shared_ptr<ProcessQueries> queries, Options options,
                   std::function<void(absl::Duration)> on_stuck);
  // Stop() with a grace of a second, unless it was called before.
  ~InventoryMonitor();
  InventoryMonitor(const InventoryMonitor&) = delete;
  InventoryMonitor& operator=(const InventoryMonitor&) = delete;

  // Looks as soon as it can rather than at the next beat, but not before `rest` has passed since
  // the last look began. Thread-safe.
  void ReadSoon(absl::Duration rest = absl::ZeroDuration());

  // Publishes nothing more, and waits up to `grace` for calls in progress. Returns false if one is
  // still inside the library: its thread and the source are then left behind, and the process
  // should end by _exit(), since exit handlers of the library may wait for that call.
  bool Stop(absl::Duration grace);

 private:
  struct State;
  static void Relieve(const std::shared_ptr<State>& state);
  static void ReadLoop(const std::shared_ptr<State>& state, int reader);
  static void SuperviseLoop(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;  // shared with readers that may be left behind
  std::unique_ptr<Alarm> alarm_;
  std::thread supervisor_;
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_INVENTORY_MONITOR_H_
