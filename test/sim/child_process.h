// A program run as a child, with its output in a file.
#ifndef ASCEND_DRA_TEST_SIM_CHILD_PROCESS_H_
#define ASCEND_DRA_TEST_SIM_CHILD_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/core/mutex.h"

namespace ascend::sim {

struct ProcessMemory {
  int64_t rss_kib = 0;
  int64_t anonymous_kib = 0;
};

// Thread-safe, but for the destructor.
class ChildProcess {
 public:
  // `argv[0]` is a path. Standard output and error are appended to `log_path`; `environment` is
  // added to our own. Start from a thread that outlives the child: the kernel kills it with that
  // thread, so that nothing is left behind if we are killed.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      const std::vector<std::string>& argv, const std::string& log_path,
      const std::map<std::string, std::string>& environment = {});
  // Terminate().
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // SIGTERM, and SIGKILL if it has not ended `patience` later. Returns the wait status.
  int Terminate(absl::Duration patience = absl::Seconds(10));
  void Kill(int signal_number);
  // The wait status once the child has ended within `timeout`.
  std::optional<int> WaitForEnd(absl::Duration timeout);
  bool running() { return !WaitForEnd(absl::ZeroDuration()).has_value(); }

  const std::string& name() const { return name_; }  // of the program, without directories
  pid_t pid() const { return pid_; }
  std::string log() const;
  absl::StatusOr<ProcessMemory> Memory() const;

 private:
  ChildProcess(std::string name, std::string log_path, pid_t pid);

  const std::string name_;
  const std::string log_path_;
  const pid_t pid_;
  Mutex mutex_;
  CondVar changed_;
  std::optional<int> end_ ABSL_GUARDED_BY(mutex_);
  std::thread waiter_;
};

// "ended with exit code 1" or "was ended by signal 9".
std::string DescribeEnd(int wait_status);

}  // namespace ascend::sim

#endif  // ASCEND_DRA_TEST_SIM_CHILD_PROCESS_H_
