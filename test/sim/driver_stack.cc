#include "test/sim/driver_stack.h"

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <set>
#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/core/status_macros.h"
#include "base/runtime/signals.h"
#include "nlohmann/json.hpp"

namespace ascend::sim {
namespace {

constexpr absl::Duration kLookAfterChildren = absl::Milliseconds(100);

// Directories to remove when a signal ends the process.
struct Leftovers {
  Mutex mutex;
  std::set<std::string> directories ABSL_GUARDED_BY(mutex);
};
Leftovers& AllLeftovers() {
  static auto* leftovers = new Leftovers();
  return *leftovers;
}

void RemoveDirectory(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

bool HasDevices(const std::vector<nlohmann::json>& slices) {
  return absl::c_any_of(slices, [](const nlohmann::json& slice) {
    return slice["spec"].contains("devices") && !slice["spec"]["devices"].empty();
  });
}

}  // namespace

void CleanUpOnSignals() {
  BlockTerminationSignals();
  std::thread([] {
    const int signal_number = WaitForTerminationSignal();
    MutexLock lock(&AllLeftovers().mutex);
    for (const std::string& path : AllLeftovers().directories) RemoveDirectory(path);
    ::_exit(128 + signal_number);
  }).detach();
}

std::string DriverStack::Path(const std::string& name) const { return JoinPath(root_, name); }

absl::StatusOr<std::string> DriverStack::FindProgram(const std::string& name) const {
  for (const std::string& directory : options_.bin_dirs) {
    const std::string path = JoinPath(directory, name);
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return absl::NotFoundError(
      absl::StrCat("no ", name, " in ", absl::StrJoin(options_.bin_dirs, ", "), " (--bin-dir)"));
}

absl::StatusOr<std::string> DriverStack::MakeWorkDirectory(const std::string& parent) {
  std::string pattern = JoinPath(parent, "ad-XXXXXX");  // short, as unix sockets lie below it
  if (::mkdtemp(pattern.data()) == nullptr) return ErrnoToStatus(errno, pattern);
  MutexLock lock(&AllLeftovers().mutex);
  AllLeftovers().directories.insert(pattern);
  return pattern;
}

absl::StatusOr<std::unique_ptr<DriverStack>> DriverStack::Create(StackOptions options) {
  std::unique_ptr<DriverStack> stack(new DriverStack(std::move(options)));
  const StackOptions& o = stack->options_;
  for (const char* program : {"ascend-npu-agent", "ascend-dra-kubeletplugin", "ascend-mock-node"}) {
    ASCEND_RETURN_IF_ERROR(stack->FindProgram(program).status());
  }
  stack->mock_library_ = o.mock_library;
  for (const std::string& directory : o.bin_dirs) {
    const std::string path = JoinPath(directory, "../lib/ascend-dra/mock/libdcmi.so");
    if (stack->mock_library_.empty() && ::access(path.c_str(), R_OK) == 0) {
      stack->mock_library_ = path;
    }
  }
  if (::access(stack->mock_library_.c_str(), R_OK) != 0) {
    return absl::NotFoundError("no mock libdcmi.so (--mock-lib)");
  }
  ASCEND_ASSIGN_OR_RETURN(stack->root_, MakeWorkDirectory(o.work_dir));
  if (!o.cdi_work_dir.empty()) {
    ASCEND_ASSIGN_OR_RETURN(stack->cdi_work_dir_, MakeWorkDirectory(o.cdi_work_dir));
  }
  stack->cdi_root_ =
      JoinPath(stack->cdi_work_dir_.empty() ? stack->root_ : stack->cdi_work_dir_, "cdi");
  ASCEND_RETURN_IF_ERROR(stack->MakeMockNode());
  for (const std::string& directory :
       {stack->cdi_root_, stack->Path("control"), stack->Path("telemetry")}) {
    ASCEND_RETURN_IF_ERROR(MakeDirectories(directory));
  }
  stack->api_server_.AddNode(o.node_name);
  ASCEND_RETURN_IF_ERROR(stack->api_server_.WriteKubeconfig(stack->Path("kubeconfig")));
  stack->kubelet_ = std::make_unique<Kubelet>(KubeletOptions{.root = stack->Path("kubelet"),
                                                             .node_name = o.node_name,
                                                             .api_server = &stack->api_server_,
                                                             .services = o.kubelet_services});
  return stack;
}

DriverStack::~DriverStack() {
  StopDriver();
  kubelet_.reset();
  MutexLock lock(&AllLeftovers().mutex);
  for (const std::string& path : {root_, cdi_work_dir_}) {
    if (path.empty()) continue;
    AllLeftovers().directories.erase(path);
    RemoveDirectory(path);
  }
}

absl::Status DriverStack::MakeMockNode() {
  ASCEND_ASSIGN_OR_RETURN(const std::string program, FindProgram("ascend-mock-node"));
  std::vector<std::string> command = {program,  "create",    "--node", options_.mock_node,
                                      "--root", Path("host")};
  if (!options_.mock_nodes_dir.empty()) {
    command.insert(command.end(), {"--nodes-dir", options_.mock_nodes_dir});
  }
  for (const bool device_nodes : {true, false}) {
    if (device_nodes && ::geteuid() != 0) continue;
    if (!device_nodes) command.push_back("--no-device-nodes");
    ASCEND_ASSIGN_OR_RETURN(
        auto tool,
        ChildProcess::Start(command, Path(device_nodes ? "mknod.log" : "mock-node.log")));
    const std::optional<int> end = tool->WaitForEnd(absl::Seconds(30));
    if (end == 0) {
      has_device_nodes_ = device_nodes;
      return absl::OkStatus();
    }
    if (!device_nodes) return absl::InternalError(absl::StrCat("ascend-mock-node: ", tool->log()));
  }
  return absl::OkStatus();
}

absl::Status DriverStack::StartAgent(const std::string& library) {
  ASCEND_ASSIGN_OR_RETURN(const std::string program, FindProgram("ascend-npu-agent"));
  const std::string host = Path("host");
  std::vector<std::string> command = {program,
                                      "--control-socket",
                                      Path("control/agent.sock"),
                                      "--libdcmi",
                                      library.empty() ? mock_library_ : library,
                                      "--sysfs",
                                      JoinPath(host, "sys"),
                                      "--hccn-conf",
                                      JoinPath(host, "etc/hccn.conf")};
  command.insert(command.end(), options_.agent_flags.begin(), options_.agent_flags.end());
  ASCEND_ASSIGN_OR_RETURN(
      agent_,
      ChildProcess::Start(command, Path("agent.log"),
                          {{"ASCEND_MOCK_NODE", JoinPath(host, "etc/ascend-dra/mock-node")}}));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ChildProcess>> DriverStack::StartExtraPlugin(
    const std::string& pod_uid) {
  ASCEND_ASSIGN_OR_RETURN(const std::string program, FindProgram("ascend-dra-kubeletplugin"));
  const std::string host = Path("host");
  std::vector<std::string> command = {program,
                                      "--node-name",
                                      options_.node_name,
                                      "--pod-uid",
                                      pod_uid,
                                      "--kubelet-root",
                                      Path("kubelet"),
                                      "--cdi-root",
                                      cdi_root_,
                                      "--agent-socket",
                                      Path("control/agent.sock"),
                                      "--host-root",
                                      host,
                                      "--proc-devices",
                                      JoinPath(host, "etc/ascend-dra/mock-proc-devices"),
                                      "--kubeconfig",
                                      Path("kubeconfig"),
                                      "--health-port",
                                      "0",
                                      "--allocations-socket",
                                      allocations_socket(pod_uid)};
  command.insert(command.end(), options_.plugin_flags.begin(), options_.plugin_flags.end());
  return ChildProcess::Start(command, Path("plugin.log"));
}

std::string DriverStack::allocations_socket(const std::string& pod_uid) const {
  return Path(absl::StrCat("telemetry/", pod_uid, ".sock"));
}

absl::Status DriverStack::StartPlugin(const std::string& pod_uid) {
  ASCEND_ASSIGN_OR_RETURN(plugin_, StartExtraPlugin(pod_uid));
  return absl::OkStatus();
}

absl::StatusOr<StartTimes> DriverStack::StartDriver(absl::Duration timeout) {
  const int registrations = kubelet_->registrations();
  const absl::Time start = absl::Now();
  const absl::Time deadline = start + timeout;
  ASCEND_RETURN_IF_ERROR(StartAgent());
  ASCEND_RETURN_IF_ERROR(StartPlugin(absl::StrCat("pod-", ++starts_)));

  // The two come in either order.
  StartTimes times;
  absl::Status published;
  std::atomic<bool> give_up = false;
  std::thread slices([&] {
    do {
      published = api_server_.WaitForSlices(HasDevices, kLookAfterChildren);
    } while (!published.ok() && !give_up && absl::Now() < deadline);
    times.first_slice = absl::Now() - start;
  });
  absl::Status registered;
  do {
    registered = kubelet_->WaitForRegistrations(registrations + 1, kLookAfterChildren);
  } while (!registered.ok() && CheckRunning().ok() && absl::Now() < deadline);
  times.registered = absl::Now() - start;
  give_up = !registered.ok();
  slices.join();
  ASCEND_RETURN_IF_ERROR(CheckRunning());
  ASCEND_RETURN_IF_ERROR(registered);
  ASCEND_RETURN_IF_ERROR(published);
  return times;
}

absl::Status DriverStack::CheckRunning() {
  for (ChildProcess* child : {agent_.get(), plugin_.get()}) {
    if (child == nullptr) continue;
    if (const std::optional<int> end = child->WaitForEnd(absl::ZeroDuration())) {
      return absl::InternalError(absl::StrCat(child->name(), " ", DescribeEnd(*end)));
    }
  }
  return absl::OkStatus();
}

void DriverStack::StopDriver() {
  plugin_.reset();
  agent_.reset();
}

std::string DriverStack::Logs() const {
  std::string text;
  for (const char* name : {"agent", "plugin"}) {
    const absl::StatusOr<std::string> log =
        ReadFile(Path(absl::StrCat(name, ".log")), /*max_size=*/64 << 20);
    absl::StrAppend(&text, "--- ", name, " ---\n", log.ok() ? *log : log.status().ToString(), "\n");
  }
  return text;
}

}  // namespace ascend::sim
