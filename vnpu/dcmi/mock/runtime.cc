#include "vnpu/dcmi/mock/runtime.h"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <thread>
#include <tuple>

#include "vnpu/dcmi/mock/fault_calls.h"

namespace ascend::dcmi::mock {
namespace {

constexpr char kNodeVariable[] = "ASCEND_MOCK_NODE";
constexpr char kDefaultNode[] = "/etc/ascend-dra/mock-node";

// Tells one version of node.json from another.
using Version = std::tuple<dev_t, ino_t, off_t, time_t, long>;

struct State {
  std::mutex mutex;
  std::string directory;
  std::optional<Version> version;
  std::shared_ptr<const View> view;
  bool initialised[3] = {};  // by generation
};

// Lives until the process ends: a hanging call may outlast everything else.
State& GlobalState() {
  static State* const state = new State;
  return *state;
}

std::string NodeDirectory() {
  const char* const directory = std::getenv(kNodeVariable);
  return directory != nullptr && directory[0] != '\0' ? directory : kDefaultNode;
}

std::shared_ptr<const View> Load(const std::string& directory) {
  State& state = GlobalState();
  std::lock_guard<std::mutex> lock(state.mutex);
  const std::string file = NodeFile(directory);
  struct stat info;
  if (stat(file.c_str(), &info) != 0) {
    state.version.reset();
    state.view.reset();
    return nullptr;
  }
  const Version version{info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec,
                        info.st_mtim.tv_nsec};
  if (state.directory == directory && state.version == version) return state.view;
  state.directory = directory;
  state.version = version;
  state.view.reset();
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  Node node;
  std::string error;
  if (ParseNode(text, &node, &error)) {
    state.view = std::make_shared<View>(directory, std::move(node));
  } else {
    // A vendor library would print as well; without it nobody would find the mistake.
    std::fprintf(stderr, "mock libdcmi: %s: %s\n", file.c_str(), error.c_str());
  }
  return state.view;
}

const Behaviour* Match(const Node& node, const std::string& function, const Chip* chip) {
  for (const std::string& name : {function, std::string("*")}) {
    const auto entry = node.calls.find(name);
    if (entry == node.calls.end()) continue;
    for (const Behaviour& behaviour : entry->second) {
      const bool about_a_chip = behaviour.card.has_value() || behaviour.device.has_value() ||
                                behaviour.physical_id.has_value();
      if (about_a_chip && chip == nullptr) continue;
      if (behaviour.card.has_value() && behaviour.card != chip->card) continue;
      if (behaviour.device.has_value() && behaviour.device != chip->device) continue;
      if (behaviour.physical_id.has_value() && behaviour.physical_id != chip->physical_id) continue;
      return &behaviour;
    }
  }
  return nullptr;
}

// Blocks as long as the node says so, which may be for ever; then the library's own time-out.
int Hang(const std::string& directory, const std::string& function, const Chip* chip) {
  const std::optional<Chip> copy = chip != nullptr ? std::optional<Chip>(*chip) : std::nullopt;
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::shared_ptr<const View> view = Load(directory);
    if (view == nullptr) return DCMI_TIME_OUT;
    const Behaviour* const behaviour =
        Match(view->node, function, copy.has_value() ? &*copy : nullptr);
    if (behaviour == nullptr || !behaviour->hang) return DCMI_TIME_OUT;
  }
}

bool IsInitialised(int generation) {
  State& state = GlobalState();
  std::lock_guard<std::mutex> lock(state.mutex);
  return state.initialised[generation];
}

// Returns true if the call is over with *code.
bool Misbehave(const View& view, const Behaviour& behaviour, const char* function, const Chip* chip,
               int* code) {
  std::this_thread::sleep_for(std::chrono::milliseconds(behaviour.delay_ms));
  if (behaviour.crash) {
    raise(SIGSEGV);
    std::abort();
  }
  if (behaviour.hang) {
    *code = Hang(view.directory, function, chip);
    return true;
  }
  if (!behaviour.return_code.has_value()) return false;
  *code = *behaviour.return_code;
  return true;
}

}  // namespace

int View::LogicId(const Chip& chip) const {
  const auto found = std::find(visible.begin(), visible.end(), &chip);
  return found == visible.end() ? -1 : static_cast<int>(found - visible.begin());
}

const Chip* View::ByLogicId(unsigned logic_id) const {
  return logic_id < visible.size() ? visible[logic_id] : nullptr;
}

const Chip* View::ByPhysicalId(unsigned physical_id) const {
  for (const Chip* chip : visible) {
    if (chip->physical_id.has_value() && static_cast<unsigned>(*chip->physical_id) == physical_id) {
      return chip;
    }
  }
  return nullptr;
}

const Chip* View::At(int card, int device) const {
  for (const Chip* chip : visible) {
    if (chip->card == card && chip->device == device) return chip;
  }
  return nullptr;
}

std::vector<int> View::Cards() const {
  std::vector<int> cards;
  for (const Chip* chip : visible) {
    if (std::find(cards.begin(), cards.end(), chip->card) == cards.end()) {
      cards.push_back(chip->card);
    }
  }
  return cards;
}

int View::HighestDevice(int card) const {
  int highest = -1;
  for (const Chip& chip : node.chips) {
    if (chip.card == card) highest = std::max(highest, chip.device);
  }
  return highest;
}

std::shared_ptr<const View> CurrentView() { return Load(NodeDirectory()); }

int Report(const char* function, const char* problem) {
  std::fprintf(stderr, "mock libdcmi: %s: %s\n", function, problem);
  return DCMI_INNER_ERR;
}

bool Enter(const View& view, const char* function, int generation, Phase phase, const Chip* chip,
           int* code) {
  const auto& hidden = view.node.hidden_symbols;
  if (std::find(hidden.begin(), hidden.end(), function) != hidden.end()) {
    *code = DCMI_FUNCTION_NOT_FOUND;
    return false;
  }
  const Behaviour* const behaviour = Match(view.node, function, chip);
  if (behaviour != nullptr && !behaviour->after_work &&
      Misbehave(view, *behaviour, function, chip, code)) {
    return false;
  }
  if (generation != view.node.generation) {
    *code = DCMI_NOT_SUPPORT;
    return false;
  }
  if (phase == Phase::kReady && !IsInitialised(generation)) {
    *code = DCMI_INNER_ERR;
    return false;
  }
  if (chip != nullptr && !Answers(view, function, *chip)) {
    *code = DCMI_NOT_READY;
    return false;
  }
  return true;
}

int Leave(const View& view, const char* function, const Chip* chip, int code) {
  const Behaviour* const behaviour = Match(view.node, function, chip);
  if (behaviour != nullptr && behaviour->after_work) {
    Misbehave(view, *behaviour, function, chip, &code);
  }
  return code;
}

void MarkInitialised(int generation) {
  State& state = GlobalState();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.initialised[generation] = true;
}

}  // namespace ascend::dcmi::mock
