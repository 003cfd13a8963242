// From the library's answers to an inventory of the node.
#ifndef ASCEND_DRA_VNPU_DISCOVERY_H_
#define ASCEND_DRA_VNPU_DISCOVERY_H_

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/core/mutex.h"
#include "vnpu/chip.h"
#include "vnpu/dcmi/dcmi.h"
#include "vnpu/fault_texts.h"

namespace ascend::vnpu {

struct DiscoveryOptions {
  std::string sysfs_root = "/sys";
  std::string hccn_conf = "/etc/hccn.conf";  // RoCE addresses where the library does not tell them
  // driver/version.info and firmware/version.info below it give the versions that the library does
  // not tell, and the driver's that is installed.
  std::string ascend_root = "/usr/local/Ascend";
};

// Keeps the reading of a chip and other calls about it apart. The agent's is agent/chip_turns.h.
class ReadingTurns {
 public:
  virtual ~ReadingTurns() = default;
  // Never waits. If it returns true the chip is the caller's until Release().
  virtual bool TryTake(dcmi::ChipAddress chip) = 0;
  virtual void Release(dcmi::ChipAddress chip) = 0;
  // Whose turn it is asks the library next for this: "its health".
  virtual void Reading(dcmi::ChipAddress /*chip*/, absl::string_view /*what*/) {}
  // Why the chip could not be taken for long, in the words of Chip::stuck; else empty.
  virtual std::string Stuck(dcmi::ChipAddress chip) const = 0;
};

// In these turns the modes of the node's vNPUs are a chip of this address.
inline constexpr dcmi::ChipAddress kNodeTurn = {.card = -1, .device = -1};

// A look at all chips of a node, in steps, so that a step that hangs holds up no other. Hides no
// more than what fails:
//   a unit without type, a chip without physical id   in `skipped`, with the reason
//   a second chip with a physical id already seen      in `skipped`
//   a vNPU that cannot be asked about                  listed as not normal, without template
//   any other failed query                             that attribute is unknown
// A unit that is no NPU is ignored. No chip is ever named by its position in a list. A chip that is
// absent is asked no more than what it takes to know it: its calls may hang.
//
// A chip whose turn cannot be had, or whose step has not returned at the end, is copied from the
// inventory before; so are the modes of the node. Thread-safe. What it is given must outlive it.
class Look {
 public:
  struct Result {
    Inventory inventory;
    std::set<int> read;  // physical ids of the chips that were asked; the others are copies
  };

  // Asks an initialised library about the node. Fails only if it cannot list its cards.
  static absl::StatusOr<std::shared_ptr<Look>> Begin(dcmi::Dcmi& dcmi,
                                                     const DiscoveryOptions& options,
                                                     ReadingTurns& turns, FaultTexts& texts,
                                                     Inventory last);

  // Asks about one card or chip more. False: there was none left to begin with. If it does not
  // return, another thread may go on with the rest.
  bool Step();

  // What was found by now. Sets `library` to kReady and leaves revision, agent_instance and
  // library_path to the caller. A step that returns later changes nothing. Once.
  Result Finish();

 private:
  // Of one unit; with neither it is no NPU.
  struct UnitReading {
    std::optional<Chip> chip;
    std::string problem;
  };
  // What a step does: one unit, or without one the list of the card's units.
  struct Task {
    int card = -1;
    std::optional<dcmi::ChipAddress> unit;
  };
  using Units = absl::StatusOr<std::vector<dcmi::ChipAddress>>;

  Look(dcmi::Dcmi& dcmi, const DiscoveryOptions& options, ReadingTurns& turns, FaultTexts& texts,
       Inventory last);
  absl::Status AskNode();
  void AskModes();
  void ListUnits(int card);
  std::vector<dcmi::ChipAddress> KnownUnits(int card) const;

  UnitReading Read(dcmi::ChipAddress unit) const;
  bool RememberAbsent(dcmi::ChipAddress unit, Chip& chip) const;
  void Partition(dcmi::ChipAddress unit, Chip& chip) const;
  void KeepPartitioning(Chip& chip) const;
  void Identify(dcmi::ChipAddress unit, Chip& chip) const;
  void Locate(dcmi::ChipAddress unit, Chip& chip) const;
  void Measure(dcmi::ChipAddress unit, Chip& chip) const;
  void ListFaults(dcmi::ChipAddress unit, Chip& chip) const;
  std::string RoceAddress(dcmi::ChipAddress unit, int physical_id) const;

  void AddUnit(dcmi::ChipAddress unit, Result& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddUnread(dcmi::ChipAddress unit, Inventory& inventory) const;

  dcmi::Dcmi& dcmi_;
  const DiscoveryOptions& options_;
  ReadingTurns& turns_;
  FaultTexts& texts_;
  const Inventory last_;
  const std::map<std::string, std::string> hccn_;
  Inventory node_;          // without chips; constant after Begin()
  std::vector<int> cards_;  // the same

  Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::map<int, Units> units_ ABSL_GUARDED_BY(mutex_);                           // by card
  std::map<std::pair<int, int>, UnitReading> readings_ ABSL_GUARDED_BY(mutex_);  // by address
};

// All steps of a look, by this thread, while nobody else asks the library.
absl::StatusOr<Inventory> Discover(dcmi::Dcmi& dcmi, const DiscoveryOptions& options);
// The same while others ask it, too. `last` is the inventory before.
absl::StatusOr<Inventory> Discover(dcmi::Dcmi& dcmi, const DiscoveryOptions& options,
                                   ReadingTurns& turns, const Inventory& last);

// Nobody knows how the chip is at the moment, and `why`; what it is stays.
void ForgetState(Chip& chip, absl::string_view why);

// What the library says now about a chip as something to be divided. kUnimplemented: this product
// or driver has no vNPUs. A vNPU whose own query fails is listed as not normal, without template.
absl::StatusOr<Partitioning> ReadPartitioning(dcmi::Dcmi& dcmi, dcmi::ChipAddress chip);

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_DISCOVERY_H_
