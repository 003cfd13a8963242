// Random schedules of everything that happens to claims on a node, against a model that says what
// must come of it. A failure prints its seed and the last operations; to run one again:
//   ASCEND_SOAK_SEED=<seed> [ASCEND_SOAK_OPERATIONS=<number>] claims_model_test
#include "test/soak/claims_model.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/runtime/logging.h"
#include "cdi/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/kube/errors.h"
#include "test/soak/claims_node.h"
#include "test/soak/environment.h"
#include "test/soak/sanitizer.h"
#include "test/soak/wait.h"

namespace ascend::soak {
namespace {

using kubeletplugin::ClaimRecord;
using kubeletplugin::ClaimReference;
using kubeletplugin::ParseRecord;
using kubeletplugin::PreparedDevice;
using kubeletplugin::RecordedDevice;

constexpr int kChips = 16;
constexpr int kClaimNames = 40;
constexpr int kHistory = 60;            // operations that a failure prints
constexpr int kOperationsPerLook = 16;  // at everything on the disk
constexpr size_t kMostEngines = 2;

// More than one in a hundred thousand is lost only to a bug, or to a machine that stands still.
constexpr absl::Duration kPatience = absl::Seconds(60);

// With the device's own CDI id, which is the first; what else a device brings along is not the
// model's business.
std::string Describe(const std::vector<PreparedDevice>& devices) {
  return absl::StrJoin(devices, "; ", [](std::string* out, const PreparedDevice& device) {
    absl::StrAppend(out, absl::StrJoin(device.requests, ","), " ", device.pool, "/", device.device,
                    " ", device.share_id, " ",
                    device.cdi_device_ids.empty() ? "" : device.cdi_device_ids[0]);
  });
}

// All of the answer, to tell whether it is the same again.
std::vector<std::string> CdiIds(const std::vector<PreparedDevice>& devices) {
  std::vector<std::string> ids;
  for (const PreparedDevice& device : devices) {
    ids.insert(ids.end(), device.cdi_device_ids.begin(), device.cdi_device_ids.end());
  }
  return ids;
}

std::string Describe(const std::vector<kube::DeviceResult>& results) {
  return absl::StrJoin(results, " ", [](std::string* out, const kube::DeviceResult& result) {
    absl::StrAppend(out, result.request, ":", result.device, result.admin_access ? "!admin" : "",
                    result.share_id.empty() ? "" : "!share");
  });
}

class Schedule {
 public:
  explicit Schedule(uint64_t seed) : random_(seed), node_(kChips), model_(kChips) {
    // Refusals are to be told at once: what waiting does is another test's question.
    node_.options.holder_wait = absl::ZeroDuration();
  }

  void Run(int operations) {
    StartEngine();
    for (int i = 0; i < kClaimNames; ++i) CreateClaim(i);
    for (int i = 0; i < operations && !Failed(); ++i) {
      Step();
      if (i % kOperationsPerLook == 0 && !Failed()) LookAtEverything();
    }
    if (!Failed()) End();
    if (Failed()) {
      std::cerr << "The last operations:\n" << absl::StrJoin(history_, "\n") << "\n";
    }
  }

  // Of operations, and of what came of them.
  const std::map<std::string, int>& counts() const { return counts_; }
  int refusals(const std::string& text) const {
    const auto count = counts_.find(RefusalName(text));
    return count == counts_.end() ? 0 : count->second;
  }

 private:
  // Without what differs from claim to claim.
  static std::string RefusalName(const std::string& text) {
    return absl::StrCat("refused: ", text.substr(0, std::min(text.find_first_of("0123456789"),
                                                             text.find(" for claim"))));
  }

  static bool Failed() { return ::testing::Test::HasFailure(); }

  int Random(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }
  bool OneIn(int n) { return Random(n) == 0; }

  void Note(const std::string& operation, const std::string& details) {
    ++counts_[operation];
    history_.push_back(
        absl::StrCat(std::string(static_cast<size_t>(depth_) * 2, ' '), operation, " ", details));
    if (history_.size() > kHistory) history_.pop_front();
  }

  // ------------------------------------------------------------------------------ the schedule

  void Step() {
    const int dice = Random(1000);
    if (dice < 340) return Prepare(CurrentReference(RandomName()), "prepare");
    if (dice < 460) return PrepareAgain();
    if (dice < 620) return UnprepareOne();
    if (dice < 660) return UnprepareUnknown();
    if (dice < 730) return ReplaceClaim();
    if (dice < 750) return DeleteClaim();
    if (dice < 780) return ChangeAllocation();
    if (dice < 860) return PrepareSlowly();
    if (dice < 910) return PrepareWithApiFault();
    if (dice < 950) return ChangeChip();
    if (dice < 956) return EmptyCdiDirectory();
    if (dice < 966) return StartSecondEngine();
    if (dice < 973) return StopOneEngine();
    if (dice < 977) return Crash();
    if (dice < 979) return Reboot();
    return Prepare(CurrentReference(RandomName()), "prepare");
  }

  // What may happen while another call waits for the API server.
  void StepMeanwhile(const ClaimReference& waiting) {
    switch (Random(16)) {
      case 0:
        return EmptyCdiDirectory();
      case 1:
      case 2:
      case 3:
      case 4:
        return Unprepare(waiting, "unprepare");
      case 5:
      case 6:
        return Prepare(waiting, "prepare");
      case 7:
      case 8:
        Unprepare(waiting, "unprepare");
        return Prepare(waiting, "prepare");
      case 9:
      case 10:
      case 11:
        return Prepare(CurrentReference(RandomName()), "prepare");
      case 12:
      case 13:
        return ReplaceClaim();
      default:
        return ChangeChip();
    }
  }

  // -------------------------------------------------------------------------- the API's claims

  std::string RandomName() { return absl::StrCat("claim-", Random(kClaimNames)); }

  std::vector<int> RandomChips(int count) {
    std::set<int> chips;
    while (static_cast<int>(chips.size()) < count) chips.insert(Random(kChips));
    return {chips.begin(), chips.end()};
  }

  static kube::DeviceResult Result(int chip, const std::string& request) {
    return {
        .request = request, .driver = kDriver, .pool = kNode, .device = absl::StrCat("npu-", chip)};
  }

  std::vector<kube::DeviceResult> RandomResults() {
    std::vector<kube::DeviceResult> results;
    const int dice = Random(100);
    if (dice < 60) {  // chips of its own
      const int count = OneIn(3) ? 1 + Random(8) : 1 + Random(2);
      const std::string request = OneIn(4) ? "npu/large" : "npu";
      for (int chip : RandomChips(count)) {
        results.push_back(Result(chip, OneIn(4) ? "extra" : request));
      }
    } else if (dice < 75) {  // to look at chips that others use
      for (int chip : RandomChips(1 + Random(4))) {
        results.push_back(Result(chip, "watch"));
        if (OneIn(4)) results.push_back(Result(chip, "watch-too"));
      }
      for (kube::DeviceResult& result : results) result.admin_access = true;
    } else if (dice < 95) {  // shares of chips
      for (int chip : RandomChips(1 + Random(2))) {
        for (int share = OneIn(4) ? 2 : 1; share > 0; --share) {
          results.push_back(Result(chip, "share"));
          results.back().share_id =
              absl::StrCat(absl::Hex(++shares_, absl::kZeroPad8), "-0000-4000-8000-000000000000");
        }
      }
    } else {  // one chip both ways
      const int chip = Random(kChips);
      results = {Result(chip, "npu"), Result(chip, "watch")};
      results[1].admin_access = true;
    }
    if (OneIn(10)) {
      results.push_back(Result(0, "nic"));
      results.back().driver = "nic.example.com";
    }
    for (size_t i = results.size(); i > 1; --i) {  // the same everywhere, unlike std::shuffle
      std::swap(results[i - 1], results[static_cast<size_t>(Random(static_cast<int>(i)))]);
    }
    return results;
  }

  void SetClaim(const kube::ResourceClaim& claim) {
    model_.claims[claim.name] = claim;
    node_.client.SetClaim(claim);
    Note("api claim",
         absl::StrCat(claim.name, " ", claim.uid, " ",
                      claim.allocation ? Describe(claim.allocation->results) : "not allocated"));
  }

  void CreateClaim(int number) {
    kube::ResourceClaim claim;
    claim.namespace_name = kNamespace;
    claim.name = absl::StrCat("claim-", number);
    claim.uid = absl::StrCat("uid-", ++uids_);
    claim.allocation.emplace();
    claim.allocation->results = RandomResults();
    SetClaim(claim);
  }

  // ORD-01: the old one may still be prepared; its chips may be asked for by the new one.
  void ReplaceClaim() { CreateClaim(Random(kClaimNames)); }

  void DeleteClaim() {
    const std::string name = RandomName();
    if (model_.claims.erase(name) == 0) return ReplaceClaim();
    node_.client.RemoveClaim(kNamespace, name);
    Note("api delete", name);
  }

  void ChangeAllocation() {
    const auto found = model_.claims.find(RandomName());
    if (found == model_.claims.end()) return;
    kube::ResourceClaim claim = found->second;
    if (OneIn(3)) {
      claim.allocation.reset();
    } else {
      claim.allocation.emplace();
      claim.allocation->results = RandomResults();
    }
    SetClaim(claim);
  }

  // As the kubelet asks: by the UID that its pod knows, which is not always the newest.
  ClaimReference CurrentReference(const std::string& name) {
    ClaimReference reference = {.namespace_name = kNamespace, .name = name, .uid = "uid-unknown"};
    const auto claim = model_.claims.find(name);
    if (claim != model_.claims.end()) reference.uid = claim->second.uid;
    return reference;
  }

  std::optional<ClaimReference> SomePrepared() {
    if (model_.prepared.empty()) return std::nullopt;
    return std::next(model_.prepared.begin(), Random(static_cast<int>(model_.prepared.size())))
        ->second.reference;
  }

  // ---------------------------------------------------------------------- Prepare and Unprepare

  kubeletplugin::ClaimEngine& AnyEngine() {
    return node_.engine(static_cast<size_t>(Random(static_cast<int>(node_.engines()))));
  }

  void Prepare(const ClaimReference& reference, const std::string& operation,
               std::optional<absl::StatusCode> fault = std::nullopt) {
    std::optional<kube::ResourceClaim> answered;
    if (const auto claim = model_.claims.find(reference.name); claim != model_.claims.end()) {
      answered = claim->second;
    }
    Note(operation, absl::StrCat(reference.name, " ", reference.uid));
    locks_.insert(reference.uid);
    const int unprepares = unprepares_[reference.uid];
    const auto result = AnyEngine().Prepare(reference);

    Outcome expected = model_.ExpectPrepare(reference, answered);
    if (unprepares_[reference.uid] != unprepares) {  // ORD-04
      expected.refusals.push_back({absl::StatusCode::kAborted, "unprepared while this call"});
      locks_.insert(reference.uid);
    }
    if (fault) expected.refusals = {{*fault, reference.name}};
    Compare(reference, result, expected);
    if (Failed() || !result.ok()) return;
    ++counts_["prepared"];
    model_.Prepare(reference, *answered);
    LookAtAnswered(reference.uid, CdiIds(*result));
  }

  void Compare(const ClaimReference& reference,
               const absl::StatusOr<std::vector<PreparedDevice>>& result, const Outcome& expected) {
    if (expected.refusals.empty()) {
      ASSERT_THAT(result, IsOk()) << reference.name << " " << reference.uid;
      ASSERT_EQ(Describe(*result), Describe(expected.answer)) << reference.uid;
      return;
    }
    std::vector<std::string> reasons;
    for (const Refusal& refusal : expected.refusals) {
      if (result.status().code() == refusal.code &&
          absl::StrContains(result.status().message(), refusal.text)) {
        // The kubelet shows it in the pod's events, without the claim's name.
        ASSERT_TRUE(absl::StartsWith(
            result.status().message(),
            absl::StrCat("claim ", reference.namespace_name, "/", reference.name, ": ")))
            << result.status();
        ++counts_[RefusalName(refusal.text)];
        return;
      }
      reasons.push_back(refusal.text);
    }
    FAIL() << reference.name << " " << reference.uid << " was to be refused ("
           << absl::StrJoin(reasons, "; ") << "), not: " << result.status();
  }

  void PrepareAgain() {
    const std::optional<ClaimReference> reference = SomePrepared();
    if (!reference) return;
    Prepare(*reference, "prepare again");
  }

  void PrepareSlowly() {
    const std::optional<ClaimReference> again = OneIn(3) ? SomePrepared() : std::nullopt;
    const ClaimReference reference = again ? *again : CurrentReference(RandomName());
    node_.client.DuringNextGet([this, reference] {
      ++depth_;
      StepMeanwhile(reference);
      --depth_;
    });
    Prepare(reference, "prepare slowly");
  }

  void PrepareWithApiFault() {
    const ClaimReference reference = CurrentReference(RandomName());
    const std::string request = absl::StrCat("GET claims/", reference.name);
    if (OneIn(100)) {  // retried inside the call, after 50 ms
      node_.client.FailGets(OneIn(2) ? kube::ResponseError(request, {.status = 500})
                                     : absl::DeadlineExceededError(request));
      return Prepare(reference, "prepare with API error that passes");
    }
    static constexpr int kStatus[] = {403, 409, 422, 429, 500, 503};
    kube::HttpResponse response;
    response.status = kStatus[Random(std::size(kStatus))];
    // A server that asks for more patience than the kubelet has.
    response.retry_after = absl::Hours(1);
    const absl::Status fault = kube::ResponseError(request, response);
    node_.client.FailGets(fault);
    Prepare(reference, "prepare with API error", fault.code());
  }

  void Unprepare(const ClaimReference& reference, const std::string& operation) {
    Note(operation, absl::StrCat(reference.name, " ", reference.uid));
    ASSERT_THAT(AnyEngine().Unprepare(reference), IsOk());
    ++unprepares_[reference.uid];
    model_.prepared.erase(reference.uid);
    files_.erase(reference.uid);
    locks_.erase(reference.uid);
    ASSERT_FALSE(node_.HasRecord(reference.uid)) << reference.uid;
    ASSERT_FALSE(node_.HasCdi(reference.uid)) << reference.uid;
  }

  void UnprepareOne() {
    if (const std::optional<ClaimReference> reference = SomePrepared()) {
      Unprepare(*reference, "unprepare");
    }
  }

  void UnprepareUnknown() {
    if (OneIn(2)) return Unprepare(CurrentReference(RandomName()), "unprepare any");
    Unprepare({.namespace_name = kNamespace,
               .name = RandomName(),
               .uid = absl::StrCat("uid-never-", Random(1000))},
              "unprepare unknown");
  }

  // ------------------------------------------------------------------------------ the node

  // A chip drops, with or without its node; comes back; or comes back as other hardware.
  void ChangeChip() {
    int id = Random(kChips);
    if (const std::optional<ClaimReference> holder = OneIn(2) ? SomePrepared() : std::nullopt) {
      id = ChipOf(model_.prepared.at(holder->uid).results[0].device);
    }
    if (OneIn(2)) {  // lost ones come back soon
      for (int other = 0; other < kChips; ++other) id = IsLost(other) ? other : id;
    }
    ModelChip& chip = model_.chips[static_cast<size_t>(id)];
    if (IsLost(id)) {
      chip.listed = chip.node = true;
      if (OneIn(2) && MayBeReplaced(id)) chip.uuid = absl::StrCat("uuid-", id, "-", ++replaced_);
    } else if (lost() < 3) {
      chip.listed = OneIn(4);
      chip.node = !chip.listed && OneIn(2);
    }
    Note("chip", absl::StrCat(id, chip.listed ? " listed" : " lost", chip.node ? "" : " no node ",
                              chip.uuid));
    node_.SetChip(id, chip.listed, chip.uuid, chip.node);
    if (node_.engines() == 0) return;
    node_.NotifyChange();
    // Claims whose file could not be restored get it now.
    RestoreExpected(/*all=*/false);
  }

  // An engine that is restoring a claim's file may have seen that nothing speaks against the chip
  // just before the other one was there. Nobody can tell then whether it is restored.
  bool MayBeReplaced(int id) const {
    return node_.engines() == 0 ||
           std::all_of(model_.prepared.begin(), model_.prepared.end(), [&](const auto& entry) {
             const auto files = files_.find(entry.first);
             return entry.second.uuids.count(id) == 0 ||
                    (files != files_.end() && files->second.has_cdi);
           });
  }

  bool IsLost(int id) const {
    const ModelChip& chip = model_.chips[static_cast<size_t>(id)];
    return !chip.listed || !chip.node;
  }
  int lost() const {
    int count = 0;
    for (int id = 0; id < kChips; ++id) count += IsLost(id) ? 1 : 0;
    return count;
  }

  void EmptyCdiDirectory() {
    const bool with_directory = OneIn(2);
    Note("empty CDI directory", with_directory ? "with it" : "");
    node_.EmptyCdiDirectory(with_directory);
    for (auto& [uid, files] : files_) files.has_cdi = false;
    RestoreExpected(/*all=*/false);
  }

  void StartEngine() {
    ASSERT_THAT(node_.StartEngine(), IsOk());
    RestoreExpected(/*all=*/true);
  }

  // An upgrade: the new one comes before the old one goes, in either order of death.
  void StartSecondEngine() {
    if (node_.engines() == kMostEngines) return;
    Note("start second engine", "");
    StartEngine();
  }

  void StopOneEngine() {
    if (node_.engines() < 2) return;
    Note("stop one engine", "");
    node_.StopEngine(static_cast<size_t>(Random(2)));
  }

  void Crash() {
    Note("crash", "");
    node_.StopEngines();
    LeaveHalfDoneWork();
    StartEngine();
    LookAtEverything();
  }

  void Reboot() {
    Note("reboot", "");
    node_.StopEngines();
    node_.EmptyCdiDirectory(/*with_directory=*/true);
    for (auto& [uid, files] : files_) files.has_cdi = false;
    node_.options.boot_id = absl::StrCat("boot-", ++boots_);
    // What nobody was there to see.
    for (int changes = Random(4); changes > 0; --changes) ChangeChip();
    StartEngine();
    LookAtEverything();
  }

  // What a process leaves that is killed inside an operation.
  void LeaveHalfDoneWork() {
    const auto write = [](const std::string& path, const std::string& content, bool old) {
      ASSERT_THAT(WriteFileAtomically(path, content, {.mode = 0644, .durable = false}), IsOk());
      if (!old) return;
      const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
      ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), long_ago, 0), 0);
    };
    ASSERT_THAT(MakeDirectories(node_.paths().cdi_root()), IsOk());
    if (OneIn(2)) {  // between the CDI file and the record of a Prepare
      const std::string uid = absl::StrCat("uid-orphan-", ++uids_);
      write(node_.CdiPath(uid), "{}", false);
      write(node_.paths().claim_lock(uid), "", false);
      locks_.insert(uid);  // young: a Prepare of another instance may have it open
      Note("left", uid);
    }
    if (OneIn(2)) {  // inside the writing of a file, long ago: nobody can be at work on it
      write(JoinPath(node_.paths().claims_directory(), ".uid-x.0123456789abcdef.tmp"), "{", true);
      write(JoinPath(node_.paths().cdi_root(),
                     absl::StrCat(".", node_.paths().cdi_file("uid-x"), ".0123456789abcdef.tmp")),
            "{", true);
    }
    if (const std::optional<ClaimReference> reference = SomePrepared()) {
      Files& files = files_[reference->uid];
      if (OneIn(2)) {  // between the CDI file and the record of an Unprepare
        ::unlink(node_.CdiPath(reference->uid).c_str());
        files.has_cdi = false;
        Note("left", absl::StrCat("no CDI file of ", reference->uid));
      } else if (model_.CanRestore(model_.prepared.at(reference->uid))) {
        write(node_.CdiPath(reference->uid), "{\"cdiVersion\"", false);
        files.has_cdi = false;
        Note("left", absl::StrCat("half a CDI file of ", reference->uid));
      }
    }
  }

  // ------------------------------------------------------------------------------ looking

  struct Files {
    bool has_cdi = false;
    std::string cdi;               // as first written
    std::vector<std::string> ids;  // as first answered
  };

  // Waits until the files that can be restored are there. `all`: also those that are there are made
  // anew.
  void RestoreExpected(bool all) {
    for (const auto& [uid, claim] : model_.prepared) {
      Files& files = files_[uid];
      if (depth_ > 0 && !files.has_cdi && files.cdi.empty()) continue;
      if (files.has_cdi && !all) continue;
      if (!model_.CanRestore(claim)) continue;
      ASSERT_TRUE(WaitFor([&] { return node_.HasCdi(uid); }, kPatience))
          << "the CDI file of " << uid << " does not come back";
      files.has_cdi = true;
    }
  }

  // After a Prepare that succeeded.
  void LookAtAnswered(const std::string& uid, const std::vector<std::string>& ids) {
    Files& files = files_[uid];
    const absl::StatusOr<std::string> cdi = ReadFile(node_.CdiPath(uid));
    ASSERT_THAT(cdi, IsOk());
    if (files.cdi.empty()) {
      files.cdi = *cdi;
      files.ids = ids;
      LookAtSpec(uid, *cdi, ids);
    }
    files.has_cdi = true;
    ASSERT_EQ(*cdi, files.cdi) << uid;  // ORD-07
    ASSERT_EQ(ids, files.ids) << uid;
    ClaimRecord record;
    LookAtRecord(uid, &record);
    EXPECT_EQ(record.boot_id, node_.options.boot_id);  // REC-05
  }

  // CDI-10: names of a claim's own, each with its chip.
  void LookAtSpec(const std::string& uid, const std::string& text,
                  const std::vector<std::string>& ids) {
    const absl::StatusOr<cdi::Spec> spec = cdi::ReadJson(text);
    ASSERT_THAT(spec, IsOk());
    std::set<std::string> names;
    std::map<std::string, std::string> nodes, expected;  // by device
    for (const cdi::Device& device : spec->devices) {
      const std::string name = absl::StrCat(spec->kind, "=", device.name);
      ASSERT_TRUE(names.insert(name).second) << name << " twice";
      for (const cdi::DeviceNode& node : device.container_edits.device_nodes) {
        ASSERT_TRUE(nodes.emplace(name, node.path).second) << name;
      }
    }
    for (const PreparedDevice& device : ClaimsModel::Answer(uid, model_.prepared.at(uid).results)) {
      expected[device.cdi_device_ids.at(0)] = absl::StrCat("/dev/davinci", ChipOf(device.device));
    }
    ASSERT_EQ(nodes, expected) << uid;
    ASSERT_THAT(ids, ::testing::Each(::testing::AnyOfArray(names))) << uid;
  }

  void LookAtRecord(const std::string& uid, ClaimRecord* record) {
    const absl::StatusOr<std::string> bytes = ReadFile(node_.RecordPath(uid));
    ASSERT_THAT(bytes, IsOk());
    absl::StatusOr<ClaimRecord> parsed = ParseRecord(*bytes);
    ASSERT_THAT(parsed, IsOk()) << *bytes;
    *record = *std::move(parsed);
    const PreparedModelClaim& claim = model_.prepared.at(uid);
    std::vector<PreparedDevice> devices;
    for (const RecordedDevice& device : record->devices) {
      devices.push_back({.requests = device.requests,
                         .pool = device.pool,
                         .device = device.device,
                         .share_id = device.share_id,
                         .cdi_device_ids = {node_.paths().cdi_device_id(device.cdi_device)}});
      ASSERT_EQ(device.chips.size(), 1u);
      EXPECT_EQ(device.chips[0].uuid, claim.uuids.at(device.chips[0].physical_id));
    }
    ASSERT_EQ(Describe(devices), Describe(ClaimsModel::Answer(uid, claim.results)));
    EXPECT_EQ(record->claim_name, claim.reference.name);
    EXPECT_EQ(record->claim_uid, uid);
  }

  void LookAtEverything() {
    std::vector<std::string> records, cdi_files;
    for (const auto& [uid, claim] : model_.prepared) {
      records.push_back(uid);
      if (files_[uid].has_cdi) cdi_files.push_back(node_.paths().cdi_file(uid));
    }
    ASSERT_EQ(ClaimsNode::Names(node_.paths().claims_directory()), records);
    ASSERT_THAT(ClaimsNode::Names(node_.paths().cdi_root()),
                ::testing::UnorderedElementsAreArray(cdi_files));
    // Nothing but the records says who holds what.
    std::map<int, std::string> exclusive;  // holder by chip
    for (const std::string& uid : records) {
      ClaimRecord record;
      LookAtRecord(uid, &record);
      if (Failed()) return;
      for (const RecordedDevice& device : record.devices) {
        if (device.admin_access || !device.share_id.empty()) continue;
        for (const auto& chip : device.chips) {
          const auto [holder, first] = exclusive.emplace(chip.physical_id, uid);
          ASSERT_TRUE(first || holder->second == uid)
              << "chip " << chip.physical_id << " is held by " << holder->second << " and " << uid;
        }
      }
      if (files_[uid].has_cdi) {
        ASSERT_EQ(ReadFile(node_.CdiPath(uid)).value_or(""), files_[uid].cdi) << uid;
      }
    }
    // A lock file is a prepared claim's, or of a Prepare that failed and was not unprepared.
    for (const std::string& uid : node_.ClaimLocks()) ASSERT_EQ(locks_.count(uid), 1u) << uid;
  }

  void End() {
    while (!model_.prepared.empty() && !Failed()) UnprepareOne();
    for (const std::string& uid : std::set<std::string>(locks_)) {
      if (!Failed()) Unprepare({.namespace_name = kNamespace, .name = "x", .uid = uid}, "end");
    }
    node_.StopEngines();
    EXPECT_THAT(ClaimsNode::Names(node_.paths().claims_directory()), ::testing::IsEmpty());
    EXPECT_THAT(ClaimsNode::Names(node_.paths().cdi_root()), ::testing::IsEmpty());
    EXPECT_THAT(node_.ClaimLocks(), ::testing::IsEmpty());
  }

  std::mt19937_64 random_;
  ClaimsNode node_;
  ClaimsModel model_;
  std::map<std::string, Files> files_;     // of prepared claims
  std::map<std::string, int> unprepares_;  // by UID
  std::set<std::string> locks_;            // UIDs that may have a lock file
  std::map<std::string, int> counts_;      // of operations
  std::deque<std::string> history_;
  int depth_ = 0;  // inside another call
  int uids_ = 0, shares_ = 0, replaced_ = 0, boots_ = 0;
};

class ClaimsModelTest : public ::testing::TestWithParam<int> {};

TEST_P(ClaimsModelTest, RandomSchedule) {
  if (!CanMakeNodes()) GTEST_SKIP() << "mknod is refused: needs root with CAP_MKNOD";
  const int64_t seed = FromEnvironment("ASCEND_SOAK_SEED", GetParam());
  // Instrumented code is ten times slower: what it is to find needs no long schedule.
  const int64_t operations = FromEnvironment("ASCEND_SOAK_OPERATIONS", kSanitized ? 2500 : 26000);
  SCOPED_TRACE(absl::StrCat("ASCEND_SOAK_SEED=", seed, " ASCEND_SOAK_OPERATIONS=", operations));
  InitLogging({.silent = true});
  const absl::Time start = absl::Now();
  Schedule schedule(static_cast<uint64_t>(seed));
  schedule.Run(static_cast<int>(operations));
  InitLogging({});
  // A schedule that meets none of these shows nothing about them; a short one may miss a rare one.
  if (operations >= 20000) {
    for (const char* text :
         {"still prepared", "still prepared with another allocation", "other hardware now",
          "asks for UID uid-", "unprepared while this call", "not allocated", "/dev/davinci"}) {
      EXPECT_GT(schedule.refusals(text), 0) << text;
    }
  }
  std::cout << "seed " << seed << ", " << operations << " operations in "
            << absl::FormatDuration(absl::Trunc(absl::Now() - start, absl::Milliseconds(1))) << ": "
            << absl::StrJoin(schedule.counts(), ", ",
                             [](std::string* out, const auto& count) {
                               absl::StrAppend(out, count.second, " ", count.first);
                             })
            << "\n";
}

INSTANTIATE_TEST_SUITE_P(Seeds, ClaimsModelTest, ::testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace ascend::soak
