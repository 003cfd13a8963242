// The commands of ascend-cdi, apart from the command line. Each prints to `out.text` and returns
// the program's exit code.
#ifndef ASCEND_DRA_CDI_CMD_COMMANDS_H_
#define ASCEND_DRA_CDI_CMD_COMMANDS_H_

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "cdi/registry.h"

namespace ascend::cdi::cmd {

inline constexpr int kExitOk = 0;
// A file is invalid, a device does not resolve, a case fails: the command did its work, and the
// answer is no.
inline constexpr int kExitNo = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitError = 3;  // the command could not do its work

struct Output {
  std::ostream& text;
  std::ostream& errors;  // for people, never for scripts
  bool json = false;
};

// `list`: all devices. Files that cannot be read are named, but are no failure of this command.
struct ListFilter {
  std::string vendor;  // empty: all
  std::string device_class;
};
int List(const Snapshot& snapshot, const ListFilter& filter, const Output& out);

// `show`: where a device comes from and what it does to a container. kExitNo if one is unknown.
int Show(const Snapshot& snapshot, const std::vector<std::string>& names, const Output& out);

// `monitor`: prints devices as they come and go, until a termination signal (to be blocked before)
// or after `events` changes if that is above 0.
int Monitor(const std::vector<std::string>& directories, int events, const Output& out);

// `validate`: each file by the rules of the reference, with `strict` also by those for writers.
int Validate(const std::vector<std::string>& files, bool strict, const Output& out);

// `min-version`: the least cdiVersion that can carry each file's content.
int PrintMinimumVersions(const std::vector<std::string>& files, const Output& out);

// `compat`: which runtimes accept each file. With a `runtime` such as "containerd" or "podman 4.3"
// only its releases are printed, and kExitNo says that one of them refuses a file.
int PrintCompatibility(const std::vector<std::string>& files, const std::string& runtime,
                       const Output& out);

// `inject`: reads an OCI runtime configuration from `config`, of at most kMaxConfigSize bytes, and
// prints it with the devices in it. Nothing is printed on a failure. `library` is the release of
// the reference library to behave like, "" for the newest.
inline constexpr size_t kMaxConfigSize = 64 << 20;
int InjectDevices(const Snapshot& snapshot, const std::vector<std::string>& names,
                  const std::string& library, std::istream& config, const Output& out);

// `replay`: recorded cases of the reference library (one JSON object a line). The last line is
// "N passed, N failed".
int Replay(const std::vector<std::string>& files, const Output& out);

}  // namespace ascend::cdi::cmd

#endif  // ASCEND_DRA_CDI_CMD_COMMANDS_H_
