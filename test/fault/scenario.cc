#include "test/fault/scenario.h"

#include <unistd.h>

#include <functional>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/runtime/clock.h"
#include "test/fault/answers.h"
#include "test/fault/control.h"

namespace ascend::fault {
namespace {

class Run {
 public:
  Run(ClaimsNode& node, Trouble trouble) : node_(node), trouble_(trouble) {}

  bool Start() {
    const absl::Status status = Try(kStart, "", [&] { return node_.Start(); });
    if (status.ok()) return true;
    // The very first start has to make directories; the process is started again until it can.
    if (trouble_ != Trouble::kFull || started_) Problem(absl::StrCat("start: ", status.message()));
    HealFault();
    started_ = node_.Start().ok();
    if (!started_) Problem("start still fails after the disk has room again");
    return started_;
  }

  void Prepare(const std::string& uid) {
    started_ = true;
    const absl::Status status = Try(kPrepare, uid, [&] { return node_.Prepare(uid); });
    (status.ok() ? prepared_ : failed_).insert(uid);
  }

  void PrepareRefused(const std::string& uid) {
    for (int attempt = 0; attempt < 2; ++attempt) {
      BeginStep(absl::StrCat("refuse ", uid));
      SayBegin(kPrepare, uid);
      const absl::StatusOr<std::string> answer = node_.Prepare(uid);
      if (answer.ok()) {
        SayOk(kPrepare, uid, *answer);
        // If the disk was full, the holder may never have come to hold the chip.
        if (failed_.count("one") == 0) Problem("a held chip was given to " + uid);
        return;
      }
      const std::string message(answer.status().message());
      SayError(kPrepare, uid, message);
      if (absl::StrContains(message, "default/claim-one")) return;
      CheckError(kPrepare, uid, message);
      if (trouble_ != Trouble::kOneCall) return;
    }
    Problem("a held chip was not refused for its holder");
  }

  void Unprepare(const std::string& uid) {
    const absl::Status status =
        Try(kUnprepare, uid, [&] { return absl::StatusOr<std::string>(Unprepared(uid)); });
    if (status.ok()) return;
    failed_.insert(uid);
    // What lets go of a claim needs no room. Only one that was never prepared has no lock file yet.
    if (prepared_.count(uid) != 0) Problem(absl::StrCat("unprepare ", uid, " failed"));
  }

  void Damage() {
    const Uncounted uncounted;
    if (failed_.count("one") != 0) return;
    if (const absl::Status status = node_.Damage(); !status.ok()) Problem(status.ToString());
  }

  // The fault is over: whatever failed works now, and by itself every record gets its CDI file.
  void Recover(const std::set<std::string>& prepared_at_the_end) {
    BeginStep("recover");
    HealFault();
    for (const std::string& uid : failed_) {
      const absl::Status status = Repeat(uid, prepared_at_the_end.count(uid) != 0);
      if (!status.ok()) Problem(absl::StrCat("not healed: ", status.ToString()));
    }
    const absl::Duration deadline = Clock::Real().Monotonic() + absl::Seconds(20);
    while (!RecordsHaveCdiFiles()) {
      if (Clock::Real().Monotonic() > deadline) {
        Problem("records and CDI files still differ 20 s after the fault has gone");
        return;
      }
      ::usleep(1000);  // what is waited for are files
    }
  }

  void Problem(const std::string& what) {
    SayProblem(what);
    good_ = false;
  }
  bool good() const { return good_; }

 private:
  static absl::Status StatusOf(const absl::Status& status) { return status; }
  static absl::Status StatusOf(const absl::StatusOr<std::string>& answer) {
    return answer.status();
  }
  static std::string TextOf(const absl::Status&) { return ""; }
  static std::string TextOf(const absl::StatusOr<std::string>& answer) { return *answer; }

  absl::StatusOr<std::string> Unprepared(const std::string& uid) {
    if (absl::Status status = node_.Unprepare(uid); !status.ok()) return status;
    return std::string();
  }

  template <typename Operation>
  absl::Status Try(const char* verb, const std::string& uid, Operation operation) {
    const int attempts = trouble_ == Trouble::kOneCall ? 2 : 1;
    absl::Status status;
    for (int attempt = 0; attempt < attempts; ++attempt) {
      BeginStep(absl::StrCat(verb, " ", uid));
      SayBegin(verb, uid);
      const auto result = operation();
      status = StatusOf(result);
      if (status.ok()) {
        SayOk(verb, uid, TextOf(result));
        if (attempt > 0) OperationRepeated();
        return status;
      }
      SayError(verb, uid, status.message());
      CheckError(verb, uid, std::string(status.message()));
    }
    if (trouble_ == Trouble::kOneCall) {
      Problem(absl::StrCat(verb, " ", uid, " fails after the fault has gone"));
    }
    return status;
  }

  void CheckError(const char* verb, const std::string& uid, const std::string& message) {
    if (trouble_ == Trouble::kNone || trouble_ == Trouble::kClock) {
      Problem(absl::StrCat(verb, " ", uid, " failed: ", message));
    } else if (!absl::StrContains(message, node_.state())) {
      Problem(absl::StrCat(verb, " ", uid, ": the error names no path: ", message));
    }
  }

  absl::Status Repeat(const std::string& uid, bool prepare) {
    const char* verb = prepare ? kPrepare : kUnprepare;
    SayBegin(verb, uid);
    const absl::StatusOr<std::string> answer = prepare ? node_.Prepare(uid) : Unprepared(uid);
    if (answer.ok()) SayOk(verb, uid, *answer);
    return answer.status();
  }

  bool RecordsHaveCdiFiles() {
    const Uncounted uncounted;
    const auto contents = node_.Records();
    const auto files = node_.CdiFiles();
    if (!contents.ok() || !files.ok()) return false;
    std::set<std::string> surplus(files->begin(), files->end());
    for (const auto& record : contents->records) {
      const bool has_file = surplus.erase(node_.paths().cdi_file(record->claim_uid)) != 0;
      // What was only begun has one or not.
      if (!has_file && record->state == kubeletplugin::ClaimState::kCompleted) return false;
    }
    surplus.erase(node_.paths().cdi_file("orphan"));  // that is the next start's business
    return surplus.empty();
  }

  ClaimsNode& node_;
  const Trouble trouble_;
  bool good_ = true;
  bool started_ = false;
  std::set<std::string> prepared_, failed_;  // claims; on a full disk
};

}  // namespace

bool RunScenario(ClaimsNode& node, Trouble trouble) {
  Run run(node, trouble);
  if (trouble == Trouble::kClock) node.set_holder_wait(absl::Milliseconds(20));
  if (!run.Start()) return false;
  if (trouble == Trouble::kClock) node.FailNextGet();
  run.Prepare("one");
  run.Prepare("pair");
  run.Prepare("admin");
  run.Prepare("shares");
  run.Prepare("part");
  run.Prepare("one");
  run.PrepareRefused("thief");
  run.Unprepare("pair");
  run.Prepare("pair");
  run.Unprepare("part");
  run.Prepare("part");
  run.Unprepare("admin");
  run.Unprepare("never");
  run.Damage();
  if (!run.Start()) return false;
  run.Prepare("one");
  run.Prepare("part");
  run.Unprepare("one");
  run.Unprepare("part");
  run.Prepare("thief");
  run.Unprepare("shares");
  run.Recover({"pair", "thief"});
  return run.good();
}

}  // namespace ascend::fault
