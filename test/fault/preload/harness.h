// Counts the file system calls of the process below given directories, in program order, and does
// harm at one of them.
//
//   ASCEND_FAULT_ROOTS  directories, separated by ':'; without it nothing is touched
//   ASCEND_FAULT_TRACE  a file that gets a line per point
//   ASCEND_FAULT        what to do, N being the number of a point:
//     count                   nothing
//     kill-before:N           SIGKILL instead of the call
//     kill-after:N            SIGKILL after it
//     fail:N:ERROR            the call fails: ENOSPC, EIO, EROFS, EDQUOT
//     short:N                 a write takes half of the bytes
//     interrupt:N             the call fails once with EINTR
//     torn:N                  half of the bytes are written, then SIGKILL
//     power:N:lost|kept|mixed what was not synced is lost (durable_state.h), then SIGKILL
//     unsynced:N              the call fails with EIO; when the program says that it was repeated
//     with
//                             success, power is lost as by power:N:lost
//     jump:N:SECONDS          the wall clock jumps before the call
//     full:N                  from here on whatever needs room fails with ENOSPC
//
// A program may steer it by the functions of control.h.
#ifndef ASCEND_DRA_TEST_FAULT_PRELOAD_HARNESS_H_
#define ASCEND_DRA_TEST_FAULT_PRELOAD_HARNESS_H_

#include <cerrno>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "test/fault/preload/durable_state.h"

namespace ascend::fault {

struct Call {
  const char* name;
  std::string path;
  bool changes = false;     // what is on disk, or what of it is durable
  bool needs_room = false;  // fails on a full disk
  bool writes = false;      // bytes, of which some may be taken
  bool interruptible = false;
  bool happens_anyway = false;  // close(): a failure leaves no descriptor either
};

enum class Harm { kNone, kFail, kShort, kTorn, kKillAfter };

class Harness {
 public:
  // Null unless the environment asks for one.
  static Harness* Get();

  bool Watches(const std::string& path) const;

  // The next call that is made: gives it a number, unless the thread does not count, and says what
  // happens to it; kFail leaves the reason in errno. May not return.
  Harm Next(const Call& call);
  [[noreturn]] static void Die();

  // Null unless a power cut is to come.
  DurableState* durable() {
    return mode_ == Mode::kPower || mode_ == Mode::kUnsynced ? &durable_ : nullptr;
  }

  void SetStep(const char* step);
  void SetPaused(bool paused);
  void Heal();
  // What failed has been repeated. May not return.
  void Repeated();
  // Held by every call that does not block.
  std::recursive_mutex& mutex() { return mutex_; }

 private:
  enum class Mode {
    kCount,
    kKillBefore,
    kKillAfter,
    kFail,
    kShort,
    kInterrupt,
    kTorn,
    kPower,
    kUnsynced,
    kFull,
    kJump
  };

  Harness(const char* roots, const char* fault, const char* trace);
  void Trace(const std::string& line) const;
  std::string Describe(const Call& call) const;

  std::vector<std::string> roots_;
  Mode mode_ = Mode::kCount;
  uint64_t point_ = 0;
  int error_ = EIO;
  int64_t jump_ = 0;  // seconds
  PowerCut cut_ = PowerCut::kLost;
  int trace_fd_ = -1;

  std::recursive_mutex mutex_;  // guards what follows
  uint64_t count_ = 0;
  std::string step_ = "-";
  bool paused_ = false;
  bool full_ = false;
  DurableState durable_;
};

// From now on the wall clock, but no other, is so many seconds ahead.
void JumpWallClock(int64_t seconds);

// Threads made while this is on never count: they work when the clock says so, not the program.
void SetBackground(bool background);
bool IsBackgroundThread();

}  // namespace ascend::fault

#endif  // ASCEND_DRA_TEST_FAULT_PRELOAD_HARNESS_H_
