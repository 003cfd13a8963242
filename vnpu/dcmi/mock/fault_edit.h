// What happens to the chips of a mock node while clients of the library run: faults come and go,
// ports lose their link, chips drop and return. Each is told by an event, unless it shall get lost.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_FAULT_EDIT_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_FAULT_EDIT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vnpu/dcmi/mock/fault_state.h"

namespace ascend::dcmi::mock {

// The code of a chip that has dropped off the bus.
inline constexpr unsigned kChipDropped = 0x40F84E00;

struct FaultWish {
  unsigned code = 0;
  std::string severity = "major";  // warning, minor, major or critical
  std::string text;                // of the code; empty = stays as it is
  std::string additional;          // of the event
  bool listed = true;
  bool survives_reset = false;
  bool drops_chip = false;
  bool event = true;  // false: it gets lost
};

absl::StatusOr<FaultState> FaultsOf(const std::string& node_directory);
// {"faults": [{"physicalID": 3, "code": "80E01801", "severity": "major", ...}]}.
std::string ToJsonText(const FaultState& state);

// Of hex digits, with or without 0x: kInvalidArgument if it is none of 32 bits.
absl::StatusOr<unsigned> ParseFaultCode(const std::string& text);

// One that is there already comes again: a new event, and whatever else is new.
absl::Status AddFault(const std::string& node_directory, int physical_id, const FaultWish& wish);
// Something that happened and is over.
absl::Status TellOneShot(const std::string& node_directory, int physical_id, const FaultWish& wish);
// Without a code: all of the chip. kNotFound if there is none.
absl::Status ClearFaults(const std::string& node_directory, int physical_id,
                         std::optional<unsigned> code, bool event);

// "ok", "down" or "untested".
absl::Status SetNetwork(const std::string& node_directory, int physical_id,
                        const std::string& network);

// The chip drops: no longer enumerated, or `still_listed` and without answers.
absl::Status LoseChip(const std::string& node_directory, int physical_id, bool still_listed,
                      bool event);
struct ReturnWish {
  std::string bus_id;           // its new PCI address; empty = as before
  std::optional<int> logic_id;  // its new place in the library's list
  bool event = true;
};
absl::Status ReturnChip(const std::string& node_directory, int physical_id, const ReturnWish& wish);

// Empty or none: stays as it is. `stops_at` -1: resets succeed again.
struct ResetWish {
  std::string unit;  // "product" = what the product does
  std::optional<int> duration_ms, stops_at;
  std::optional<bool> outband;
};
absl::Status SetResetBehaviour(const std::string& node_directory, const ResetWish& wish);

// `lose`: occurred, recovered, oneShot.
absl::Status SetEventBehaviour(const std::string& node_directory,
                               const std::vector<std::string>& lose, int delay_ms);

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_FAULT_EDIT_H_
