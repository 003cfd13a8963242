// What every exported function of the mock does before its own work: find the node, misbehave as
// told, keep order. No exception leaves Run*().
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_RUNTIME_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_RUNTIME_H_

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/mock/node.h"

namespace ascend::dcmi::mock {

// A node as one call sees it. Never changes; a later call may see a newer one.
struct View {
  View(std::string node_directory, Node description)
      : directory(std::move(node_directory)),
        node(std::move(description)),
        visible(node.Visible()) {}

  const std::string directory;
  const Node node;
  const std::vector<const Chip*> visible;  // by logic id

  int LogicId(const Chip& chip) const;
  const Chip* ByLogicId(unsigned logic_id) const;
  const Chip* ByPhysicalId(unsigned physical_id) const;  // visible ones only
  const Chip* At(int card, int device) const;            // visible ones only
  std::vector<int> Cards() const;                        // of the visible chips
  int HighestDevice(int card) const;                     // pulled-out chips included
};

// Which life phase a function belongs to.
enum class Phase {
  kInit,    // marks the generation as initialised when it succeeds
  kAlways,  // may be called before init
  kReady,   // -8005 before init
};

// The current node; null if there is none or its description is wrong.
std::shared_ptr<const View> CurrentView();

// Prints what is wrong with the node's files, and returns -8005.
int Report(const char* function, const char* problem);

// Applies what `calls` and `hiddenSymbols` say about `function` (for `chip`, if it is about one),
// then the rules of generations and of init, and -8012 for a chip that does not answer. Returns
// true if the call may do its work, else *code is what it returns.
bool Enter(const View& view, const char* function, int generation, Phase phase, const Chip* chip,
           int* code);
// What a call returns that has done its work with `code`: that, or what `calls` says about it.
int Leave(const View& view, const char* function, const Chip* chip, int code);
void MarkInitialised(int generation);

// A call about the node as a whole: `work(view)`.
template <typename Work>
int RunNode(const char* function, int generation, Phase phase, Work work) noexcept {
  try {
    const std::shared_ptr<const View> view = CurrentView();
    if (view == nullptr) return DCMI_INNER_ERR;
    int code = DCMI_OK;
    if (!Enter(*view, function, generation, phase, nullptr, &code)) return code;
    return Leave(*view, function, nullptr, work(*view));
  } catch (const std::exception& problem) {
    return Report(function, problem.what());
  }
}

// A call about one chip: `find(view)` gives it, or null for -8008; then `work(view, chip)`.
template <typename Find, typename Work>
int RunChip(const char* function, int generation, Find find, Work work) noexcept {
  try {
    const std::shared_ptr<const View> view = CurrentView();
    if (view == nullptr) return DCMI_INNER_ERR;
    const Chip* const chip = find(*view);
    int code = DCMI_OK;
    if (!Enter(*view, function, generation, Phase::kReady, chip, &code)) return code;
    if (chip == nullptr) return DCMI_DEVICE_NOT_EXIST;
    return Leave(*view, function, chip, work(*view, *chip));
  } catch (const std::exception& problem) {
    return Report(function, problem.what());
  }
}

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_RUNTIME_H_
