// What a run of the scenario was answered, written down call by call so that it survives the run's
// death: one line when a call begins and one when it has ended.
#ifndef ASCEND_DRA_TEST_FAULT_ANSWERS_H_
#define ASCEND_DRA_TEST_FAULT_ANSWERS_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ascend::fault {

inline constexpr char kStart[] = "start";
inline constexpr char kPrepare[] = "prepare";
inline constexpr char kUnprepare[] = "unprepare";

// Writes one line to standard output, at once.
void SayBegin(absl::string_view verb, absl::string_view uid);
void SayOk(absl::string_view verb, absl::string_view uid, absl::string_view answer);
void SayError(absl::string_view verb, absl::string_view uid, absl::string_view message);
// Something that must never be.
void SayProblem(absl::string_view what);

struct Expected {
  enum class State {
    kUntouched,
    kPrepared,  // answered OK, and not unprepared since
    kGone,      // unprepared with OK
    kOpen,      // a first Prepare, or an Unprepare, failed or never ended: either is right
  };
  State state = State::kUntouched;
  std::string answer;  // of the last Prepare that was OK
};

// By claim UID, what those lines promise.
std::map<std::string, Expected> ExpectedAfter(absl::string_view lines);

}  // namespace ascend::fault

#endif  // ASCEND_DRA_TEST_FAULT_ANSWERS_H_
