// Calls about vNPUs on their way from those who ask to the threads that talk to the library: one
// thread per chip, so that a call that hangs delays nobody but who wants the same chip.
#ifndef ASCEND_DRA_VNPU_AGENT_VNPU_CALLS_H_
#define ASCEND_DRA_VNPU_AGENT_VNPU_CALLS_H_

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

// One call. Thread-safe. It is answered once: by the library's answer, or before that by
// VnpuCalls::GiveUp().
class VnpuCall {
 public:
  // A list; of a creation the one vNPU; else empty.
  using Answer = absl::StatusOr<std::vector<vnpu::Vnpu>>;
  // Runs once, on the thread that ends the call.
  using Done = std::function<void(const Answer&)>;

  static std::shared_ptr<VnpuCall> List(int physical_id, Done done);
  static std::shared_ptr<VnpuCall> Create(VnpuRequest request, Done done);
  static std::shared_ptr<VnpuCall> Destroy(VnpuReference reference, Done done);
  static std::shared_ptr<VnpuCall> PrepareModes(Done done);

 private:
  friend class VnpuCalls;
  using Work = std::function<Answer(dcmi::Dcmi&, const vnpu::Chip&, ChipTurns::Turn&)>;
  VnpuCall(int physical_id, std::string uuid, bool changes, Work work, Done done);

  // Whether the library may be called now: somebody waits for it still.
  bool Begin();
  bool ended() const;
  // Both answer it, and return false if it was answered before; the second also if it has begun.
  bool End(const Answer& answer);
  bool EndUnbegun(const absl::Status& status);

  const int physical_id_;  // -1: about the node
  const std::string uuid_;
  const bool changes_;
  const Work work_;
  mutable Mutex mutex_;
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  Done done_ ABSL_GUARDED_BY(mutex_);  // null once answered
};

// Thread-safe. A chip's thread is made for its first call and ends with its last: making one costs
// nothing beside a call, and an idle agent has none. Calls about one chip run in the order they
// came, each in the chip's turn.
class VnpuCalls {
 public:
  // `feed` says which chips there are, and must outlive all calls.
  VnpuCalls(const InventoryFeed* feed, std::shared_ptr<ChipTurns> turns);
  // Close() and Stop() with a grace of a second, unless they were called before.
  ~VnpuCalls();
  VnpuCalls(const VnpuCalls&) = delete;
  VnpuCalls& operator=(const VnpuCalls&) = delete;

  // The library, once it is initialised. Until then calls fail with kUnavailable.
  void SetLibrary(std::shared_ptr<dcmi::Dcmi> library);
  // `listener` runs after each call that may have changed a chip or kept the reader from it. It
  // must return quickly and must not call SetListener. Waits for a running call of the one before;
  // null = none.
  void SetListener(std::function<void()> listener);

  void Start(const std::shared_ptr<VnpuCall>& call);
  // The one who asked waits no longer (`code`: kDeadlineExceeded or kCancelled). A call that has
  // not begun never will; the library cannot be stopped at one that has. The answer says which it
  // was and what the library is at.
  void GiveUp(VnpuCall& call, absl::StatusCode code);

  // Calls that have not begun are answered with kUnavailable and `reason`, and at once those that
  // still come.
  void Close(absl::string_view reason);
  // After Close(): waits up to `grace` for calls that have begun. Returns false if one is still
  // inside the library: its thread is then left behind, and the process should end by _exit().
  bool Stop(absl::Duration grace);

 private:
  struct State;
  static void Run(const std::shared_ptr<State>& state, int physical_id);
  static void Serve(State& state, VnpuCall& call);

  const std::shared_ptr<State> state_;  // shared with threads that may be left behind
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_VNPU_CALLS_H_
