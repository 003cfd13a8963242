#include "vnpu/dcmi/mock/vnpu_state.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <sstream>
#include <utility>

#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/mock/json_object.h"
#include "vnpu/dcmi/mock/state_file.h"

namespace ascend::dcmi::mock {
namespace {

constexpr char kRecoveryKey[] = "vnpu_config_recover:";
constexpr char kListStart[] = "[vnpu-config start]";
constexpr char kListEnd[] = "[vnpu-config end]";

std::string VnpusFile(const std::string& node_directory) {
  return StateDirectory(node_directory) + "/vnpus.json";
}

std::string ConfigFile(const std::string& node_directory) {
  return StateDirectory(node_directory) + "/vnpu.cfg";
}

Vnpu ParseVnpu(Object object) {
  Vnpu vnpu;
  object.Get("id", &vnpu.id);
  object.Get("physicalID", &vnpu.physical_id);
  object.Get("template", &vnpu.template_name);
  object.Get("vGroup", &vnpu.vgroup);
  object.Get("status", &vnpu.status);
  object.Get("containerUsed", &vnpu.container_used);
  object.Get("busy", &vnpu.busy);
  object.Finish();
  return vnpu;
}

Json ToJson(const Vnpu& vnpu) {
  return {{"id", vnpu.id},
          {"physicalID", vnpu.physical_id},
          {"template", vnpu.template_name},
          {"vGroup", vnpu.vgroup},
          {"status", vnpu.status},
          {"containerUsed", vnpu.container_used},
          {"busy", vnpu.busy}};
}

void Sort(std::vector<Vnpu>& vnpus) {
  std::sort(vnpus.begin(), vnpus.end(),
            [](const Vnpu& one, const Vnpu& other) { return one.id < other.id; });
}

// A line of vnpu.cfg: "0:100:npu-smi set -t create-vnpu -i 1 -c 0 -f vir02 -v 100 -g 0".
std::string ConfigLine(const Node& node, const Vnpu& vnpu) {
  const Chip* const chip = node.FindPhysical(vnpu.physical_id);
  std::ostringstream line;
  line << vnpu.physical_id << ":" << vnpu.id << ":npu-smi set -t create-vnpu -i "
       << (chip != nullptr ? chip->card : -1) << " -c " << (chip != nullptr ? chip->device : -1)
       << " -f " << vnpu.template_name << " -v " << vnpu.id;
  if (vnpu.vgroup >= 0) line << " -g " << vnpu.vgroup;
  return line.str();
}

Vnpu ParseConfigLine(const std::string& path, const std::string& line) {
  Vnpu vnpu;
  int command = 0;
  std::sscanf(line.c_str(), "%d:%d:%n", &vnpu.physical_id, &vnpu.id, &command);
  if (command == 0) FailAt(path, "\"" + line + "\" is no vNPU");
  std::istringstream words(line.substr(command));
  for (std::string word; words >> word;) {
    if (word == "-f") words >> vnpu.template_name;
    if (word == "-g") words >> vnpu.vgroup;
  }
  if (vnpu.template_name.empty()) FailAt(path, "\"" + line + "\" names no template");
  return vnpu;
}

std::string ConfigText(const Node& node, const VnpuState& state, const std::vector<Vnpu>& list) {
  std::string text = std::string(kRecoveryKey) + (state.recovery ? "enable" : "disable") + "\n" +
                     kListStart + "\n";
  for (const Vnpu& vnpu : list) text += ConfigLine(node, vnpu) + "\n";
  return text + kListEnd + "\n";
}

// The file's first line; and its vNPUs, if somebody wants them.
bool ReadConfig(const std::string& path, std::vector<Vnpu>* list) {
  std::istringstream lines(ReadText(path));
  std::string line;
  if (!std::getline(lines, line)) return true;
  const bool on = line == std::string(kRecoveryKey) + "enable";
  if (!on && line != std::string(kRecoveryKey) + "disable") {
    FailAt(path, "begins with \"" + line + "\" instead of " + kRecoveryKey + "enable or disable");
  }
  bool inside = false;
  while (list != nullptr && std::getline(lines, line)) {
    if (line == kListStart || line == kListEnd) {
      inside = line == kListStart;
    } else if (inside && !line.empty()) {
      list->push_back(ParseConfigLine(path, line));
    }
  }
  return on;
}

bool Write(const std::string& node_directory, const Node& node, const VnpuState& before,
           VnpuState& state) {
  Sort(state.vnpus);
  // First the file that a boot goes by, as the library does.
  if ((state.recovery || before.recovery) &&
      !ReplaceText(ConfigFile(node_directory),
                   ConfigText(node, state, state.recovery ? state.vnpus : std::vector<Vnpu>()))) {
    return false;
  }
  Json vnpus = Json::array();
  for (const Vnpu& vnpu : state.vnpus) vnpus.push_back(ToJson(vnpu));
  return ReplaceText(VnpusFile(node_directory),
                     Json({{"vdeviceMode", state.vdevice_mode}, {"vnpus", vnpus}}).dump(2) + "\n");
}

}  // namespace

Vnpu* VnpuState::Find(int id) {
  for (Vnpu& vnpu : vnpus) {
    if (vnpu.id == id) return &vnpu;
  }
  return nullptr;
}

bool VnpuState::HasVnpusOn(int physical_id) const {
  return std::any_of(vnpus.begin(), vnpus.end(),
                     [=](const Vnpu& vnpu) { return vnpu.physical_id == physical_id; });
}

VnpuState ReadVnpuState(const std::string& node_directory) {
  VnpuState state;
  state.recovery = ReadConfig(ConfigFile(node_directory), nullptr);
  const std::string path = VnpusFile(node_directory);
  const std::string text = ReadText(path);
  if (text.empty()) return state;
  try {
    const Json json = Json::parse(text);
    Object object(json, "the state");
    object.Get("vdeviceMode", &state.vdevice_mode);
    if (const Json* vnpus = object.Find("vnpus")) {
      if (!vnpus->is_array()) object.Fail("needs an array for vnpus");
      for (const Json& vnpu : *vnpus) state.vnpus.push_back(ParseVnpu(Object(vnpu, "a vNPU")));
    }
    object.Finish();
  } catch (const std::exception& problem) {
    FailAt(path, problem.what());
  }
  return state;
}

int ChangeVnpuState(const std::string& node_directory, const Node& node,
                    const std::function<int(VnpuState&)>& change) {
  MakeStateDirectory(node_directory);
  const StateLock lock(node_directory);
  const VnpuState before = ReadVnpuState(node_directory);
  VnpuState state = before;
  const int code = change(state);
  if (code != DCMI_OK) return code;
  return Write(node_directory, node, before, state) ? DCMI_OK : DCMI_FILE_OPERATE_FAIL;
}

void RebootVnpus(const std::string& node_directory, const Node& node, bool permute_ids) {
  const int code = ChangeVnpuState(node_directory, node, [&](VnpuState& state) -> int {
    state.vnpus.clear();
    if (!state.recovery) return DCMI_OK;
    ReadConfig(ConfigFile(node_directory), &state.vnpus);
    const int per_chip = node.vnpu.has_value() ? node.vnpu->max_vnpus : 1;
    for (Vnpu& vnpu : state.vnpus) {
      const int first = FirstVnpuId(vnpu.physical_id);
      // The next one, and after the last the first: another id for each, and no id twice.
      if (permute_ids) vnpu.id = first + (vnpu.id - first + 1) % per_chip;
    }
    return DCMI_OK;
  });
  if (code != DCMI_OK) FailAt(StateDirectory(node_directory), "cannot be written");
}

}  // namespace ascend::dcmi::mock
