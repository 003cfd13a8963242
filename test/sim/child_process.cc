#include "test/sim/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/core/status_macros.h"
#include "base/core/unique_fd.h"

namespace ascend::sim {

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const std::vector<std::string>& argv, const std::string& log_path,
    const std::map<std::string, std::string>& environment) {
  const UniqueFd log(::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log.valid()) return ErrnoToStatus(errno, log_path);
  if (::access(argv[0].c_str(), X_OK) != 0) return ErrnoToStatus(errno, argv[0]);
  // Everything that allocates comes before fork: other threads may hold the allocator's lock.
  std::vector<std::string> variables;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (environment.count(text.substr(0, text.find('='))) == 0) variables.push_back(text);
  }
  for (const auto& [name, value] : environment) {
    variables.push_back(absl::StrCat(name, "=", value));
  }
  std::vector<char*> arguments, environ_pointers;
  for (const std::string& text : argv) arguments.push_back(const_cast<char*>(text.c_str()));
  for (const std::string& text : variables) {
    environ_pointers.push_back(const_cast<char*>(text.c_str()));
  }
  arguments.push_back(nullptr);
  environ_pointers.push_back(nullptr);

  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoToStatus(errno, "fork");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    ::dup2(log.get(), STDOUT_FILENO);
    ::dup2(log.get(), STDERR_FILENO);
    ::execve(arguments[0], arguments.data(), environ_pointers.data());
    ::_exit(127);
  }
  const std::string name = argv[0].substr(argv[0].rfind('/') + 1);
  return std::unique_ptr<ChildProcess>(new ChildProcess(name, log_path, pid));
}

ChildProcess::ChildProcess(std::string name, std::string log_path, pid_t pid)
    : name_(std::move(name)), log_path_(std::move(log_path)), pid_(pid) {
  waiter_ = std::thread([this] {
    // Without reaping, so that Kill cannot hit another process that got the number.
    siginfo_t info = {};
    while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 &&
           errno == EINTR) {
    }
    MutexLock lock(&mutex_);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    end_ = status;
    changed_.SignalAll();
  });
}

ChildProcess::~ChildProcess() {
  Terminate();
  waiter_.join();
}

void ChildProcess::Kill(int signal_number) {
  MutexLock lock(&mutex_);
  if (!end_.has_value()) ::kill(pid_, signal_number);
}

std::optional<int> ChildProcess::WaitForEnd(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  MutexLock lock(&mutex_);
  while (!end_.has_value()) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) break;
    changed_.WaitFor(&mutex_, left);
  }
  return end_;
}

int ChildProcess::Terminate(absl::Duration patience) {
  Kill(SIGTERM);
  if (const std::optional<int> end = WaitForEnd(patience)) return *end;
  Kill(SIGKILL);
  return WaitForEnd(absl::Minutes(1)).value_or(-1);
}

std::string ChildProcess::log() const {
  std::ostringstream text;
  text << std::ifstream(log_path_).rdbuf();
  return text.str();
}

absl::StatusOr<ProcessMemory> ChildProcess::Memory() const {
  const std::string path = absl::StrCat("/proc/", pid_, "/smaps_rollup");
  std::ifstream file(path);
  ProcessMemory memory;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string key;
    int64_t kib = 0;
    words >> key >> kib;
    if (key == "Rss:") memory.rss_kib = kib;
    if (key == "Anonymous:") memory.anonymous_kib = kib;
  }
  if (memory.rss_kib == 0) return absl::UnavailableError(absl::StrCat(path, ": cannot be read"));
  return memory;
}

std::string DescribeEnd(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return absl::StrCat("was ended by signal ", WTERMSIG(wait_status));
  }
  return absl::StrCat("ended with exit code ", WEXITSTATUS(wait_status));
}

}  // namespace ascend::sim
