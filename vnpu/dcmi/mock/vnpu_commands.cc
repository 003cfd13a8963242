#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/core/status_macros.h"
#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/mock/commands.h"
#include "vnpu/dcmi/mock/vnpu_edit.h"

namespace ascend::dcmi::mock {
namespace {

struct Flags {
  std::string node_directory;
  int physical_id = -1, id = -1;
  VnpuWish wish;
  std::vector<std::string> assignments;
  std::string recovery, vdevice_mode;
};

absl::Status ListVnpus(const std::string& node_directory) {
  ASCEND_ASSIGN_OR_RETURN(const VnpuState state, VnpusOf(node_directory));
  std::fputs(ToJsonText(state).c_str(), stdout);
  return absl::OkStatus();
}

absl::Status MakeVnpu(const std::string& node_directory, int physical_id, const VnpuWish& wish) {
  ASCEND_ASSIGN_OR_RETURN(const int id, AddVnpu(node_directory, physical_id, wish));
  std::printf("%d\n", id);
  return absl::OkStatus();
}

absl::Status SetModes(const Flags& flags) {
  std::optional<bool> on;
  if (!flags.recovery.empty()) on = flags.recovery == "on";
  std::optional<int> mode;
  if (!flags.vdevice_mode.empty()) {
    mode = flags.vdevice_mode == "vm" ? DCMI_VDEVICE_MODE_VM : DCMI_VDEVICE_MODE_CONTAINER;
  }
  return SetVnpuModes(flags.node_directory, on, mode);
}

}  // namespace

void AddVnpuCommands(CLI::App& app, Commands& commands) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* const vnpu = app.add_subcommand("vnpu", "what an administrator does with vNPUs");
  vnpu->require_subcommand(1);
  const auto add = [&](const char* command, const char* description) {
    CLI::App* const added = vnpu->add_subcommand(command, description);
    added->add_option("--node-dir", flags->node_directory, "the node's directory")->required();
    return added;
  };
  CLI::App* const list = add("list", "print them and the modes, as JSON");
  commands.Add(list, [flags] { return ListVnpus(flags->node_directory); });

  CLI::App* const create = add("create", "make one and print its id");
  create->add_option("--physical-id", flags->physical_id, "on which chip")->required();
  create->add_option("--template", flags->wish.template_name, "its template")->required();
  create->add_option("--id", flags->wish.id, "its id (default: the chip's first free one)");
  create->add_option("--vgroup", flags->wish.vgroup,
                     "its vGroup (310P; default: the first that fits)");
  commands.Add(
      create, [flags] { return MakeVnpu(flags->node_directory, flags->physical_id, flags->wish); });

  CLI::App* const destroy = add("destroy", "remove one, also a busy one");
  destroy->add_option("--id", flags->id, "which")->required();
  commands.Add(destroy, [flags] { return RemoveVnpu(flags->node_directory, flags->id); });

  CLI::App* const set = add("set", "change what the library tells about one");
  set->add_option("--id", flags->id, "which")->required();
  set->add_option("assignments", flags->assignments, "busy=true, containerUsed=true, status=1")
      ->required();
  commands.Add(set,
               [flags] { return SetOnVnpu(flags->node_directory, flags->id, flags->assignments); });

  CLI::App* const mode = add("mode", "set the node's modes, whatever there is");
  mode->add_option("--recovery", flags->recovery, "whether a boot makes the vNPUs again")
      ->check(CLI::IsMember({"on", "off"}));
  mode->add_option("--vdevice", flags->vdevice_mode, "what vNPUs are for")
      ->check(CLI::IsMember({"container", "vm"}));
  mode->require_option(2, 3);  // with --node-dir
  commands.Add(mode, [flags] { return SetModes(*flags); });
}

}  // namespace ascend::dcmi::mock
