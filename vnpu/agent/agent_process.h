// A running ascend-npu-agent on the mock library, for tests of the program as a whole.
#ifndef ASCEND_DRA_VNPU_AGENT_AGENT_PROCESS_H_
#define ASCEND_DRA_VNPU_AGENT_AGENT_PROCESS_H_

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "base/core/unique_fd.h"
#include "base/runtime/clock.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "vnpu/agent/client.h"

namespace ascend::agent {

inline constexpr absl::Duration kLong = absl::Seconds(30);

struct Exit {
  int code = -1;    // -1 if a signal ended it
  std::string out;  // standard output and standard error
};

// A running ascend-npu-agent. Its output is read through a pipe.
class Process {
 public:
  Process(const std::vector<std::string>& arguments, const std::string& mock_node) {
    int fds[2];
    EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
    output_ = UniqueFd(fds[0]);
    const UniqueFd child_output(fds[1]);
    std::vector<std::string> strings = {ASCEND_NPU_AGENT_PATH};
    strings.insert(strings.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& string : strings) argv.push_back(string.data());
    argv.push_back(nullptr);
    std::string variable = absl::StrCat("ASCEND_MOCK_NODE=", mock_node);
    std::vector<char*> environment = {variable.data()};
    for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
    environment.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(child_output.get(), STDOUT_FILENO);
      dup2(child_output.get(), STDERR_FILENO);
      execve(argv[0], argv.data(), environment.data());
      _exit(127);
    }
  }
  ~Process() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      Wait();
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Signal(int number) const { kill(pid_, number); }

  // Reads on until the output holds `text`; false if it ends, or stays silent for long.
  bool WaitForOutput(absl::string_view text) {
    while (!absl::StrContains(output_text_, text)) {
      if (!ReadMore()) return false;
    }
    return true;
  }
  const std::string& output() const { return output_text_; }
  void ForgetOutput() { output_text_.clear(); }

  // Until it ends by itself or by a signal that was sent.
  Exit Wait() {
    while (ReadMore()) {
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1, .out = output_text_};
  }

 private:
  bool ReadMore() {
    pollfd waiting = {.fd = output_.get(), .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(kLong))) <= 0) return false;
    char buffer[4096];
    const ssize_t count = read(output_.get(), buffer, sizeof(buffer));
    if (count <= 0) return false;
    output_text_.append(buffer, static_cast<size_t>(count));
    return true;
  }

  UniqueFd output_;
  pid_t pid_ = -1;
  std::string output_text_;
};

// Node, library and socket are the test's own.
class AgentProcessTest : public ::testing::Test {
 protected:
  AgentProcessTest() {
    std::filesystem::copy(ASCEND_MOCK_NODES "/8x910B3", node_,
                          std::filesystem::copy_options::recursive);
  }

  std::vector<std::string> Arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {
        "--control-socket",     socket_,       "--libdcmi", library_,          "--sysfs",
        directory_.File("sys"), "--hccn-conf", "/dev/null", "--poll-interval", poll_interval_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::unique_ptr<Process> Start(const std::vector<std::string>& more = {}) {
    return std::make_unique<Process>(Arguments(more), node_);
  }
  Exit Run(const std::vector<std::string>& arguments) { return Process(arguments, node_).Wait(); }

  void EditNode(const std::function<void(nlohmann::json&)>& edit) {
    const absl::StatusOr<std::string> text = ReadFile(node_ + "/node.json");
    ASSERT_THAT(text, IsOk());
    nlohmann::json node = nlohmann::json::parse(*text);
    edit(node);
    ASSERT_THAT(WriteFileAtomically(node_ + "/node.json", node.dump(), {.durable = false}), IsOk());
  }
  void SetCall(const std::string& name, const nlohmann::json& behaviour) {
    EditNode([&](nlohmann::json& node) { node["calls"][name] = behaviour; });
  }
  void ClearCalls() {
    EditNode([](nlohmann::json& node) { node["calls"] = nlohmann::json::object(); });
  }

  void Connect() {
    Client::Options options = {.socket_path = socket_};
    options.connect_timeout = absl::Milliseconds(500);
    options.keepalive_time = absl::Milliseconds(200);
    options.keepalive_timeout = absl::Milliseconds(300);
    client_ = std::make_unique<Client>(options, [this] {
      MutexLock lock(&mutex_);
      ++changes_;
      changed_.SignalAll();
    });
  }
  template <typename Condition>
  [[nodiscard]] bool WaitUntil(Condition condition) {
    const absl::Duration end = Clock::Real().Monotonic() + kLong;
    MutexLock lock(&mutex_);
    while (!condition(client_->Current())) {
      const absl::Duration left = end - Clock::Real().Monotonic();
      if (left <= absl::ZeroDuration()) return false;
      changed_.WaitFor(&mutex_, left);
    }
    return true;
  }
  [[nodiscard]] bool WaitForState(vnpu::LibraryState state) {
    return WaitUntil(
        [=](const View& view) { return view.connected && view.inventory->library == state; });
  }
  [[nodiscard]] bool WaitDisconnected() {
    return WaitUntil([](const View& view) { return !view.connected; });
  }
  // Every chip present and well.
  [[nodiscard]] bool WaitAllWell(size_t chips) {
    return WaitUntil([=](const View& view) {
      if (!view.connected || view.inventory->library != vnpu::LibraryState::kReady) return false;
      size_t well = 0;
      for (const vnpu::Chip& chip : view.inventory->chips) well += chip.health == vnpu::Health::kOk;
      return well == chips && view.inventory->chips.size() == chips;
    });
  }

  TempDir directory_;
  const std::string node_ = directory_.File("node");
  const std::string socket_ = directory_.File("agent.sock");
  std::string library_ = ASCEND_MOCK_DCMI;
  std::string poll_interval_ = "20ms";
  Mutex mutex_;
  CondVar changed_;
  int changes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<Client> client_;  // goes first
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_AGENT_PROCESS_H_
