// Reads the hardware over and over and publishes what changed, however the library behaves; in
// between it answers questions about processes.
#ifndef ASCEND_DRA_VNPU_AGENT_INVENTORY_MONITOR_H_
#define ASCEND_DRA_VNPU_AGENT_INVENTORY_MONITOR_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/time/time.h"
#include "vnpu/agent/inventory_feed.h"
#include "vnpu/agent/inventory_source.h"
#include "vnpu/agent/process_queries.h"

namespace ascend::agent {

// What the feed shows after a read that
//   returned chips             kReady and exactly these chips
//   failed with kNotFound      kMissing   \  with the error's message, and the chips of the last
//   failed otherwise           kFailed     | successful read, their health kUnknown: what is not
//   has not returned in time   kNotResponding / seen is not gone
// A read is never abandoned: the library's state is global to the process, so nothing can be asked
// of it until the call returns. If it does not, only a new process helps: see `on_stuck`. The same
// holds for the calls of a question. A question waits for the end of a read.
class InventoryMonitor {
 public:
  struct Options {
    absl::Duration poll_interval = absl::Seconds(1);   // from start to start of a read
    absl::Duration call_timeout = absl::Seconds(10);   // then the feed says kNotResponding
    absl::Duration stuck_timeout = absl::Seconds(60);  // then on_stuck is called
  };

  // Starts reading at once, on a thread of its own. `on_stuck` runs once for each read that lasts
  // longer than stuck_timeout, on another thread; the program ends itself there. `feed` must
  // outlive the monitor, which is its only publisher.
  InventoryMonitor(std::unique_ptr<InventorySource> source, InventoryFeed* feed,
                   std::shared_ptr<ProcessQueries> queries, Options options,
                   std::function<void(absl::Duration)> on_stuck);
  // Stop() with a grace of a second, unless it was called before.
  ~InventoryMonitor();
  InventoryMonitor(const InventoryMonitor&) = delete;
  InventoryMonitor& operator=(const InventoryMonitor&) = delete;

  // Reads as soon as it can rather than at the next beat. Thread-safe.
  void ReadSoon();

  // Publishes nothing more, and waits up to `grace` for a read in progress. Returns false if it is
  // still inside the library: its thread and the source are then left behind, and the process
  // should end by _exit(), since exit handlers of the library may wait for that call.
  bool Stop(absl::Duration grace);

 private:
  struct State;
  static void ReadLoop(const std::shared_ptr<State>& state);
  static void SuperviseLoop(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;  // shared with a reader that may be left behind
  std::thread reader_;
  std::thread supervisor_;
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_INVENTORY_MONITOR_H_
