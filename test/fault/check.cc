#include "test/fault/check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/file.h"
#include "base/runtime/clock.h"
#include "cdi/json.h"
#include "kubeletplugin/claims/device_metadata.h"

namespace ascend::fault {
namespace {

using State = Expected::State;

class Check {
 public:
  Check(ClaimsNode& node, const std::map<std::string, Expected>& expected)
      : node_(node), expected_(expected) {}

  bool Run() {
    for (const State state : {State::kPrepared, State::kOpen, State::kGone, State::kUntouched}) {
      for (const std::string& uid : ClaimUids()) {
        if (StateOf(uid) == state) order_.push_back(uid);
      }
    }
    Require(node_.Start(), "start");
    CheckFiles("after the start");
    for (const auto& [uid, claim] : expected_) {
      if (claim.state == State::kPrepared)
        Require(records_.count(uid) != 0, uid + " lost its record");
      if (claim.state == State::kGone)
        Require(records_.count(uid) == 0, uid + " has a record again");
    }
    PrepareAll();
    CheckFiles("after all are prepared");
    CheckVnpus("after all are prepared");
    CheckLeftoversGo();
    UnprepareAll();
    return good_;
  }

 private:
  State StateOf(const std::string& uid) const {
    const auto it = expected_.find(uid);
    return it == expected_.end() ? State::kUntouched : it->second.state;
  }

  void Require(bool holds, const std::string& what) {
    if (holds) return;
    SayProblem(what);
    good_ = false;
  }
  bool Require(const absl::Status& status, const std::string& what) {
    Require(status.ok(), absl::StrCat(what, ": ", status.message()));
    return status.ok();
  }

  // What has ended but for its vNPU goes by itself.
  void WaitForReleased() {
    const absl::Duration deadline = Clock::Real().Monotonic() + absl::Seconds(20);
    while (Clock::Real().Monotonic() < deadline) {
      const auto contents = node_.Records();
      if (!contents.ok()) return;
      bool released = false;
      for (const auto& record : contents->records) {
        released = released || record->state == kubeletplugin::ClaimState::kReleased;
      }
      if (!released) return;
      ::usleep(1000);  // what is waited for are files
    }
    Require(false, "a released record stays");
  }

  // One exclusive claim per chip, records = CDI files, all of them whole.
  void CheckFiles(const std::string& when) {
    WaitForReleased();
    records_.clear();
    holders_.clear();
    const auto contents = node_.Records();
    const auto files = node_.CdiFiles();
    if (!Require(contents.status(), "records") || !Require(files.status(), "CDI files")) return;
    for (const auto& bad : contents->unreadable) {
      Require(false, absl::StrCat(when, ": unreadable record: ", bad.error.message()));
    }
    std::set<std::string> wanted;
    for (const auto& record : contents->records) {
      records_.insert(record->claim_uid);
      const std::string cdi_file = node_.paths().cdi_file(record->claim_uid);
      const bool begun = record->state != kubeletplugin::ClaimState::kCompleted;
      // What was only begun, or is of another boot, is asked for again.
      if (!VoidVnpus(*record)) wanted.insert(cdi_file);
      Require(!begun || record->has_managed_vnpus(), when + ": a begun record of whole chips");
      CheckMode(JoinPath(node_.paths().claims_directory(), record->claim_uid), 0600);
      for (const kubeletplugin::RecordedDevice& device : record->devices) {
        if (device.admin_access) continue;
        for (const kubeletplugin::RecordedChip& chip : device.chips) {
          const auto [it, first] = holders_.emplace(chip.physical_id, record->claim_uid);
          Require(first || it->second == record->claim_uid,
                  absl::StrCat(when, ": chip ", chip.physical_id, " is held by ", it->second,
                               " and by ", record->claim_uid));
        }
      }
    }
    const std::set<std::string> present(files->begin(), files->end());
    Require(wanted == present,
            absl::StrCat(when, ": records want the CDI files ", absl::StrJoin(wanted, " "),
                         " but there are ", absl::StrJoin(present, " ")));
    // Not every record has metadata, but nothing else may.
    const auto with_metadata = kubeletplugin::ClaimsWithMetadata(node_.paths());
    if (Require(with_metadata.status(), "device metadata")) {
      for (const std::string& uid : *with_metadata) {
        Require(records_.count(uid) != 0,
                absl::StrCat(when, ": device metadata of ", uid, ", which has no record"));
      }
    }
    for (const std::string& file : present) {
      const std::string path = JoinPath(node_.paths().cdi_root(), file);
      CheckMode(path, 0644);
      const absl::StatusOr<std::string> text = ReadFile(path);
      if (Require(text.status(), path)) Require(cdi::ReadJson(*text).status(), path);
    }
  }

  bool VoidVnpus(const kubeletplugin::ClaimRecord& record) const {
    return record.has_managed_vnpus() && (record.state != kubeletplugin::ClaimState::kCompleted ||
                                          record.boot_id != node_.boot_id());
  }

  // One live claim, one vNPU; none without a claim.
  void CheckVnpus(const std::string& when) {
    const auto contents = node_.Records();
    if (!Require(contents.status(), "records")) return;
    std::vector<std::string> owned;
    for (const auto& record : contents->records) {
      for (const kubeletplugin::RecordedDevice& device : record->devices) {
        if (!device.vnpu) continue;
        owned.push_back(absl::StrCat(device.chips.at(0).physical_id, ":",
                                     device.vnpu->template_name, ":", device.vnpu->id));
      }
    }
    Require(owned == node_.Vnpus(),
            absl::StrCat(when, ": records have the vNPUs ", absl::StrJoin(owned, " "),
                         " but there are ", absl::StrJoin(node_.Vnpus(), " ")));
  }

  void CheckMode(const std::string& path, mode_t mode) {
    struct stat info;
    Require(::stat(path.c_str(), &info) == 0 && (info.st_mode & 07777) == mode,
            path + " has another mode");
  }

  // Every claim can be prepared, unless another one holds its chip.
  void PrepareAll() {
    for (const std::string& uid : order_) {
      const absl::StatusOr<std::string> answer = node_.Prepare(uid);
      if (StateOf(uid) == State::kPrepared) {
        Require(answer.status(), "prepared again");
        Require(answer.value_or("") == expected_.at(uid).answer,
                absl::StrCat(uid, " was answered ", expected_.at(uid).answer, " and now ",
                             answer.value_or("an error")));
      } else if (!answer.ok()) {
        const bool rival_holds = (uid == "one" && records_.count("thief") != 0) ||
                                 (uid == "thief" && records_.count("one") != 0);
        Require(rival_holds && absl::StrContains(answer.status().message(), "is still prepared"),
                absl::StrCat(uid, " cannot be prepared: ", answer.status().message()));
      }
      if (answer.ok()) records_.insert(uid);
    }
  }

  // Once temporaries and locks are old, the next start removes them.
  void CheckLeftoversGo() {
    const auto temporaries = node_.Temporaries();
    Require(temporaries.status(), "temporaries");
    SayOk("leftovers", "",
          absl::StrCat(temporaries.ok() ? temporaries->size() : 0, " temporaries"));
    Require(node_.MakeLeftoversOld(), "set back times");
    Require(node_.Start(), "second start");
    const auto left = node_.Temporaries();
    Require(left.ok() && left->empty(), "an old temporary outlives a start");
    const auto locks = node_.ClaimLocks();
    if (!Require(locks.status(), "locks")) return;
    for (const std::string& uid : *locks) {
      Require(records_.count(uid) != 0, "an old lock without a record outlives a start: " + uid);
    }
    CheckFiles("after the second start");
  }

  void UnprepareAll() {
    for (const std::string& uid : ClaimUids()) Require(node_.Unprepare(uid), "unprepare");
    CheckFiles("after all are unprepared");
    CheckVnpus("after all are unprepared");
    Require(records_.empty(), "records are left");
    const auto claims = ListDirectory(node_.paths().claims_directory());
    const auto cdi = ListDirectory(node_.paths().cdi_root());
    const auto locks = node_.ClaimLocks();
    Require(claims.ok() && claims->empty(), "the claims directory is not empty");
    Require(cdi.ok() && cdi->empty(), "the CDI directory is not empty");
    Require(locks.ok() && locks->empty(), "claim locks are left");
  }

  ClaimsNode& node_;
  const std::map<std::string, Expected>& expected_;
  std::vector<std::string> order_;
  std::set<std::string> records_;
  std::map<int, std::string> holders_;
  bool good_ = true;
};

}  // namespace

bool CheckRemains(ClaimsNode& node, const std::map<std::string, Expected>& expected) {
  return Check(node, expected).Run();
}

}  // namespace ascend::fault
