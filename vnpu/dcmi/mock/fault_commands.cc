#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/core/status_macros.h"
#include "vnpu/dcmi/mock/commands.h"
#include "vnpu/dcmi/mock/fault_edit.h"

namespace ascend::dcmi::mock {
namespace {

struct Flags {
  std::string node_directory;
  int physical_id = -1;
  std::string code;
  FaultWish wish;
  bool all = false, no_event = false, no_list = false, still_listed = false;
  std::string network;
  ReturnWish back;
  ResetWish reset;
  std::string duration, outband;
  std::vector<std::string> lose;
};
using SharedFlags = std::shared_ptr<Flags>;

void AddChipOptions(CLI::App* command, const SharedFlags& flags) {
  command->add_option("--node-dir", flags->node_directory, "the node's directory")->required();
  command->add_option("--physical-id,--chip", flags->physical_id, "which chip")->required();
}

void AddFaultOptions(CLI::App* command, const SharedFlags& flags) {
  AddChipOptions(command, flags);
  command->add_option("--code", flags->code, "hex, e.g. 80E01801")->required();
  command->add_option("--severity", flags->wish.severity, "how bad it is")
      ->capture_default_str()
      ->check(CLI::IsMember({"warning", "minor", "major", "critical"}));
  command->add_option("--text", flags->wish.text, "what the library says about the code");
  command->add_option("--additional", flags->wish.additional, "the event's additional information");
}

absl::Status ListFaults(const Flags& flags) {
  ASCEND_ASSIGN_OR_RETURN(const FaultState state, FaultsOf(flags.node_directory));
  std::fputs(ToJsonText(state).c_str(), stdout);
  return absl::OkStatus();
}

absl::Status Add(Flags& flags) {
  ASCEND_ASSIGN_OR_RETURN(flags.wish.code, ParseFaultCode(flags.code));
  flags.wish.event = !flags.no_event;
  flags.wish.listed = !flags.no_list;
  return AddFault(flags.node_directory, flags.physical_id, flags.wish);
}

absl::Status OneShot(Flags& flags) {
  ASCEND_ASSIGN_OR_RETURN(flags.wish.code, ParseFaultCode(flags.code));
  return TellOneShot(flags.node_directory, flags.physical_id, flags.wish);
}

absl::Status Clear(const Flags& flags) {
  std::optional<unsigned> code;
  if (!flags.all) {
    ASCEND_ASSIGN_OR_RETURN(code, ParseFaultCode(flags.code));
  }
  return ClearFaults(flags.node_directory, flags.physical_id, code, !flags.no_event);
}

void AddFaultGroup(CLI::App& app, Commands& commands) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* const fault = app.add_subcommand("fault", "faults of chips come and go");
  fault->require_subcommand(1);
  CLI::App* const list = fault->add_subcommand("list", "print them, as JSON");
  list->add_option("--node-dir", flags->node_directory, "the node's directory")->required();
  commands.Add(list, [flags] { return ListFaults(*flags); });

  CLI::App* const add = fault->add_subcommand("add", "one comes; if it is there, it comes again");
  AddFaultOptions(add, flags);
  add->add_flag("--no-event", flags->no_event, "the event gets lost");
  add->add_flag("--no-list", flags->no_list, "the list of codes does not have it");
  add->add_flag("--survives-reset", flags->wish.survives_reset, "a reset does not mend it");
  add->add_flag("--drops-chip", flags->wish.drops_chip, "the chip answers -8012 while it is there");
  commands.Add(add, [flags] { return Add(*flags); });

  CLI::App* const one_shot =
      fault->add_subcommand("oneshot", "something happens and is over: an event alone");
  AddFaultOptions(one_shot, flags);
  commands.Add(one_shot, [flags] { return OneShot(*flags); });

  CLI::App* const clear = fault->add_subcommand("clear", "one goes, or all of a chip");
  AddChipOptions(clear, flags);
  CLI::Option* const code = clear->add_option("--code", flags->code, "which, hex");
  clear->add_flag("--all", flags->all, "every one of the chip")->excludes(code);
  clear->add_flag("--no-event", flags->no_event, "the events get lost");
  clear->callback([flags, code] {
    if (!flags->all && code->count() == 0) throw CLI::RequiredError("--code or --all");
  });
  commands.Add(clear, [flags] { return Clear(*flags); });
}

void AddPresence(CLI::App& app, Commands& commands) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* const lose = app.add_subcommand("lose", "a chip drops off the bus");
  AddChipOptions(lose, flags);
  lose->add_flag("--still-listed", flags->still_listed,
                 "the library still enumerates it, but gets no answer (-8012)");
  lose->add_flag("--no-event", flags->no_event, "the event gets lost");
  commands.Add(lose, [flags] {
    return LoseChip(flags->node_directory, flags->physical_id, flags->still_listed,
                    !flags->no_event);
  });
  CLI::App* const back = app.add_subcommand("return", "it is back");
  AddChipOptions(back, flags);
  back->add_option("--bus-id", flags->back.bus_id, "under this PCI address");
  back->add_option("--logic-id", flags->back.logic_id, "at this place in the library's list")
      ->check(CLI::NonNegativeNumber);
  back->add_flag("--no-event", flags->no_event, "the event gets lost");
  commands.Add(back, [flags] {
    flags->back.event = !flags->no_event;
    return ReturnChip(flags->node_directory, flags->physical_id, flags->back);
  });
}

void AddNetwork(CLI::App& app, Commands& commands) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* const network = app.add_subcommand("network", "the link of a chip's RoCE port");
  AddChipOptions(network, flags);
  network->add_option("state", flags->network, "ok, down or untested")
      ->required()
      ->check(CLI::IsMember({"ok", "down", "untested"}));
  commands.Add(network, [flags] {
    return SetNetwork(flags->node_directory, flags->physical_id, flags->network);
  });
}

void AddBehaviour(CLI::App& app, Commands& commands) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* const resets = app.add_subcommand("resets", "how resets go on this node");
  resets->add_option("--node-dir", flags->node_directory, "the node's directory")->required();
  resets->add_option("--duration", flags->duration, "until the chips have started again")
      ->check(CheckDuration);
  resets->add_option("--stops-at", flags->reset.stops_at,
                     "the boot status (0-3) that they do not get beyond; -1: they start");
  resets->add_option("--outband", flags->outband, "whether there is a channel out of band")
      ->check(CLI::IsMember({"on", "off"}));
  resets->add_option("--unit", flags->reset.unit, "what goes down together")
      ->check(CLI::IsMember({"product", "chip", "card", "module", "modulePair", "ring", "mesh"}));
  resets->require_option(2, 0);  // with --node-dir
  commands.Add(resets, [flags] {
    if (!flags->duration.empty()) flags->reset.duration_ms = DurationMs(flags->duration);
    if (!flags->outband.empty()) flags->reset.outband = flags->outband == "on";
    return SetResetBehaviour(flags->node_directory, flags->reset);
  });

  CLI::App* const events =
      app.add_subcommand("events", "what becomes of events; without options they all arrive");
  events->add_option("--node-dir", flags->node_directory, "the node's directory")->required();
  events->add_option("--lose", flags->lose, "which get lost")
      ->check(CLI::IsMember({"occurred", "recovered", "oneShot"}));
  events->add_option("--delay", flags->duration, "how late each comes")->check(CheckDuration);
  commands.Add(events, [flags] {
    return SetEventBehaviour(flags->node_directory, flags->lose,
                             flags->duration.empty() ? 0 : DurationMs(flags->duration));
  });
}

}  // namespace

void AddFaultCommands(CLI::App& app, Commands& commands) {
  AddFaultGroup(app, commands);
  AddNetwork(app, commands);
  AddPresence(app, commands);
  AddBehaviour(app, commands);
}

}  // namespace ascend::dcmi::mock
