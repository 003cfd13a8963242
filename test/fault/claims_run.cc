// The program that is tried: claims_fault_test runs it under the preloaded harness.
//
//   claims_run run STATE HOST BOOT_ID             the scenario, in STATE
//   claims_run check STATE HOST BOOT_ID ANSWERS   the invariants, over what a run left in STATE
//
// HOST holds a FakeHost. ANSWERS is a file with what `run` wrote to standard output. Exit code 1:
// something that must hold does not; a line says what.
#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/strings/match.h"
#include "base/core/file.h"
#include "test/fault/answers.h"
#include "test/fault/check.h"
#include "test/fault/claims_node.h"
#include "test/fault/scenario.h"

namespace {

using ascend::fault::Trouble;

Trouble TroubleToCome() {
  const char* fault = std::getenv("ASCEND_FAULT");
  if (fault != nullptr && absl::StartsWith(fault, "fail:")) return Trouble::kOneCall;
  if (fault != nullptr && absl::StartsWith(fault, "unsynced:")) return Trouble::kOneCall;
  if (fault != nullptr && absl::StartsWith(fault, "full:")) return Trouble::kFull;
  if (fault != nullptr && absl::StartsWith(fault, "jump:")) return Trouble::kClock;
  return Trouble::kNone;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  const bool check = command == "check" && argc == 6;
  if (!check && !(command == "run" && argc == 5)) {
    std::cerr << "usage: claims_run run STATE HOST BOOT_ID | check STATE HOST BOOT_ID ANSWERS\n";
    return 2;
  }
  ascend::fault::ClaimsNode node(argv[2], argv[3], argv[4]);
  if (!check) return ascend::fault::RunScenario(node, TroubleToCome()) ? 0 : 1;
  const absl::StatusOr<std::string> answers = ascend::ReadFile(argv[5]);
  if (!answers.ok()) {
    std::cerr << answers.status() << "\n";
    return 2;
  }
  return ascend::fault::CheckRemains(node, ascend::fault::ExpectedAfter(*answers)) ? 0 : 1;
}
