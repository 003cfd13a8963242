// The commands of ascend-mock-node, by topic.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_COMMANDS_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_COMMANDS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/status/status.h"

namespace ascend::dcmi::mock {

// What each command does once the command line is parsed. Options live in the closures.
class Commands {
 public:
  void Add(const CLI::App* command, std::function<absl::Status()> run) {
    commands_.emplace_back(command, std::move(run));
  }
  absl::Status Run() const {
    for (const auto& [command, run] : commands_) {
      if (command->parsed()) return run();
    }
    return absl::OkStatus();
  }

 private:
  std::vector<std::pair<const CLI::App*, std::function<absl::Status()>>> commands_;
};

// "" or what is wrong with a duration such as "100ms", as CLI11 wants it.
std::string CheckDuration(const std::string& text);
// Of a text that passed the check.
int DurationMs(const std::string& text);

void AddNodeCommands(CLI::App& app, Commands& commands);   // create, list, kernel, reboot
void AddChipCommands(CLI::App& app, Commands& commands);   // chip, process, call
void AddVnpuCommands(CLI::App& app, Commands& commands);   // vnpu
void AddFaultCommands(CLI::App& app, Commands& commands);  // fault, network, lose, return, ...

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_COMMANDS_H_
