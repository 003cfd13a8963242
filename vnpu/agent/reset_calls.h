// Resets on their way from those who ask to the threads that carry them out: one thread per call,
// so that the minutes that chips take to start again, and a reset that hangs, concern these chips
// alone.
#ifndef ASCEND_DRA_VNPU_AGENT_RESET_CALLS_H_
#define ASCEND_DRA_VNPU_AGENT_RESET_CALLS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "vnpu/agent/chip_turns.h"
#include "vnpu/agent/client.h"
#include "vnpu/agent/inventory_feed.h"
#include "vnpu/dcmi/dcmi.h"

namespace ascend::agent {

// One call. Thread-safe. It is answered once: by what became of the chips, or before that by
// ResetCalls::GiveUp().
class ResetCall {
 public:
  using Answer = absl::StatusOr<std::vector<ChipReset>>;
  // Runs once, on the thread that ends the call.
  using Done = std::function<void(const Answer&)>;
  ResetCall(ResetRequest request, Done done);

 private:
  friend class ResetCalls;
  // Whether the library may be told to reset now: somebody waits for it still.
  bool Begin();
  // Both answer it, and return false if it was answered before; the second also if it has begun.
  bool End(const Answer& answer);
  bool EndUnbegun(const absl::Status& status);

  const ResetRequest request_;
  mutable Mutex mutex_;
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  Done done_ ABSL_GUARDED_BY(mutex_);  // null once answered
};

// Thread-safe. A call has the turns of all chips of its group until they have started again: the
// reader leaves them out, and shows them as stuck if that takes long.
class ResetCalls {
 public:
  struct Options {
    absl::Duration turn_wait = absl::Seconds(10);  // for calls about the chips, all together
    // From the reset to the first look at how far the chips are: it may return before they go down.
    absl::Duration settle = absl::Seconds(3);
    // Out of band: from the reset to the look for the chips.
    absl::Duration outband_pause = absl::Seconds(5);
    absl::Duration boot_poll = absl::Milliseconds(500);
  };
  // `feed` says which chips there are, and must outlive all calls.
  ResetCalls(Options options, const InventoryFeed* feed, std::shared_ptr<ChipTurns> turns);
  // Close() and Stop() with a grace of a second, unless they were called before.
  ~ResetCalls();
  ResetCalls(const ResetCalls&) = delete;
  ResetCalls& operator=(const ResetCalls&) = delete;

  // The library, once it is initialised. Until then calls fail with kUnavailable.
  void SetLibrary(std::shared_ptr<dcmi::Dcmi> library);
  // `listener` runs after each call that has reset chips or kept the reader from them. As that of
  // VnpuCalls.
  void SetListener(std::function<void()> listener);

  void Start(const std::shared_ptr<ResetCall>& call);
  // The one who asked waits no longer (`code`: kDeadlineExceeded or kCancelled). A call that has
  // not begun never will; nothing stops a reset that has.
  void GiveUp(ResetCall& call, absl::StatusCode code);

  // Calls that have not begun are answered with kUnavailable and `reason`, and at once those that
  // still come. Those that only wait for chips to start wait no longer.
  void Close(absl::string_view reason);
  // After Close(): waits up to `grace` for what has begun. Returns false if a call is still inside
  // the library: its thread is then left behind, and the process should end by _exit().
  bool Stop(absl::Duration grace);

 private:
  struct State;
  class Run;
  const std::shared_ptr<State> state_;  // shared with threads that may be left behind
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_RESET_CALLS_H_
