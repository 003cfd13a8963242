#include "test/fault/answers.h"

#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace ascend::fault {
namespace {

void Say(const std::string& line) {
  absl::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (written <= 0) return;  // nobody listens
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

void SayBegin(absl::string_view verb, absl::string_view uid) {
  Say(absl::StrCat("begin\t", verb, "\t", uid, "\n"));
}

void SayOk(absl::string_view verb, absl::string_view uid, absl::string_view answer) {
  Say(absl::StrCat("ok\t", verb, "\t", uid, "\t", answer, "\n"));
}

void SayError(absl::string_view verb, absl::string_view uid, absl::string_view message) {
  Say(absl::StrCat("error\t", verb, "\t", uid, "\t", message, "\n"));
}

void SayProblem(absl::string_view what) { Say(absl::StrCat("problem\t", what, "\n")); }

std::map<std::string, Expected> ExpectedAfter(absl::string_view lines) {
  using State = Expected::State;
  std::map<std::string, Expected> expected;
  for (absl::string_view line : absl::StrSplit(lines, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, '\t');
    const bool ended = words[0] == "ok" || words[0] == "error";
    if (words.size() < (ended ? 4 : 3) || words[2].empty()) continue;
    if (!ended && words[0] != "begin") continue;  // a line of the log
    Expected& claim = expected[std::string(words[2])];
    const bool prepare = words[1] == kPrepare;
    if (words[0] == "ok") {
      claim.state = prepare ? State::kPrepared : State::kGone;
      claim.answer = prepare ? std::string(words[3]) : "";
    } else if (!prepare || claim.state != State::kPrepared) {
      claim.state = State::kOpen;  // a repeated Prepare that fails takes nothing away
    }
  }
  return expected;
}

}  // namespace ascend::fault
