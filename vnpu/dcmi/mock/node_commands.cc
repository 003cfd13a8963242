#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "vnpu/dcmi/mock/commands.h"
#include "vnpu/dcmi/mock/node.h"
#include "vnpu/dcmi/mock/tree.h"
#include "vnpu/dcmi/mock/vnpu_edit.h"
#include "vnpu/dcmi/mock/vnpu_kernel.h"

namespace ascend::dcmi::mock {
namespace {

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
  return JoinPath(NodesDirectory(nodes_directory), node);
}

absl::StatusOr<Node> ReadNode(const std::string& text, const std::string& path) {
  Node node;
  std::string error;
  if (!ParseNode(text, &node, &error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", error));
  }
  return node;
}

struct CreateFlags {
  std::string node, nodes_directory, node_directory;
  TreeOptions tree;
  bool no_device_nodes = false;
};

absl::Status Create(CreateFlags flags) {
  const std::string source = NodeFile(NodeSource(flags.node, flags.nodes_directory));
  ASCEND_ASSIGN_OR_RETURN(const std::string text, ReadFile(source), "node ", flags.node,
                          " (see ascend-mock-node list)");
  ASCEND_ASSIGN_OR_RETURN(const Node node, ReadNode(text, source));
  flags.tree.device_nodes = !flags.no_device_nodes;
  ASCEND_RETURN_IF_ERROR(CreateTree(node, flags.tree));
  const std::string directory = flags.node_directory.empty()
                                    ? JoinPath(flags.tree.root, "etc/ascend-dra/mock-node")
                                    : flags.node_directory;
  ASCEND_RETURN_IF_ERROR(MakeDirectories(JoinPath(directory, "state")));
  return WriteFileAtomically(NodeFile(directory), text, {.mode = 0644, .durable = false});
}

absl::Status List(const std::string& nodes_directory) {
  const std::string directory = NodesDirectory(nodes_directory);
  ASCEND_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    const std::string path = NodeFile(JoinPath(directory, name));
    ASCEND_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    ASCEND_ASSIGN_OR_RETURN(const Node node, ReadNode(text, path));
    std::printf("%-14s %2zu chips  family %-5s %-12s driver %s\n", name.c_str(), node.chips.size(),
                FamilyName(node.family),
                node.chips.empty() ? "" : node.chips.front().chip_name.c_str(),
                node.driver_version.c_str());
  }
  return absl::OkStatus();
}

// Until SIGTERM or SIGINT.
absl::Status RunKernel(const VnpuKernelOptions& options) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before there are threads, which inherit it
  ASCEND_ASSIGN_OR_RETURN(const std::unique_ptr<VnpuKernel> kernel, VnpuKernel::Start(options));
  std::puts("ready");
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  return absl::OkStatus();
}

void AddCreate(CLI::App& app, Commands& commands) {
  const auto flags = std::make_shared<CreateFlags>();
  CLI::App* const create = app.add_subcommand("create", "make a node's file tree below --root");
  create->add_option("--node", flags->node, "a name of `list`, or a directory with a node.json")
      ->required();
  create->add_option("--root", flags->tree.root, "root of the tree; / on a throw-away machine")
      ->required();
  create->add_option("--node-dir", flags->node_directory,
                     "where the description goes (default <root>/etc/ascend-dra/mock-node)");
  create->add_option("--sysfs-dir", flags->tree.sysfs_directory,
                     "where the PCI part of sysfs goes (default <root>/sys; for / it is "
                     "/etc/ascend-dra/mock-sys)");
  create->add_option("--major", flags->tree.major, "major of the device nodes")
      ->capture_default_str()
      ->check(CLI::Range(1u, 4095u));
  create->add_flag("--no-device-nodes", flags->no_device_nodes,
                   "leave dev/ empty: for callers without CAP_MKNOD");
  create->add_option("--nodes-dir", flags->nodes_directory, "the shipped descriptions");
  commands.Add(create, [flags] { return Create(*flags); });
}

void AddKernel(CLI::App& app, Commands& commands) {
  struct Flags {
    VnpuKernelOptions options;
    bool no_device_nodes = false;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* const kernel = app.add_subcommand(
      "kernel", "keep /dev/vdavinci<id> as the vNPUs are, until SIGTERM; prints \"ready\"");
  kernel->add_option("--node-dir", flags->options.node_directory, "the node's directory")
      ->required();
  kernel->add_option("--root", flags->options.root, "the node's file tree")->required();
  kernel->add_option("--major", flags->options.major, "major of the device nodes")
      ->capture_default_str()
      ->check(CLI::Range(1u, 4095u));
  kernel->add_flag("--no-device-nodes", flags->no_device_nodes,
                   "make regular files: for callers without CAP_MKNOD");
  commands.Add(kernel, [flags] {
    flags->options.device_nodes = !flags->no_device_nodes;
    return RunKernel(flags->options);
  });
}

}  // namespace

void AddNodeCommands(CLI::App& app, Commands& commands) {
  AddCreate(app, commands);
  const auto nodes_directory = std::make_shared<std::string>();
  CLI::App* const list = app.add_subcommand("list", "print the shipped nodes");
  list->add_option("--nodes-dir", *nodes_directory, "the shipped descriptions");
  commands.Add(list, [nodes_directory] { return List(*nodes_directory); });

  struct RebootFlags {
    std::string node_directory;
    bool permute_ids = false;
  };
  const auto flags = std::make_shared<RebootFlags>();
  CLI::App* const reboot = app.add_subcommand("reboot", "what a boot does to the vNPUs");
  reboot->add_option("--node-dir", flags->node_directory, "the node's directory")->required();
  reboot->add_flag("--permute-ids", flags->permute_ids, "those that come back have other ids");
  commands.Add(reboot, [flags] { return Reboot(flags->node_directory, flags->permute_ids); });
  AddKernel(app, commands);
}

}  // namespace ascend::dcmi::mock
