// Who talks to the library about which chip: the reader of the inventory or a call, never both.
#ifndef ASCEND_DRA_VNPU_AGENT_CHIP_TURNS_H_
#define ASCEND_DRA_VNPU_AGENT_CHIP_TURNS_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "base/runtime/clock.h"
#include "vnpu/discovery.h"

namespace ascend::agent {

// A call waits for its turn; the reader only tries, and leaves out a chip that somebody else is at:
// that may last for ever. Thread-safe. Must outlive the turns.
class ChipTurns : public vnpu::ReadingTurns {
 public:
  // A turn that lasts longer is told by Stuck().
  explicit ChipTurns(absl::Duration stuck_after = absl::Seconds(10),
                     const Clock& clock = Clock::Real())
      : stuck_after_(stuck_after), clock_(clock) {}
  ChipTurns(const ChipTurns&) = delete;
  ChipTurns& operator=(const ChipTurns&) = delete;

  // A chip's turn, until this goes.
  class Turn {
   public:
    ~Turn() { turns_->Release(chip_); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    // The library is about to be called. `function` is its name for operators.
    void Calling(absl::string_view function);

   private:
    friend class ChipTurns;
    Turn(ChipTurns* turns, dcmi::ChipAddress chip) : turns_(turns), chip_(chip) {}
    ChipTurns* const turns_;
    const dcmi::ChipAddress chip_;
  };

  // Waits. Null after Close().
  std::unique_ptr<Turn> Take(dcmi::ChipAddress chip);
  // Waits up to `timeout`, by the machine's clock. Null after that, and after Close().
  std::unique_ptr<Turn> TakeWithin(dcmi::ChipAddress chip, absl::Duration timeout);
  // For the reader. False also after Close().
  bool TryTake(dcmi::ChipAddress chip) override;
  void Release(dcmi::ChipAddress chip) override;
  void Reading(dcmi::ChipAddress chip, absl::string_view what) override;

  // What keeps the chip now: "dcmi_create_vdevice has not returned for 28 s"; empty if nothing
  // does.
  std::string Doing(dcmi::ChipAddress chip) const;
  // The same once the turn has lasted too long, in steps of 10 s: who publishes it does not have
  // something new each second.
  std::string Stuck(dcmi::ChipAddress chip) const override;
  bool IsStuck(dcmi::ChipAddress chip) const;

  // Ends every wait, and those that still come.
  void Close();

 private:
  struct Holder {
    bool reader = false;
    std::string function;  // what is called, of the reader what it reads; empty: nothing yet
    absl::Duration since;
    absl::Duration call_since;
  };
  using Key = std::pair<int, int>;
  static Key KeyOf(dcmi::ChipAddress chip) { return {chip.card, chip.device}; }
  std::string Text(const Holder& holder, absl::Duration step) const;
  bool IsStuck(const Holder& holder) const;

  const absl::Duration stuck_after_;
  const Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<Key, Holder> holders_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_CHIP_TURNS_H_
