#include "vnpu/dcmi/mock/fault_state.h"

#include <time.h>

#include <exception>
#include <limits>

#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/mock/json_object.h"

namespace ascend::dcmi::mock {
namespace {

Fault ParseFault(Object& object) {
  Fault fault;
  object.Get("physicalID", &fault.physical_id);
  object.Get("code", &fault.code);
  object.Get("severity", &fault.severity);
  object.Get("listed", &fault.listed);
  object.Get("survivesReset", &fault.survives_reset);
  object.Get("dropsChip", &fault.drops_chip);
  object.Get("serial", &fault.serial);
  object.Get("raisedMs", &fault.raised_ms);
  object.Get("name", &fault.name);
  object.Get("additional", &fault.additional);
  return fault;
}

Json ToJson(const Fault& fault) {
  return {{"physicalID", fault.physical_id},
          {"code", fault.code},
          {"severity", fault.severity},
          {"listed", fault.listed},
          {"survivesReset", fault.survives_reset},
          {"dropsChip", fault.drops_chip},
          {"serial", fault.serial},
          {"raisedMs", fault.raised_ms},
          {"name", fault.name},
          {"additional", fault.additional}};
}

ResetRun ParseReset(Object object) {
  ResetRun reset;
  object.Get("physicalID", &reset.physical_id);
  object.Get("startedMs", &reset.started_ms);
  object.Get("durationMs", &reset.duration_ms);
  object.Get("stopsAt", &reset.stops_at);
  object.Get("waitsForRescan", &reset.waits_for_rescan);
  object.Finish();
  return reset;
}

Json ToJson(const ResetRun& reset) {
  Json json = {{"physicalID", reset.physical_id},
               {"startedMs", reset.started_ms},
               {"durationMs", reset.duration_ms},
               {"waitsForRescan", reset.waits_for_rescan}};
  if (reset.stops_at.has_value()) json["stopsAt"] = *reset.stops_at;
  return json;
}

const Json& Array(Object& object, const char* key) {
  static const Json* const empty = new Json(Json::array());
  const Json* const found = object.Find(key);
  if (found == nullptr) return *empty;
  if (!found->is_array()) object.Fail(std::string("needs an array for ") + key);
  return *found;
}

FaultState Parse(const Json& json) {
  FaultState state;
  Object object(json, "the state");
  object.Get("lastSerial", &state.last_serial);
  object.Get("lastNotifySerial", &state.last_notify_serial);
  for (const Json& entry : Array(object, "faults")) {
    Object fault(entry, "a fault");
    state.faults.push_back(ParseFault(fault));
    fault.Finish();
  }
  for (const Json& entry : Array(object, "texts")) {
    Object text(entry, "a text");
    unsigned code = 0;
    text.Get("code", &code);
    text.Get("text", &state.texts[code]);
    text.Finish();
  }
  for (const Json& entry : Array(object, "prepared")) {
    if (!entry.is_number_integer()) object.Fail("needs whole numbers in prepared");
    state.prepared.push_back(entry.get<int>());
  }
  for (const Json& entry : Array(object, "resets")) {
    state.resets.push_back(ParseReset(Object(entry, "a reset")));
  }
  object.Finish();
  return state;
}

std::string ToText(const FaultState& state) {
  Json faults = Json::array(), texts = Json::array(), resets = Json::array();
  for (const Fault& fault : state.faults) faults.push_back(ToJson(fault));
  for (const auto& [code, text] : state.texts) texts.push_back({{"code", code}, {"text", text}});
  for (const ResetRun& reset : state.resets) resets.push_back(ToJson(reset));
  return Json({{"lastSerial", state.last_serial},
               {"lastNotifySerial", state.last_notify_serial},
               {"faults", faults},
               {"texts", texts},
               {"prepared", state.prepared},
               {"resets", resets}})
             .dump(2) +
         "\n";
}

std::string ToLine(const FaultNotice& notice) {
  Json json = ToJson(notice.fault);
  json["logicID"] = notice.logic_id;
  json["assertion"] = notice.assertion;
  json["notifySerial"] = notice.notify_serial;
  return json.dump() + "\n";
}

int64_t Milliseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

}  // namespace

int64_t BootTimeMs() { return Milliseconds(CLOCK_BOOTTIME); }
uint64_t WallTimeMs() { return static_cast<uint64_t>(Milliseconds(CLOCK_REALTIME)); }

std::string EventsFile(const std::string& node_directory) {
  return StateDirectory(node_directory) + "/events.jsonl";
}

std::string FaultsFile(const std::string& node_directory) {
  return StateDirectory(node_directory) + "/faults.json";
}

Fault* FaultState::Find(int physical_id, unsigned code) {
  for (Fault& fault : faults) {
    if (fault.physical_id == physical_id && fault.code == code) return &fault;
  }
  return nullptr;
}

const ResetRun* FaultState::ResetOf(int physical_id) const {
  for (const ResetRun& reset : resets) {
    if (reset.physical_id == physical_id) return &reset;
  }
  return nullptr;
}

void NoticeList::Add(FaultState& state, Fault& fault, int logic_id, unsigned assertion) {
  if (fault.serial == 0) fault.serial = ++state.last_serial;
  notices_.push_back({.fault = fault,
                      .logic_id = logic_id,
                      .assertion = assertion,
                      .notify_serial = ++state.last_notify_serial});
}

FaultState ReadFaultState(const std::string& node_directory) {
  const std::string path = FaultsFile(node_directory);
  const std::string text = ReadText(path);
  if (text.empty()) return {};
  try {
    return Parse(Json::parse(text));
  } catch (const std::exception& problem) {
    FailAt(path, problem.what());
  }
}

int ChangeFaultState(const std::string& node_directory,
                     const std::function<int(FaultState&, NoticeList&)>& change) {
  MakeStateDirectory(node_directory);
  const StateLock lock(node_directory);
  FaultState state = ReadFaultState(node_directory);
  NoticeList notices;
  const int code = change(state, notices);
  if (code != DCMI_OK) return code;
  std::string lines;
  for (const FaultNotice& notice : notices.notices()) lines += ToLine(notice);
  // The list before the events: who hears of one finds the list as it is by then.
  if (!ReplaceText(FaultsFile(node_directory), ToText(state)) ||
      (!lines.empty() && !AppendText(EventsFile(node_directory), lines))) {
    return DCMI_FILE_OPERATE_FAIL;
  }
  return DCMI_OK;
}

FaultNotice ParseNotice(const std::string& line) {
  const Json json = Json::parse(line);
  Object object(json, "an event");
  FaultNotice notice;
  notice.fault = ParseFault(object);
  object.Get("logicID", &notice.logic_id);
  object.Get("assertion", &notice.assertion);
  object.Get("notifySerial", &notice.notify_serial);
  object.Finish();
  return notice;
}

}  // namespace ascend::dcmi::mock
