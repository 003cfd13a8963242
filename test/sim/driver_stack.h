// The real agent and plugin as child processes on a mock node, with a simulated API server and
// kubelet around them, in a directory of their own.
#ifndef ASCEND_DRA_TEST_SIM_DRIVER_STACK_H_
#define ASCEND_DRA_TEST_SIM_DRIVER_STACK_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "test/sim/api_server.h"
#include "test/sim/child_process.h"
#include "test/sim/kubelet.h"

namespace ascend::sim {

struct StackOptions {
  std::vector<std::string> bin_dirs;  // where the programs are looked for, in this order
  std::string mock_library;           // empty: ../lib/ascend-dra/mock/libdcmi.so of a bin_dir
  std::string mock_nodes_dir;         // empty: where ascend-mock-node finds them
  std::string mock_node = "8x910B3";
  std::string node_name = "mock-node";
  std::string work_dir = "/tmp";  // the stack's directory is made in it, and removed
  std::string cdi_work_dir;       // the same for CDI files alone; empty = work_dir
  std::vector<std::string> plugin_flags;
  std::vector<std::string> agent_flags;
  std::vector<std::string> kubelet_services = {"v1.DRAPlugin", "v1beta1.DRAPlugin"};
  ApiServerOptions api_server;
};

struct StartTimes {  // from just before the first process was started
  absl::Duration registered;
  absl::Duration first_slice;  // with devices
};

class DriverStack {
 public:
  // Everything but the two processes.
  static absl::StatusOr<std::unique_ptr<DriverStack>> Create(StackOptions options);
  // Stops what runs and removes the directory.
  ~DriverStack();
  DriverStack(const DriverStack&) = delete;
  DriverStack& operator=(const DriverStack&) = delete;

  // Starts agent and plugin and waits until they have registered and published. An error names a
  // process that ended early.
  absl::StatusOr<StartTimes> StartDriver(absl::Duration timeout = absl::Seconds(20));
  // One of the two alone, as a container that is started (again); does not wait for anything.
  // `library` is another libdcmi than the mock's.
  absl::Status StartAgent(const std::string& library = "");
  absl::Status StartPlugin(const std::string& pod_uid);
  // A second instance beside plugin(), as during a rollout.
  absl::StatusOr<std::unique_ptr<ChildProcess>> StartExtraPlugin(const std::string& pod_uid);
  // Orderly, plugin first.
  void StopDriver();

  ApiServer& api_server() { return api_server_; }
  Kubelet& kubelet() { return *kubelet_; }
  ChildProcess& agent() { return *agent_; }
  ChildProcess& plugin() { return *plugin_; }
  const std::string& root() const { return root_; }
  const std::string& cdi_root() const { return cdi_root_; }
  // Of the plugin that StartDriver() started as its nth, or that got this UID.
  std::string allocations_socket(const std::string& pod_uid = "pod-1") const;
  std::string kubelet_root() const { return Path("kubelet"); }
  std::string kubeconfig() const { return Path("kubeconfig"); }
  // Device nodes take root. Without them the driver refuses to prepare claims.
  bool has_device_nodes() const { return has_device_nodes_; }
  // What both processes have logged.
  std::string Logs() const;

 private:
  explicit DriverStack(StackOptions options)
      : options_(std::move(options)), api_server_(options_.api_server) {}
  absl::StatusOr<std::string> FindProgram(const std::string& name) const;
  static absl::StatusOr<std::string> MakeWorkDirectory(const std::string& parent);
  absl::Status MakeMockNode();
  absl::Status CheckRunning();
  std::string Path(const std::string& name) const;

  const StackOptions options_;
  std::string root_;
  std::string cdi_work_dir_;  // removed too; empty = inside root_
  std::string cdi_root_;
  std::string mock_library_;
  bool has_device_nodes_ = false;
  int starts_ = 0;
  ApiServer api_server_;
  std::unique_ptr<Kubelet> kubelet_;
  std::unique_ptr<ChildProcess> agent_;
  std::unique_ptr<ChildProcess> plugin_;
};

// Ends the process on SIGTERM and SIGINT after removing the directories of all stacks; the kernel
// ends the children. Call once, first in main().
void CleanUpOnSignals();

}  // namespace ascend::sim

#endif  // ASCEND_DRA_TEST_SIM_DRIVER_STACK_H_
