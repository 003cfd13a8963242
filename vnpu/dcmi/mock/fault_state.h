// The faults that there are on a mock node, and the resets under way: what the library or
// ascend-mock-node changes while the node runs.
//
//   state/faults.json   the faults, texts of codes, and resets
//   state/events.jsonl  every event, one line each; only ever grows
//
// Any number of processes may read and change them at once. Like the library, this depends on
// nothing but the C++ library; exceptions are std::runtime_error and name the file.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_FAULT_STATE_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_FAULT_STATE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vnpu/dcmi/mock/node.h"
#include "vnpu/dcmi/mock/state_file.h"

namespace ascend::dcmi::mock {

struct Fault {
  int physical_id = -1;
  unsigned code = 0;
  unsigned severity = 2;  // 0 warning, 1 minor, 2 major, 3 critical
  bool listed = true;     // in the list of codes
  bool survives_reset = false;
  bool drops_chip = false;  // while it is there, the chip answers -8012
  int serial = 0;           // of its events
  uint64_t raised_ms = 0;   // since the epoch
  std::string name, additional;
};

// A line of events.jsonl.
struct FaultNotice {
  Fault fault;
  int logic_id = -1;       // when it happened
  unsigned assertion = 1;  // 0 gone, 1 come, 2 one-shot
  int notify_serial = 0;
};

// A reset that chip has gone through, or is in.
struct ResetRun {
  int physical_id = -1;
  int64_t started_ms = 0;  // of CLOCK_BOOTTIME, which all processes share
  int duration_ms = 0;
  std::optional<int> stops_at;    // the boot status that it does not get beyond
  bool waits_for_rescan = false;  // not started before that
};

struct FaultState {
  int last_serial = 0, last_notify_serial = 0;
  std::vector<Fault> faults;  // in the order in which they came
  std::map<unsigned, std::string> texts;
  std::vector<int> prepared;  // for a reset out of band, by physical id
  std::vector<ResetRun> resets;

  Fault* Find(int physical_id, unsigned code);
  const ResetRun* ResetOf(int physical_id) const;
};

std::string EventsFile(const std::string& node_directory);
std::string FaultsFile(const std::string& node_directory);

// Also while somebody changes it. Throws if the file is wrong.
FaultState ReadFaultState(const std::string& node_directory);

// Collects events while a change runs, and gives them their serial numbers.
class NoticeList {
 public:
  // A fault without a serial number gets one.
  void Add(FaultState& state, Fault& fault, int logic_id, unsigned assertion);
  const std::vector<FaultNotice>& notices() const { return notices_; }

 private:
  std::vector<FaultNotice> notices_;
};

// Runs `change` alone and keeps what it made of the state, and the events, if it returns 0 (a code
// of abi.h, which is handed on). -8014 if a file cannot be written. Throws as above.
int ChangeFaultState(const std::string& node_directory,
                     const std::function<int(FaultState&, NoticeList&)>& change);

// Of one line. Throws if it is none.
FaultNotice ParseNotice(const std::string& line);

int64_t BootTimeMs();
uint64_t WallTimeMs();

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_FAULT_STATE_H_
