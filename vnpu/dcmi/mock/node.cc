#include "vnpu/dcmi/mock/node.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/mock/json_object.h"
#include "vnpu/dcmi/mock/vnpu_rules.h"

namespace ascend::dcmi::mock {
namespace {

constexpr std::pair<const char*, Family> kFamilies[] = {
    {"310", Family::k310},   {"310B", Family::k310B}, {"310P", Family::k310P},
    {"910A", Family::k910A}, {"910B", Family::k910B}, {"A3", Family::kA3},
    {"950", Family::k950}};

constexpr std::pair<const char*, ResetUnit> kResetUnits[] = {
    {"chip", ResetUnit::kChip},     {"card", ResetUnit::kCard},
    {"module", ResetUnit::kModule}, {"modulePair", ResetUnit::kModulePair},
    {"ring", ResetUnit::kRing},     {"mesh", ResetUnit::kMesh}};

const std::map<std::string, int> kUtilizations = {
    {"ddr", DCMI_UTILIZATION_DDR},       {"aicore", DCMI_UTILIZATION_AICORE},
    {"aicpu", DCMI_UTILIZATION_AICPU},   {"ctrlcpu", DCMI_UTILIZATION_CTRLCPU},
    {"hbm", DCMI_UTILIZATION_HBM},       {"hbmBandwidth", DCMI_UTILIZATION_HBM_BANDWIDTH},
    {"vector", DCMI_UTILIZATION_VECTOR}, {"npu", DCMI_UTILIZATION_NPU},
    {"cube", DCMI_UTILIZATION_CUBE},     {"ddrBandwidth", DCMI_UTILIZATION_DDR_BANDWIDTH}};

const std::map<std::string, unsigned> kFrequencies = {{"ddr", DCMI_FREQ_DDR},
                                                      {"ctrlcpu", DCMI_FREQ_CTRLCPU},
                                                      {"hbm", DCMI_FREQ_HBM},
                                                      {"aicore", DCMI_FREQ_AICORE_CURRENT},
                                                      {"aicoreMax", DCMI_FREQ_AICORE_MAX},
                                                      {"vector", DCMI_FREQ_VECTORCORE_CURRENT}};

Family ParseFamily(const Object& object, const std::string& name) {
  for (const auto& [candidate, family] : kFamilies) {
    if (name == candidate) return family;
  }
  object.Fail("has the unknown family " + name);
}

std::array<unsigned char, 4> ParseIp(const Object& object, const std::string& text) {
  unsigned a, b, c, d;
  int end = 0;
  if (std::sscanf(text.c_str(), "%3u.%3u.%3u.%3u%n", &a, &b, &c, &d, &end) != 4 ||
      end != static_cast<int>(text.size()) || a > 255 || b > 255 || c > 255 || d > 255) {
    object.Fail("has the bad IPv4 address " + text);
  }
  return {static_cast<unsigned char>(a), static_cast<unsigned char>(b),
          static_cast<unsigned char>(c), static_cast<unsigned char>(d)};
}

void ParseDie(Object& object, const char* key, DieId* die) {
  std::string text;
  object.Get(key, &text);
  if (text.empty()) return;
  unsigned w[5];
  int end = 0;
  if (std::sscanf(text.c_str(), "%8x-%8x-%8x-%8x-%8x%n", &w[0], &w[1], &w[2], &w[3], &w[4], &end) !=
          5 ||
      end != static_cast<int>(text.size())) {
    object.Fail("has the bad die id " + text);
  }
  std::copy(std::begin(w), std::end(w), die->begin());
}

void ParsePci(Object object, Pci* pci) {
  std::string bus_id;
  object.Get("busID", &bus_id);
  int end = 0;
  if (std::sscanf(bus_id.c_str(), "%4x:%2x:%2x.%1x%n", &pci->domain, &pci->bus, &pci->device,
                  &pci->function, &end) != 4 ||
      end != static_cast<int>(bus_id.size())) {
    object.Fail("has the bad busID " + bus_id);
  }
  object.Get("vendor", &pci->vendor_id);
  object.Get("device", &pci->device_id);
  object.Get("subsystemVendor", &pci->subsystem_vendor_id);
  object.Get("subsystemDevice", &pci->subsystem_device_id);
  object.Get("root", &pci->root);
  object.Get("numaNode", &pci->numa_node);
  object.Finish();
}

void ParseMemory(Object object, Memory* memory) {
  std::string kind;
  object.Get("kind", &kind);
  if (kind != "hbm" && kind != "ddr") object.Fail("needs hbm or ddr for kind");
  memory->hbm = kind == "hbm";
  object.Get("totalMiB", &memory->total_mib);
  object.Get("usedMiB", &memory->used_mib);
  object.Get("frequencyMHz", &memory->frequency_mhz);
  object.Get("temperature", &memory->temperature);
  object.Get("bandwidthPercent", &memory->bandwidth_percent);
  object.Finish();
}

Roce ParseRoce(Object object) {
  std::string address, mask = "255.255.255.0", gateway = "0.0.0.0";
  object.Get("address", &address);
  object.Get("mask", &mask);
  object.Get("gateway", &gateway);
  object.Finish();
  return {ParseIp(object, address), ParseIp(object, mask), ParseIp(object, gateway)};
}

SuperPod ParseSuperPod(Object object) {
  SuperPod pod;
  object.Get("sdid", &pod.sdid);
  object.Get("size", &pod.size);
  object.Get("id", &pod.id);
  object.Get("serverIndex", &pod.server_index);
  object.Get("chassisID", &pod.chassis_id);
  object.Get("type", &pod.type);
  object.Finish();
  return pod;
}

template <typename Key>
void ParseReadings(Object object, const std::map<std::string, Key>& names,
                   std::map<Key, unsigned>* readings) {
  for (const auto& [name, key] : names) {
    std::optional<unsigned> value;
    object.Get(name.c_str(), &value);
    if (value.has_value()) (*readings)[key] = *value;
  }
  object.Finish();
}

Chip ParseChip(Object object) {
  Chip chip;
  object.Get("physicalID", &chip.physical_id);
  object.Get("card", &chip.card);
  object.Get("device", &chip.device);
  object.Get("present", &chip.present);
  if (const Json* health = object.Find("health"); health != nullptr && *health == "absent") {
    chip.health = DCMI_HEALTH_ABSENT;
  } else {
    object.Get("health", &chip.health);
  }
  object.Get("healthIsFixed", &chip.health_is_fixed);
  object.Get("bootStatus", &chip.boot_status);
  if (const Json* codes = object.Find("errorCodes")) {
    if (!codes->is_array()) object.Fail("needs an array for errorCodes");
    for (const Json& code : *codes) {
      if (!code.is_number_unsigned()) object.Fail("needs whole numbers in errorCodes");
      chip.error_codes.push_back(code.get<unsigned>());
    }
  }
  object.Get("chipType", &chip.chip_type);
  object.Get("chipName", &chip.chip_name);
  object.Get("chipVersion", &chip.chip_version);
  object.Get("npuName", &chip.npu_name);
  object.Get("productName", &chip.product_name);
  object.Get("productType", &chip.product_type);
  object.Get("serial", &chip.serial);
  object.Get("aicoreCount", &chip.aicore_count);
  object.Get("aicpuCount", &chip.aicpu_count);
  object.Get("boardID", &chip.board_id);
  object.Get("pcbID", &chip.pcb_id);
  object.Get("bomID", &chip.bom_id);
  object.Get("slotID", &chip.slot_id);
  object.Get("mainboardID", &chip.mainboard_id);
  object.Get("cpuAffinity", &chip.cpu_affinity);
  object.Get("networkHealth", &chip.network_health);
  object.Get("temperature", &chip.temperature);
  object.Get("powerDeciwatt", &chip.power_deciwatt);
  object.Get("voltageCentivolt", &chip.voltage_centivolt);
  object.Get("eccSingleBitErrors", &chip.ecc_single_bit_errors);
  object.Get("eccDoubleBitErrors", &chip.ecc_double_bit_errors);
  if (auto pci = object.Child("pci")) ParsePci(*pci, &chip.pci);
  if (auto die = object.Child("die")) {
    ParseDie(*die, "ndie", &chip.ndie);
    ParseDie(*die, "vdie", &chip.vdie);
    ParseDie(*die, "ddie", &chip.ddie);
    die->Finish();
  }
  if (auto memory = object.Child("memory")) ParseMemory(*memory, &chip.memory);
  if (auto roce = object.Child("roce")) chip.roce = ParseRoce(*roce);
  if (auto pod = object.Child("superPod")) chip.super_pod = ParseSuperPod(*pod);
  if (auto readings = object.Child("utilization")) {
    ParseReadings(*readings, kUtilizations, &chip.utilization);
  }
  if (auto readings = object.Child("frequencyMHz")) {
    ParseReadings(*readings, kFrequencies, &chip.frequency);
  }
  if (const Json* processes = object.Find("processes")) {
    if (!processes->is_array()) object.Fail("needs an array for processes");
    for (const Json& json : *processes) {
      Object entry(json, object.where() + ".processes");
      Process process;
      entry.Get("pid", &process.pid);
      entry.Get("memoryBytes", &process.memory_bytes);
      entry.Finish();
      chip.processes.push_back(process);
    }
  }
  object.Finish();
  return chip;
}

Behaviour ParseBehaviour(Object object) {
  Behaviour behaviour;
  object.Get("card", &behaviour.card);
  object.Get("device", &behaviour.device);
  object.Get("physicalID", &behaviour.physical_id);
  object.Get("return", &behaviour.return_code);
  object.Get("delayMs", &behaviour.delay_ms);
  object.Get("hang", &behaviour.hang);
  object.Get("crash", &behaviour.crash);
  object.Get("afterWork", &behaviour.after_work);
  object.Finish();
  return behaviour;
}

// One behaviour, or an array of them, of which the first that fits the chip counts.
std::vector<Behaviour> ParseBehaviours(const Json& json, const std::string& where) {
  std::vector<Behaviour> behaviours;
  if (json.is_array()) {
    for (const Json& entry : json) behaviours.push_back(ParseBehaviour(Object(entry, where)));
  } else {
    behaviours.push_back(ParseBehaviour(Object(json, where)));
  }
  return behaviours;
}

ResetBehaviour ParseReset(Object object) {
  ResetBehaviour reset;
  std::string unit;
  object.Get("unit", &unit);
  for (const auto& [name, value] : kResetUnits) {
    if (unit == name) reset.unit = value;
  }
  if (!unit.empty() && !reset.unit.has_value()) {
    object.Fail("needs chip, card, module, modulePair, ring or mesh for unit");
  }
  object.Get("durationMs", &reset.duration_ms);
  if (reset.duration_ms < 0) object.Fail("needs a durationMs of 0 or more");
  object.Get("stopsAt", &reset.stops_at);
  if (reset.stops_at.has_value() &&
      (*reset.stops_at < 0 || *reset.stops_at > int{DCMI_BOOT_FINISH})) {
    object.Fail("needs a boot status from 0 to 3 for stopsAt");
  }
  object.Get("outband", &reset.outband);
  object.Finish();
  return reset;
}

EventBehaviour ParseEvents(Object object) {
  EventBehaviour events;
  if (const Json* lose = object.Find("lose")) {
    if (!lose->is_array()) object.Fail("needs an array for lose");
    for (const Json& what : *lose) {
      if (what == "occurred") {
        events.lose_occurred = true;
      } else if (what == "recovered") {
        events.lose_recovered = true;
      } else if (what == "oneShot") {
        events.lose_one_shot = true;
      } else {
        object.Fail("needs occurred, recovered or oneShot in lose");
      }
    }
  }
  object.Get("delayMs", &events.delay_ms);
  if (events.delay_ms < 0) object.Fail("needs a delayMs of 0 or more");
  object.Finish();
  return events;
}

Node Parse(const Json& json) {
  Node node;
  Object object(json, "the node");
  std::string family = "910B";
  object.Get("family", &family);
  node.family = ParseFamily(object, family);
  object.Get("generation", &node.generation);
  if (node.generation != 1 && node.generation != 2) object.Fail("needs 1 or 2 for generation");
  object.Get("dcmiVersion", &node.dcmi_version);
  object.Get("driverVersion", &node.driver_version);
  object.Get("firmwareVersion", &node.firmware_version);
  std::string policy;
  object.Get("multiDiePolicy", &policy);
  if (!policy.empty()) {
    if (policy != "union" && policy != "independent") {
      object.Fail("needs union or independent for multiDiePolicy");
    }
    node.dies_independent = policy == "independent";
  }
  if (const Json* chips = object.Find("chips")) {
    if (!chips->is_array()) object.Fail("needs an array for chips");
    for (const Json& chip : *chips) {
      node.chips.push_back(
          ParseChip(Object(chip, "chips[" + std::to_string(node.chips.size()) + "]")));
    }
  }
  if (auto vnpu = object.Child("vnpu")) node.vnpu = ParseVnpuRules(*vnpu);
  if (auto nodes = object.Child("vnpuNodes")) {
    nodes->Get("delayMs", &node.vnpu_nodes.delay_ms);
    nodes->Get("never", &node.vnpu_nodes.never);
    if (node.vnpu_nodes.delay_ms < 0) nodes->Fail("needs a delayMs of 0 or more");
    nodes->Finish();
  }
  if (auto reset = object.Child("reset")) node.reset = ParseReset(*reset);
  if (auto events = object.Child("events")) node.events = ParseEvents(*events);
  if (auto calls = object.Child("calls")) {
    for (const auto& item : calls->json().items()) {
      node.calls[item.key()] = ParseBehaviours(item.value(), "calls." + item.key());
    }
  }
  if (const Json* hidden = object.Find("hiddenSymbols")) {
    if (!hidden->is_array()) object.Fail("needs an array for hiddenSymbols");
    for (const Json& name : *hidden) {
      if (!name.is_string()) object.Fail("needs strings in hiddenSymbols");
      node.hidden_symbols.push_back(name.get<std::string>());
    }
  }
  object.Finish();
  return node;
}

}  // namespace

const char* FamilyName(Family family) {
  for (const auto& [name, candidate] : kFamilies) {
    if (candidate == family) return name;
  }
  return "";
}

std::string Pci::BusId() const {
  char text[32];
  std::snprintf(text, sizeof(text), "%04x:%02x:%02x.%x", domain, bus, device, function);
  return text;
}

bool Node::HasHbm() const {
  return family == Family::k910A || family == Family::k910B || family == Family::kA3 ||
         family == Family::k950;
}

bool Node::HasMcu() const { return family == Family::k910B || family == Family::k310P; }

const Chip* Node::FindPhysical(int physical_id) const {
  for (const Chip& chip : chips) {
    if (chip.physical_id == physical_id) return &chip;
  }
  return nullptr;
}

std::vector<const Chip*> Node::Visible() const {
  const bool whole_modules = family == Family::kA3 && !dies_independent.value_or(false);
  std::vector<const Chip*> visible;
  for (const Chip& chip : chips) {
    if (!chip.present) continue;
    if (whole_modules && chip.physical_id.has_value()) {
      const Chip* const peer = FindPhysical(*chip.physical_id ^ 1);
      if (peer == nullptr || !peer->present) continue;
    }
    visible.push_back(&chip);
  }
  return visible;
}

int Node::LogicIdOf(const Chip& chip) const {
  const std::vector<const Chip*> visible = Visible();
  // Pointers into one vector: those before it come first.
  return static_cast<int>(std::count_if(visible.begin(), visible.end(),
                                        [&](const Chip* other) { return other < &chip; }));
}

bool ParseNode(const std::string& text, Node* node, std::string* error) {
  try {
    *node = Parse(Json::parse(text));
    return true;
  } catch (const std::exception& problem) {
    *error = problem.what();
    return false;
  }
}

std::string NodeFile(const std::string& node_directory) { return node_directory + "/node.json"; }

}  // namespace ascend::dcmi::mock
