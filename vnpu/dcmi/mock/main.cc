// ascend-mock-node: makes a mock NPU node and breaks it. See README.md.
#include <signal.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/mock/edit.h"
#include "vnpu/dcmi/mock/node.h"
#include "vnpu/dcmi/mock/tree.h"
#include "vnpu/dcmi/mock/vnpu_edit.h"
#include "vnpu/dcmi/mock/vnpu_kernel.h"

namespace {

namespace mock = ascend::dcmi::mock;

constexpr int kUsageError = 2;

std::string ExecutableDirectory() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  const std::string text(path, length > 0 ? length : 0);
  return text.substr(0, text.rfind('/'));
}

// The shipped descriptions: where they are installed, or beside the program in a build tree.
std::string NodesDirectory(const std::string& flag) {
  if (!flag.empty()) return flag;
  std::string installed = absl::StrCat(ExecutableDirectory(), "/../share/ascend-dra/mock-nodes");
  if (access(installed.c_str(), F_OK) == 0) return installed;
  return absl::StrCat(ExecutableDirectory(), "/nodes");
}

// A shipped name, or a directory that holds a node.json.
std::string NodeSource(const std::string& node, const std::string& nodes_directory) {
  if (node.find('/') != std::string::npos) return node;
  return ascend::JoinPath(NodesDirectory(nodes_directory), node);
}

absl::StatusOr<mock::Node> ReadNode(const std::string& text, const std::string& path) {
  mock::Node node;
  std::string error;
  if (!mock::ParseNode(text, &node, &error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", error));
  }
  return node;
}

struct CreateFlags {
  std::string node, nodes_directory, node_directory;
  mock::TreeOptions tree;
  bool no_device_nodes = false;
};

absl::Status Create(CreateFlags flags) {
  const std::string source = mock::NodeFile(NodeSource(flags.node, flags.nodes_directory));
  ASCEND_ASSIGN_OR_RETURN(const std::string text, ascend::ReadFile(source), "node ", flags.node,
                          " (see ascend-mock-node list)");
  ASCEND_ASSIGN_OR_RETURN(const mock::Node node, ReadNode(text, source));
  flags.tree.device_nodes = !flags.no_device_nodes;
  ASCEND_RETURN_IF_ERROR(mock::CreateTree(node, flags.tree));
  const std::string directory = flags.node_directory.empty()
                                    ? ascend::JoinPath(flags.tree.root, "etc/ascend-dra/mock-node")
                                    : flags.node_directory;
  ASCEND_RETURN_IF_ERROR(ascend::MakeDirectories(ascend::JoinPath(directory, "state")));
  return ascend::WriteFileAtomically(mock::NodeFile(directory), text,
                                     {.mode = 0644, .durable = false});
}

absl::Status List(const std::string& nodes_directory) {
  const std::string directory = NodesDirectory(nodes_directory);
  ASCEND_ASSIGN_OR_RETURN(const std::vector<std::string> names, ascend::ListDirectory(directory));
  for (const std::string& name : names) {
    const std::string path = mock::NodeFile(ascend::JoinPath(directory, name));
    ASCEND_ASSIGN_OR_RETURN(const std::string text, ascend::ReadFile(path));
    ASCEND_ASSIGN_OR_RETURN(const mock::Node node, ReadNode(text, path));
    std::printf("%-14s %2zu chips  family %-5s %-12s driver %s\n", name.c_str(), node.chips.size(),
                mock::FamilyName(node.family),
                node.chips.empty() ? "" : node.chips.front().chip_name.c_str(),
                node.driver_version.c_str());
  }
  return absl::OkStatus();
}

absl::Status ListVnpus(const std::string& node_directory) {
  ASCEND_ASSIGN_OR_RETURN(const mock::VnpuState state, mock::VnpusOf(node_directory));
  std::fputs(mock::ToJsonText(state).c_str(), stdout);
  return absl::OkStatus();
}

absl::Status MakeVnpu(const std::string& node_directory, int physical_id,
                      const mock::VnpuWish& wish) {
  ASCEND_ASSIGN_OR_RETURN(const int id, mock::AddVnpu(node_directory, physical_id, wish));
  std::printf("%d\n", id);
  return absl::OkStatus();
}

// Until SIGTERM or SIGINT.
absl::Status RunKernel(const mock::VnpuKernelOptions& options) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before there are threads, which inherit it
  ASCEND_ASSIGN_OR_RETURN(const std::unique_ptr<mock::VnpuKernel> kernel,
                          mock::VnpuKernel::Start(options));
  std::puts("ready");
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  return absl::OkStatus();
}

std::string CheckDelay(const std::string& text) {
  absl::Duration delay;
  if (absl::ParseDuration(text, &delay) && delay > absl::ZeroDuration() &&
      delay < absl::Hours(24)) {
    return "";
  }
  return text + " is not a duration such as 100ms";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Makes a mock NPU node (device nodes, driver files, a description for the mock "
      "libdcmi.so) and changes it while it is in use.",
      "ascend-mock-node");
  app.set_version_flag("--version", ASCEND_DRA_VERSION);
  app.require_subcommand(1);

  CreateFlags create_flags;
  CLI::App* const create = app.add_subcommand("create", "make a node's file tree below --root");
  create
      ->add_option("--node", create_flags.node, "a name of `list`, or a directory with a node.json")
      ->required();
  create
      ->add_option("--root", create_flags.tree.root, "root of the tree; / on a throw-away machine")
      ->required();
  create->add_option("--node-dir", create_flags.node_directory,
                     "where the description goes (default <root>/etc/ascend-dra/mock-node)");
  create->add_option("--sysfs-dir", create_flags.tree.sysfs_directory,
                     "where the PCI part of sysfs goes (default <root>/sys; for / it is "
                     "/etc/ascend-dra/mock-sys)");
  create->add_option("--major", create_flags.tree.major, "major of the device nodes")
      ->capture_default_str()
      ->check(CLI::Range(1u, 4095u));
  create->add_flag("--no-device-nodes", create_flags.no_device_nodes,
                   "leave dev/ empty: for callers without CAP_MKNOD");
  create->add_option("--nodes-dir", create_flags.nodes_directory, "the shipped descriptions");

  std::string list_directory;
  CLI::App* const list = app.add_subcommand("list", "print the shipped nodes");
  list->add_option("--nodes-dir", list_directory, "the shipped descriptions");

  std::string node_directory;
  int physical_id = -1;
  std::vector<std::string> assignments;
  CLI::App* const chip = app.add_subcommand("chip", "pull out, put back or break a chip");
  chip->add_option("--node-dir", node_directory, "the node's directory")->required();
  chip->add_option("--physical-id", physical_id, "which chip")->required();
  chip->add_option("--set", assignments, "key=value, e.g. present=false, health=3, roce=null")
      ->required();

  int pid = 0;
  int64_t memory_bytes = 0;
  bool remove_process = false, clear_processes = false;
  CLI::App* const process =
      app.add_subcommand("process", "put a process on a chip, or take it off");
  process->add_option("--node-dir", node_directory, "the node's directory")->required();
  process->add_option("--physical-id", physical_id, "which chip")->required();
  CLI::Option* const pid_option =
      process->add_option("--pid", pid, "the process")->check(CLI::NonNegativeNumber);
  process->add_option("--memory-bytes", memory_bytes, "how much of the chip's memory it has")
      ->check(CLI::NonNegativeNumber);
  process->add_flag("--remove", remove_process, "take it off")->excludes("--memory-bytes");
  process->add_flag("--clear", clear_processes, "take all off")
      ->excludes("--pid", "--memory-bytes", "--remove");

  mock::CallEdit edit;
  std::string delay;
  bool clear = false;
  CLI::App* const call = app.add_subcommand("call", "make a library call misbehave");
  call->add_option("--node-dir", node_directory, "the node's directory")->required();
  CLI::Option* const name =
      call->add_option("--name", edit.function, "the function; \"*\" is every one");
  call->add_option("--card", edit.card, "only for this card");
  call->add_option("--device", edit.device, "only for this device of a card");
  call->add_option("--physical-id", edit.physical_id, "only for this chip");
  call->add_option("--return", edit.return_code, "the code it returns");
  call->add_option("--delay", delay, "how much longer it takes")->check(CheckDelay);
  call->add_flag("--hang", edit.hang, "it does not return while this is set");
  call->add_flag("--crash", edit.crash, "it takes its process down");
  CLI::Option* const after_work = call->add_flag("--after-work", edit.after_work,
                                                 "all that only when the call has done its work");
  call->add_flag("--clear", clear, "back to normal: the function, or without --name all of them")
      ->excludes("--return", "--delay", "--hang", "--crash")
      ->excludes(after_work);

  CLI::App* const vnpu = app.add_subcommand("vnpu", "what an administrator does with vNPUs");
  vnpu->require_subcommand(1);
  int vnpu_id = -1;
  mock::VnpuWish wish;
  const auto add_vnpu_command = [&](const char* command, const char* description) {
    CLI::App* const added = vnpu->add_subcommand(command, description);
    added->add_option("--node-dir", node_directory, "the node's directory")->required();
    return added;
  };
  CLI::App* const vnpu_list = add_vnpu_command("list", "print them and the modes, as JSON");
  CLI::App* const vnpu_create = add_vnpu_command("create", "make one and print its id");
  vnpu_create->add_option("--physical-id", physical_id, "on which chip")->required();
  vnpu_create->add_option("--template", wish.template_name, "its template")->required();
  vnpu_create->add_option("--id", wish.id, "its id (default: the chip's first free one)");
  vnpu_create->add_option("--vgroup", wish.vgroup,
                          "its vGroup (310P; default: the first that fits)");
  CLI::App* const vnpu_destroy = add_vnpu_command("destroy", "remove one, also a busy one");
  vnpu_destroy->add_option("--id", vnpu_id, "which")->required();
  CLI::App* const vnpu_set = add_vnpu_command("set", "change what the library tells about one");
  vnpu_set->add_option("--id", vnpu_id, "which")->required();
  vnpu_set->add_option("assignments", assignments, "busy=true, containerUsed=true, status=1")
      ->required();
  std::string recovery, vdevice_mode;
  CLI::App* const vnpu_mode = add_vnpu_command("mode", "set the node's modes, whatever there is");
  vnpu_mode->add_option("--recovery", recovery, "whether a boot makes the vNPUs again")
      ->check(CLI::IsMember({"on", "off"}));
  vnpu_mode->add_option("--vdevice", vdevice_mode, "what vNPUs are for")
      ->check(CLI::IsMember({"container", "vm"}));
  vnpu_mode->require_option(2, 3);  // with --node-dir

  bool permute_ids = false;
  CLI::App* const reboot = app.add_subcommand("reboot", "what a boot does to the vNPUs");
  reboot->add_option("--node-dir", node_directory, "the node's directory")->required();
  reboot->add_flag("--permute-ids", permute_ids, "those that come back have other ids");

  mock::VnpuKernelOptions kernel_options;
  bool no_vnpu_nodes = false;
  CLI::App* const kernel = app.add_subcommand(
      "kernel", "keep /dev/vdavinci<id> as the vNPUs are, until SIGTERM; prints \"ready\"");
  kernel->add_option("--node-dir", kernel_options.node_directory, "the node's directory")
      ->required();
  kernel->add_option("--root", kernel_options.root, "the node's file tree")->required();
  kernel->add_option("--major", kernel_options.major, "major of the device nodes")
      ->capture_default_str()
      ->check(CLI::Range(1u, 4095u));
  kernel->add_flag("--no-device-nodes", no_vnpu_nodes,
                   "make regular files: for callers without CAP_MKNOD");

  try {
    app.parse(argc, argv);
    if (process->parsed() && !clear_processes && pid_option->count() == 0) {
      throw CLI::RequiredError("--pid or --clear");
    }
    if (call->parsed()) {
      if (name->count() == 0 && !clear) throw CLI::RequiredError("--name");
      if (!clear && !edit.return_code && delay.empty() && !edit.hang && !edit.crash) {
        throw CLI::RequiredError("one of --return, --delay, --hang, --crash, --clear");
      }
    }
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::Error& error) {
    std::fprintf(stderr, "ascend-mock-node: %s\n", error.what());
    return kUsageError;
  }

  absl::Status status;
  if (create->parsed()) status = Create(create_flags);
  if (list->parsed()) status = List(list_directory);
  if (chip->parsed()) status = mock::SetOnChip(node_directory, physical_id, assignments);
  if (process->parsed()) {
    status = clear_processes  ? mock::ClearProcesses(node_directory, physical_id)
             : remove_process ? mock::RemoveProcess(node_directory, physical_id, pid)
                              : mock::SetProcess(node_directory, physical_id, pid, memory_bytes);
  }
  if (call->parsed()) {
    absl::Duration parsed;
    if (!delay.empty() && absl::ParseDuration(delay, &parsed)) {
      edit.delay_ms = static_cast<int>(absl::ToInt64Milliseconds(parsed));
    }
    status = clear && name->count() == 0 ? mock::ClearCalls(node_directory)
                                         : mock::SetCall(node_directory, edit);
  }
  if (vnpu_list->parsed()) status = ListVnpus(node_directory);
  if (vnpu_create->parsed()) status = MakeVnpu(node_directory, physical_id, wish);
  if (vnpu_destroy->parsed()) status = mock::RemoveVnpu(node_directory, vnpu_id);
  if (vnpu_set->parsed()) status = mock::SetOnVnpu(node_directory, vnpu_id, assignments);
  if (vnpu_mode->parsed()) {
    std::optional<bool> on;
    if (!recovery.empty()) on = recovery == "on";
    std::optional<int> mode;
    if (!vdevice_mode.empty()) {
      mode = vdevice_mode == "vm" ? DCMI_VDEVICE_MODE_VM : DCMI_VDEVICE_MODE_CONTAINER;
    }
    status = mock::SetVnpuModes(node_directory, on, mode);
  }
  if (reboot->parsed()) status = mock::Reboot(node_directory, permute_ids);
  if (kernel->parsed()) {
    kernel_options.device_nodes = !no_vnpu_nodes;
    status = RunKernel(kernel_options);
  }
  if (!status.ok()) {
    std::fprintf(stderr, "ascend-mock-node: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
