// Replays what the reference library answered, as recorded in cdi/testdata/*.jsonl: the README
// there describes the cases. Not part of the installed library.
#ifndef ASCEND_DRA_CDI_REPLAY_H_
#define ASCEND_DRA_CDI_REPLAY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace ascend::cdi {

struct ReplayOptions {
  // A version of the reference library as `byVersion` names them, for the cases of `inject`; empty
  // is the newest, v1.1.2. Reading specs as older versions did is not offered.
  std::string version;
};

// What this library does otherwise than is recorded: empty if the case passed, else one line each
// with a JSON pointer into the result: `/canonical/devices/0/name: expected "a", got "b"`. The
// freedom that the case's traits give is used.
//
// Device nodes are looked up on a host as it was when the cases were recorded: /dev/null,
// /etc/hostname, /proc/self/cwd and /dev/davinci99 answer as then, all else comes from this host. A
// case may bring a host of its own, which comes first:
//   "host": {"/dev/davinci0": {"type": "c", "major": 236, "minor": 0, "mode": 432, "uid": 0,
//                              "gid": 0}, "/dev/davinci1": null}
// with the types c, b, p, file, dir and link; null is a path that does not exist. Members other
// than the type may be absent and then are 0. The mode is without the type bits.
//
// kInvalidArgument if `test_case` is no such case, kUnimplemented if the version asked for did not
// load the same files as v1.1.2. Thread-safe. Writes into a directory of its own below the
// directory for temporary files, and removes it.
absl::StatusOr<std::vector<std::string>> ReplayCase(const nlohmann::json& test_case,
                                                    const ReplayOptions& options = {});

// The versions that `byVersion` of a case names.
std::vector<std::string> RecordedVersions(const nlohmann::json& test_case);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_REPLAY_H_
