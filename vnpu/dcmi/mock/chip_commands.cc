#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "vnpu/dcmi/mock/commands.h"
#include "vnpu/dcmi/mock/edit.h"

namespace ascend::dcmi::mock {
namespace {

void AddChip(CLI::App& app, Commands& commands) {
  struct Flags {
    std::string node_directory;
    int physical_id = -1;
    std::vector<std::string> assignments;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* const chip = app.add_subcommand("chip", "pull out, put back or break a chip");
  chip->add_option("--node-dir", flags->node_directory, "the node's directory")->required();
  chip->add_option("--physical-id", flags->physical_id, "which chip")->required();
  chip->add_option("--set", flags->assignments,
                   "key=value, e.g. present=false, health=3, roce=null")
      ->required();
  commands.Add(chip, [flags] {
    return SetOnChip(flags->node_directory, flags->physical_id, flags->assignments);
  });
}

void AddProcess(CLI::App& app, Commands& commands) {
  struct Flags {
    std::string node_directory;
    int physical_id = -1, pid = 0;
    int64_t memory_bytes = 0;
    bool remove = false, clear = false;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* const process =
      app.add_subcommand("process", "put a process on a chip, or take it off");
  process->add_option("--node-dir", flags->node_directory, "the node's directory")->required();
  process->add_option("--physical-id", flags->physical_id, "which chip")->required();
  const CLI::Option* const pid =
      process->add_option("--pid", flags->pid, "the process")->check(CLI::NonNegativeNumber);
  process->add_option("--memory-bytes", flags->memory_bytes, "how much of the chip's memory it has")
      ->check(CLI::NonNegativeNumber);
  process->add_flag("--remove", flags->remove, "take it off")->excludes("--memory-bytes");
  process->add_flag("--clear", flags->clear, "take all off")
      ->excludes("--pid", "--memory-bytes", "--remove");
  process->callback([flags, pid] {
    if (!flags->clear && pid->count() == 0) throw CLI::RequiredError("--pid or --clear");
  });
  commands.Add(process, [flags] {
    if (flags->clear) return ClearProcesses(flags->node_directory, flags->physical_id);
    if (flags->remove) {
      return RemoveProcess(flags->node_directory, flags->physical_id, flags->pid);
    }
    return SetProcess(flags->node_directory, flags->physical_id, flags->pid, flags->memory_bytes);
  });
}

void AddCall(CLI::App& app, Commands& commands) {
  struct Flags {
    std::string node_directory, delay;
    CallEdit edit;
    bool clear = false;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* const call = app.add_subcommand("call", "make a library call misbehave");
  call->add_option("--node-dir", flags->node_directory, "the node's directory")->required();
  const CLI::Option* const name =
      call->add_option("--name", flags->edit.function, "the function; \"*\" is every one");
  call->add_option("--card", flags->edit.card, "only for this card");
  call->add_option("--device", flags->edit.device, "only for this device of a card");
  call->add_option("--physical-id", flags->edit.physical_id, "only for this chip");
  call->add_option("--return", flags->edit.return_code, "the code it returns");
  call->add_option("--delay", flags->delay, "how much longer it takes")->check(CheckDuration);
  call->add_flag("--hang", flags->edit.hang, "it does not return while this is set");
  call->add_flag("--crash", flags->edit.crash, "it takes its process down");
  CLI::Option* const after_work = call->add_flag("--after-work", flags->edit.after_work,
                                                 "all that only when the call has done its work");
  call->add_flag("--clear", flags->clear,
                 "back to normal: the function, or without --name all of them")
      ->excludes("--return", "--delay", "--hang", "--crash")
      ->excludes(after_work);
  call->callback([flags, name] {
    const CallEdit& edit = flags->edit;
    if (name->count() == 0 && !flags->clear) throw CLI::RequiredError("--name");
    if (!flags->clear && !edit.return_code && flags->delay.empty() && !edit.hang && !edit.crash) {
      throw CLI::RequiredError("one of --return, --delay, --hang, --crash, --clear");
    }
  });
  commands.Add(call, [flags, name] {
    if (!flags->delay.empty()) flags->edit.delay_ms = DurationMs(flags->delay);
    return flags->clear && name->count() == 0 ? ClearCalls(flags->node_directory)
                                              : SetCall(flags->node_directory, flags->edit);
  });
}

}  // namespace

std::string CheckDuration(const std::string& text) {
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration) && duration > absl::ZeroDuration() &&
      duration < absl::Hours(24)) {
    return "";
  }
  return text + " is not a duration such as 100ms";
}

int DurationMs(const std::string& text) {
  absl::Duration duration;
  return absl::ParseDuration(text, &duration)
             ? static_cast<int>(absl::ToInt64Milliseconds(duration))
             : 0;
}

void AddChipCommands(CLI::App& app, Commands& commands) {
  AddChip(app, commands);
  AddProcess(app, commands);
  AddCall(app, commands);
}

}  // namespace ascend::dcmi::mock
