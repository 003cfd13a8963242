// What the plugin remembers of the resets of chips, so that a restart does not begin to count anew;
// also what `ascend-dra chips list` tells of them.
#ifndef ASCEND_DRA_KUBELETPLUGIN_HEALTH_RESETS_FILE_H_
#define ASCEND_DRA_KUBELETPLUGIN_HEALTH_RESETS_FILE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace ascend::kubeletplugin {

// How often a chip was reset because of the same faults.
struct ResetTries {
  std::string uuid;          // of the chip; empty = unknown
  std::set<uint64_t> codes;  // of the faults
  int tries = 0;
  absl::Time last;  // when the last began
  // Of a reset that has begun and whose end nobody has seen: who goes down, and when that is over
  // at the latest.
  std::set<int> group;
  absl::Time until;
  // What became of the last, for people; empty while it is under way.
  std::string outcome;
  bool failed = false;
  bool gave_up = false;  // and it was told that there will be no more
  friend bool operator==(const ResetTries&, const ResetTries&) = default;

  bool under_way() const { return !group.empty(); }
};
using ResetMemory = std::map<int, ResetTries>;  // by physical id

// "reset 2 of 3 at 2026-11-30T20:00:00Z failed: ..."; empty if there was none.
std::string ResetText(const ResetTries& tries, int most);

absl::Status WriteResetsFile(const std::string& path, const ResetMemory& memory);
// kNotFound if there is none, kDataLoss with what is wrong.
absl::StatusOr<ResetMemory> ReadResetsFile(const std::string& path);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_HEALTH_RESETS_FILE_H_
