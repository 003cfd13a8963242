#include "vnpu/dcmi/mock/fault_edit.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/core/status_macros.h"
#include "nlohmann/json.hpp"
#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/mock/edit_json.h"
#include "vnpu/dcmi/mock/node.h"

namespace ascend::dcmi::mock {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSeverities[] = {"warning", "minor", "major", "critical"};

absl::StatusOr<unsigned> ParseSeverity(const std::string& text) {
  for (unsigned i = 0; i < std::size(kSeverities); ++i) {
    if (text == kSeverities[i]) return i;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is no severity: warning, minor, major or critical"));
}

absl::Status NoChip(int physical_id) {
  return absl::NotFoundError(absl::StrCat("no chip with physical id ", physical_id));
}

// Runs `change` on the state with the chip's logic id.
absl::Status Change(
    const std::string& node_directory, int physical_id,
    const std::function<absl::Status(FaultState&, NoticeList&, int logic_id)>& change) {
  ASCEND_ASSIGN_OR_RETURN(const Node node, NodeOf(node_directory));
  const Chip* const chip = node.FindPhysical(physical_id);
  if (chip == nullptr) return NoChip(physical_id);
  absl::Status status;
  try {
    const int code =
        ChangeFaultState(node_directory, [&](FaultState& state, NoticeList& notices) -> int {
          status = change(state, notices, node.LogicIdOf(*chip));
          return status.ok() ? DCMI_OK : DCMI_INNER_ERR;
        });
    if (status.ok() && code != DCMI_OK) {
      return absl::UnavailableError(
          absl::StrCat("cannot write in ", StateDirectory(node_directory)));
    }
  } catch (const std::exception& problem) {
    return absl::InvalidArgumentError(problem.what());
  }
  return status;
}

absl::StatusOr<Fault> FaultOf(int physical_id, const FaultWish& wish, FaultState& state) {
  ASCEND_ASSIGN_OR_RETURN(const unsigned severity, ParseSeverity(wish.severity));
  if (!wish.text.empty()) state.texts[wish.code] = wish.text;
  const auto text = state.texts.find(wish.code);
  return Fault{.physical_id = physical_id,
               .code = wish.code,
               .severity = severity,
               .listed = wish.listed,
               .survives_reset = wish.survives_reset,
               .drops_chip = wish.drops_chip,
               .raised_ms = WallTimeMs(),
               .name = text != state.texts.end() ? text->second
                                                 : absl::StrFormat("mock fault 0x%08X", wish.code),
               .additional = wish.additional};
}

// Moves a chip to where it is the `logic_id`th of those that are present.
absl::Status Move(Json& chips, int physical_id, int logic_id) {
  Json moved, others = Json::array();
  for (Json& chip : chips) {
    if (chip.value("physicalID", Json()) == physical_id) {
      moved = chip;
    } else {
      others.push_back(chip);
    }
  }
  Json ordered = Json::array();
  int place = 0;
  bool placed = false;
  for (Json& chip : others) {
    if (place == logic_id && !placed) {
      ordered.push_back(moved);
      placed = true;
    }
    if (chip.value("present", true)) ++place;
    ordered.push_back(chip);
  }
  if (!placed && place == logic_id) {
    ordered.push_back(moved);
    placed = true;
  }
  if (!placed) {
    return absl::InvalidArgumentError(absl::StrCat("there is no logic id ", logic_id, " for ",
                                                   place, " other chips that are present"));
  }
  chips = std::move(ordered);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FaultState> FaultsOf(const std::string& node_directory) {
  try {
    return ReadFaultState(node_directory);
  } catch (const std::exception& problem) {
    return absl::InvalidArgumentError(problem.what());
  }
}

std::string ToJsonText(const FaultState& state) {
  Json json;
  json["faults"] = Json::array();
  for (const Fault& fault : state.faults) {
    json["faults"].push_back({{"physicalID", fault.physical_id},
                              {"code", absl::StrFormat("%08X", fault.code)},
                              {"severity", kSeverities[std::min(fault.severity, 3u)]},
                              {"listed", fault.listed},
                              {"survivesReset", fault.survives_reset},
                              {"dropsChip", fault.drops_chip},
                              {"name", fault.name}});
  }
  return json.dump(2) + "\n";
}

absl::StatusOr<unsigned> ParseFaultCode(const std::string& text) {
  uint32_t code = 0;
  if (!absl::SimpleHexAtoi(text, &code)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is no fault code: up to eight hex digits, like 80E01801"));
  }
  return code;
}

absl::Status AddFault(const std::string& node_directory, int physical_id, const FaultWish& wish) {
  return Change(node_directory, physical_id,
                [&](FaultState& state, NoticeList& notices, int logic_id) -> absl::Status {
                  ASCEND_ASSIGN_OR_RETURN(Fault fault, FaultOf(physical_id, wish, state));
                  if (wish.event) notices.Add(state, fault, logic_id, 1);
                  Fault* const old = state.Find(physical_id, wish.code);
                  if (old != nullptr) {
                    *old = std::move(fault);
                  } else {
                    state.faults.push_back(std::move(fault));
                  }
                  return absl::OkStatus();
                });
}

absl::Status TellOneShot(const std::string& node_directory, int physical_id,
                         const FaultWish& wish) {
  return Change(node_directory, physical_id,
                [&](FaultState& state, NoticeList& notices, int logic_id) -> absl::Status {
                  ASCEND_ASSIGN_OR_RETURN(Fault fault, FaultOf(physical_id, wish, state));
                  notices.Add(state, fault, logic_id, 2);
                  return absl::OkStatus();
                });
}

absl::Status ClearFaults(const std::string& node_directory, int physical_id,
                         std::optional<unsigned> code, bool event) {
  return Change(
      node_directory, physical_id,
      [&](FaultState& state, NoticeList& notices, int logic_id) -> absl::Status {
        std::vector<Fault> left;
        for (Fault& fault : state.faults) {
          if (fault.physical_id != physical_id || code.value_or(fault.code) != fault.code) {
            left.push_back(fault);
          } else if (event) {
            notices.Add(state, fault, logic_id, 0);
          }
        }
        if (left.size() == state.faults.size()) {
          return absl::NotFoundError(
              absl::StrCat("the chip with physical id ", physical_id, " has no such fault"));
        }
        state.faults = std::move(left);
        return absl::OkStatus();
      });
}

absl::Status SetNetwork(const std::string& node_directory, int physical_id,
                        const std::string& network) {
  int result = DCMI_RDFX_OK;
  if (network == "down") {
    result = DCMI_RDFX_UNREACH;
  } else if (network == "untested") {
    result = DCMI_RDFX_INIT;
  } else if (network != "ok") {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", network, "\" is no state of a port: ok, down or untested"));
  }
  return EditChip(node_directory, physical_id, [&](Json& chip) {
    chip["networkHealth"] = result;
    return absl::OkStatus();
  });
}

absl::Status LoseChip(const std::string& node_directory, int physical_id, bool still_listed,
                      bool event) {
  // The event first: afterwards the chip has no logic id.
  ASCEND_RETURN_IF_ERROR(AddFault(node_directory, physical_id,
                                  {.code = kChipDropped,
                                   .severity = "critical",
                                   .text = "The chip has dropped off the bus",
                                   .drops_chip = true,
                                   .event = event}));
  if (still_listed) return absl::OkStatus();
  return EditChip(node_directory, physical_id, [](Json& chip) {
    chip["present"] = false;
    return absl::OkStatus();
  });
}

absl::Status ReturnChip(const std::string& node_directory, int physical_id,
                        const ReturnWish& wish) {
  ASCEND_RETURN_IF_ERROR(EditNode(node_directory, [&](Json& node) -> absl::Status {
    Json& chips = node["chips"];
    const auto chip = std::find_if(chips.begin(), chips.end(), [=](const Json& one) {
      return one.value("physicalID", Json()) == physical_id;
    });
    if (chip == chips.end()) return NoChip(physical_id);
    (*chip)["present"] = true;
    if (!wish.bus_id.empty()) (*chip)["pci"]["busID"] = wish.bus_id;
    return wish.logic_id.has_value() ? Move(chips, physical_id, *wish.logic_id) : absl::OkStatus();
  }));
  const absl::Status cleared = ClearFaults(node_directory, physical_id, kChipDropped, wish.event);
  return absl::IsNotFound(cleared) ? absl::OkStatus() : cleared;
}

absl::Status SetResetBehaviour(const std::string& node_directory, const ResetWish& wish) {
  return EditNode(node_directory, [&](Json& node) {
    Json& reset = node["reset"];
    if (!reset.is_object()) reset = Json::object();
    if (wish.unit == "product") reset.erase("unit");
    if (!wish.unit.empty() && wish.unit != "product") reset["unit"] = wish.unit;
    if (wish.duration_ms.has_value()) reset["durationMs"] = *wish.duration_ms;
    if (wish.stops_at == -1) reset.erase("stopsAt");
    if (wish.stops_at.has_value() && wish.stops_at != -1) reset["stopsAt"] = *wish.stops_at;
    if (wish.outband.has_value()) reset["outband"] = *wish.outband;
    return absl::OkStatus();
  });
}

absl::Status SetEventBehaviour(const std::string& node_directory,
                               const std::vector<std::string>& lose, int delay_ms) {
  return EditNode(node_directory, [&](Json& node) {
    node["events"] = {{"lose", lose}, {"delayMs", delay_ms}};
    return absl::OkStatus();
  });
}

}  // namespace ascend::dcmi::mock
