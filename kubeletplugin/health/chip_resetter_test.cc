#include "kubeletplugin/health/chip_resetter.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/health/chip_orders.h"
#include "kubeletplugin/health/reset_controller.h"
#include "kubeletplugin/testing/fake_kube_client.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using vnpu::HealthLevel;

constexpr int kSick = 3;
constexpr uint64_t kCode = 0x8C044E00;

class FakeClock : public Clock {
 public:
  absl::Time Now() const override { return now; }
  absl::Duration Monotonic() const override { return now - absl::UnixEpoch(); }
  absl::Time now = absl::FromUnixSeconds(1'790'000'000);
};

// A mesh of eight 910B, of which one wants to be reset.
class ChipResetterTest : public ::testing::Test {
 protected:
  ChipResetterTest() {
    EXPECT_THAT(MakeDirectories(paths_.locks_directory()), IsOk());
    EXPECT_THAT(records_.Prepare(), IsOk());
    inventory_.library = vnpu::LibraryState::kReady;
    for (int i = 0; i < 8; ++i) {
      vnpu::Chip chip = {.physical_id = i, .card_id = i, .device_id = 0};
      chip.family = vnpu::Family::k910B;
      chip.uuid = absl::StrCat("uuid-", i);
      chip.hccs_group = "hccs-0";
      chip.health = vnpu::Health::kOk;
      chip.busy.emplace();
      inventory_.chips.push_back(chip);
      verdicts_[i] = {.physical_id = i, .uuid = chip.uuid, .since = absl::UnixEpoch()};
    }
    Break();
    resetter_ = Make();
  }
  ~ChipResetterTest() override { client_.Shutdown(); }

  void Break(HealthLevel level = HealthLevel::kFreeRestartNpu, uint64_t code = kCode) {
    vnpu::Verdict& verdict = verdicts_[kSick];
    verdict.level = level;
    verdict.effect = vnpu::TaintEffect::kNoSchedule;
    verdict.state = vnpu::HealthState::kUnhealthy;
    verdict.since = clock_.now - absl::Minutes(1);
    verdict.causes.push_back({.level = level,
                              .text = absl::StrCat("fault ", absl::Hex(code)),
                              .code = code,
                              .since = verdict.since});
  }
  void Mend() { verdicts_[kSick] = {.physical_id = kSick, .uuid = "uuid-3", .since = clock_.now}; }

  std::unique_ptr<ChipResetter> Make(bool enabled = true) {
    ChipResetter::Options options = {.enabled = enabled, .lock_wait = absl::Milliseconds(20)};
    return std::make_unique<ChipResetter>(
        options, paths_, records_, recorder_,
        ChipResetter::Sources{
            .agent =
                [this] {
                  return agent::View{
                      .connected = connected_,
                      .disconnected_for = {},
                      .inventory = std::make_shared<const vnpu::Inventory>(inventory_)};
                },
            .known =
                [this] {
                  vnpu::Inventory known = inventory_;
                  known.chips.insert(known.chips.end(), lost_.begin(), lost_.end());
                  return std::make_shared<const vnpu::Inventory>(known);
                },
            .verdicts = [this] { return std::make_shared<const ChipVerdicts>(verdicts_); },
            .pending = [this] { return pending_; },
            .reset =
                [this](const agent::ResetRequest& request, absl::Duration /*timeout*/) {
                  requests_.push_back(request);
                  return on_reset_ ? on_reset_(request) : Started(request);
                },
            .resetting_changed =
                [this] {
                  if (on_resetting_) on_resetting_();
                }},
        clock_);
  }
  static absl::StatusOr<std::vector<agent::ChipReset>> Started(const agent::ResetRequest& request) {
    std::vector<agent::ChipReset> chips;
    for (const auto& member : request.group) {
      chips.push_back({.physical_id = member.physical_id, .started = true});
    }
    return chips;
  }

  RecordedDevice Device(int chip) {
    RecordedDevice device;
    device.requests = {"npu"};
    device.pool = "node";
    device.device = absl::StrCat("npu-", chip);
    device.cdi_device = "c";
    device.chips = {{.physical_id = chip}};
    return device;
  }
  ClaimRecord Record(int chip) {
    ClaimRecord record;
    record.claim_namespace = "team";
    record.claim_name = "job";
    record.claim_uid = "uid-1";
    record.boot_id = "boot";
    record.devices = {Device(chip)};
    return record;
  }

  // Once the recorder has sent as many.
  std::vector<std::string> Events(size_t count) {
    EXPECT_TRUE(client_.WaitUntil([&] { return client_.events().size() >= count; }));
    std::vector<std::string> events;
    for (const kube::Event& event : client_.events()) {
      events.push_back(
          absl::StrCat(event.warning ? "Warning " : "", event.reason, " ", event.message));
    }
    return events;
  }
  ResetTries Tries() {
    const auto memory = ReadResetsFile(paths_.resets_file());
    EXPECT_THAT(memory, IsOk());
    return memory.ok() && memory->count(kSick) != 0 ? memory->at(kSick) : ResetTries();
  }
  void ExpectRefused(const std::string& what) {
    const size_t before = requests_.size();
    EXPECT_GT(resetter_->Look(), absl::ZeroDuration()) << what;
    EXPECT_THAT(requests_, SizeIs(before)) << what;
    EXPECT_THAT(resetter_->resetting(), IsEmpty()) << what;
  }
  void ExpectDone(const std::string& what) {
    const size_t before = requests_.size();
    resetter_->Look();
    EXPECT_THAT(requests_, SizeIs(before + 1)) << what;
  }

  TempDir temp_;
  const Paths paths_ =
      *Paths::Create({.kubelet_root = temp_.File("k"), .cdi_root = temp_.File("c")});
  FakeClock clock_;
  RecordStore records_{paths_.claims_directory()};
  kube::FakeClient client_;
  kube::EventRecorder recorder_{{.controller = "npu.huawei.com", .node_name = "node"}, client_};
  bool connected_ = true;
  vnpu::Inventory inventory_;
  std::vector<vnpu::Chip> lost_;
  ChipVerdicts verdicts_;
  std::vector<kube::SliceDevice> pending_;
  std::vector<agent::ResetRequest> requests_;
  std::function<absl::StatusOr<std::vector<agent::ChipReset>>(const agent::ResetRequest&)>
      on_reset_;
  std::function<void()> on_resetting_;
  std::unique_ptr<ChipResetter> resetter_;
};

TEST_F(ChipResetterTest, ResetsAnIdleGroup) {
  std::vector<size_t> resetting;
  on_resetting_ = [&] { resetting.push_back(resetter_->resetting().size()); };
  on_reset_ = [&](const agent::ResetRequest& request) {
    // Nobody gets a chip meanwhile, and the try is written down already.
    for (int i = 0; i < 8; ++i) {
      EXPECT_THAT(FileLock::Acquire(paths_.chip_lock(i), absl::ZeroDuration()),
                  StatusIs(absl::StatusCode::kDeadlineExceeded));
    }
    EXPECT_TRUE(Tries().under_way());
    EXPECT_EQ(Tries().tries, 1);
    return Started(request);
  };
  EXPECT_EQ(resetter_->Look(), absl::ZeroDuration()) << "nothing is as it was";
  ASSERT_THAT(requests_, SizeIs(1));
  EXPECT_EQ(requests_[0].physical_id, kSick);
  EXPECT_THAT(requests_[0].group, SizeIs(8));
  EXPECT_EQ(requests_[0].group[5].uuid, "uuid-5");
  EXPECT_EQ(requests_[0].boot_wait, absl::Seconds(150));
  EXPECT_THAT(resetting, ElementsAre(8u, 0u));
  EXPECT_THAT(FileLock::Acquire(paths_.chip_lock(5), absl::ZeroDuration()), IsOk());
  EXPECT_THAT(Events(1),
              ElementsAre(AllOf(HasSubstr("NpuReset NPU chip 3: reset 1 of 3 because of fault"),
                                HasSubstr("chip 0, 1, 2, 3, 4, 5, 6, 7 have started again"))));
  EXPECT_FALSE(Tries().under_way());
  EXPECT_FALSE(Tries().failed);
}

TEST_F(ChipResetterTest, OnlyWhatWantsAReset) {
  for (int level = 0; level < static_cast<int>(vnpu::kHealthLevels); ++level) {
    const auto wanted = static_cast<HealthLevel>(level);
    Mend();
    Break(wanted);
    clock_.now += absl::Hours(1);
    if (wanted == HealthLevel::kFreeRestartNpu || wanted == HealthLevel::kRestartNpu) {
      ExpectDone(std::string(vnpu::HealthLevelName(wanted)));
    } else {
      ExpectRefused(std::string(vnpu::HealthLevelName(wanted)));
    }
  }
}

TEST_F(ChipResetterTest, NotWhenItIsSwitchedOff) {
  resetter_ = Make(/*enabled=*/false);
  EXPECT_EQ(resetter_->Look(), absl::InfiniteDuration());
  EXPECT_THAT(requests_, IsEmpty());
}

TEST_F(ChipResetterTest, AFaultGetsTimeToGoByItself) {
  verdicts_[kSick].causes[0].since = clock_.now;
  EXPECT_EQ(resetter_->Look(), absl::Seconds(15));
  clock_.now += absl::Seconds(14);
  EXPECT_EQ(resetter_->Look(), absl::Seconds(1));
  verdicts_[kSick].causes[0].present = false;
  clock_.now += absl::Seconds(1);
  ExpectRefused("the fault has gone");
  verdicts_[kSick].causes[0].present = true;
  ExpectDone("it has come back");
}

TEST_F(ChipResetterTest, NeverWhileAClaimHoldsAMember) {
  for (int member = 0; member < 8; ++member) {
    for (const ClaimState state :
         {ClaimState::kStarted, ClaimState::kCompleted, ClaimState::kReleased}) {
      for (const bool admin : {false, true}) {
        ClaimRecord record = Record(member);
        record.state = state;
        record.devices[0].admin_access = admin;
        ASSERT_THAT(records_.Write(record), IsOk());
        ExpectRefused(absl::StrCat(member, ClaimStateName(state), admin));
      }
    }
  }
  ASSERT_THAT(records_.Remove("uid-1"), IsOk());
  ExpectDone("released");
}

TEST_F(ChipResetterTest, NeverWhileAPartOfAMemberIsHeld) {
  ClaimRecord record = Record(6);
  record.devices[0].vnpu = RecordedVnpu{.template_name = "vir05_1c_16g"};
  ASSERT_THAT(records_.Write(record), IsOk());
  ExpectRefused("a vNPU of a claim");
  record.devices[0].vnpu.reset();
  record.devices[0].share_id = "11111111-1111-1111-1111-111111111111";
  ASSERT_THAT(records_.Write(record), IsOk());
  ExpectRefused("a share");
}

TEST_F(ChipResetterTest, NeverWhileARecordCannotBeRead) {
  ASSERT_THAT(WriteFileAtomically(JoinPath(records_.directory(), "uid-2"), "damaged"), IsOk());
  ExpectRefused("any chip may be its");
  ASSERT_THAT(records_.Remove("uid-2"), IsOk());
  ExpectDone("it is gone");
}

TEST_F(ChipResetterTest, NeverWhileAMemberIsInUseOrNobodyCanTell) {
  const vnpu::Inventory idle = inventory_;
  for (size_t member = 0; member < 8; ++member) {
    const auto refused = [&](const std::string& what, auto edit) {
      edit(inventory_.chips[member]);
      ExpectRefused(absl::StrCat(what, " ", member));
      inventory_ = idle;
    };
    refused("a process", [](vnpu::Chip& chip) { chip.busy->push_back(77); });
    refused("unknown processes", [](vnpu::Chip& chip) { chip.busy.reset(); });
    refused("stuck", [](vnpu::Chip& chip) { chip.stuck = "a call has not returned for 12 s"; });
    refused("a foreign vNPU", [](vnpu::Chip& chip) {
      chip.partitioning = vnpu::Partitioning{.vnpus = {{.id = 100}}};
    });
    refused("unknown vNPUs", [](vnpu::Chip& chip) { chip.partitioning_error = "-8012"; });
    pending_ = {{.name = absl::StrCat("npu-", member)}};
    ExpectRefused("a claim that is being prepared");
    pending_.clear();
  }
  inventory_.chips[5].partitioning.emplace();  // could be divided, and is not
  ExpectDone("all are idle");
}

TEST_F(ChipResetterTest, AChipOfAnotherGroupMayBeHeld) {
  inventory_.chips[7].physical_id = 8;
  inventory_.chips[7].hccs_group = "hccs-1";
  ASSERT_THAT(records_.Write(Record(8)), IsOk());
  ExpectDone("another mesh");
}

TEST_F(ChipResetterTest, ALostMemberCountsIfItIsHeld) {
  lost_ = {inventory_.chips[7]};
  lost_[0].health = vnpu::Health::kAbsent;
  lost_[0].busy.reset();
  inventory_.chips.pop_back();
  ASSERT_THAT(records_.Write(Record(7)), IsOk());
  ExpectRefused("held");
  // Also after a boot at which it was not there.
  lost_.clear();
  ExpectRefused("held on the boot before");
  ASSERT_THAT(records_.Remove("uid-1"), IsOk());
  on_reset_ = [](const agent::ResetRequest& request) {
    auto chips = *Started(request);
    chips[7] = {.physical_id = 7, .problem = "the library does not list it"};
    return chips;
  };
  ExpectDone("lost, and held by nobody");
  EXPECT_FALSE(Tries().failed) << "it was not there before";
}

TEST_F(ChipResetterTest, NeverWithoutTheAgent) {
  connected_ = false;
  ExpectRefused("away");
  connected_ = true;
  inventory_.library = vnpu::LibraryState::kNotResponding;
  ExpectRefused("the library does not answer");
  inventory_.library = vnpu::LibraryState::kReady;
  inventory_.chips[kSick].health = vnpu::Health::kAbsent;
  ExpectRefused("the chip is away");
}

TEST_F(ChipResetterTest, AHoldThatComesWhileItWaitsForTheLocksCounts) {
  for (const int member : {0, 7}) {
    auto prepare = FileLock::Acquire(paths_.chip_lock(member), absl::ZeroDuration());
    ASSERT_THAT(prepare, IsOk());
    ExpectRefused("somebody has the lock");
    // The claim gets its record and gives the lock back after the reset was begun.
    on_resetting_ = [&] {
      EXPECT_THAT(records_.Write(Record(member)), IsOk());
      prepare->Release();
    };
    ExpectRefused("a record has come");
    on_resetting_ = nullptr;
    ASSERT_THAT(records_.Remove("uid-1"), IsOk());
  }
  // So does a fault that goes, a process that comes, and another group.
  on_resetting_ = [&] { verdicts_[kSick].causes[0].present = false; };
  ExpectRefused("the fault is gone");
  verdicts_[kSick].causes[0].present = true;
  on_resetting_ = [&] { inventory_.chips[2].busy->push_back(1); };
  ExpectRefused("a process has come");
  inventory_.chips[2].busy->clear();
  on_resetting_ = nullptr;
  EXPECT_THAT(ReadResetsFile(paths_.resets_file()), StatusIs(absl::StatusCode::kNotFound))
      << "none of it was a try";
  ExpectDone("all is idle");
}

TEST_F(ChipResetterTest, ThreeTriesAndThenNoMoreAlsoAcrossRestarts) {
  on_reset_ = [](const agent::ResetRequest& request) {
    auto chips = *Started(request);
    chips[4] = {.physical_id = 4, .problem = "its boot status is 2, not 16"};
    return chips;
  };
  for (int i = 1; i <= 3; ++i) {
    ExpectDone("a try");
    EXPECT_EQ(Tries().tries, i);
    resetter_ = Make();  // a restart begins nothing anew
    ExpectRefused("not at once");
    clock_.now += absl::Minutes(10) - absl::Seconds(1);
    ExpectRefused("too early");
    clock_.now += absl::Seconds(1);
  }
  ExpectRefused("three are enough");
  EXPECT_TRUE(Tries().gave_up);
  clock_.now += absl::Hours(100);
  ExpectRefused("still");
  resetter_ = Make();
  ExpectRefused("also after a restart");
  const std::vector<std::string> events = Events(4);
  ASSERT_THAT(events, SizeIs(4));
  EXPECT_THAT(events[0], AllOf(HasSubstr("Warning NpuResetFailed NPU chip 3: reset 1 of 3"),
                               HasSubstr("failed: chip 4 has not started again: its boot status")));
  EXPECT_THAT(events[3], HasSubstr("Warning NpuResetFailed NPU chip 3: 3 resets did not mend"));
  EXPECT_THAT(ResetText(Tries(), 3), AllOf(HasSubstr("reset 3 of 3 at 2026-"),
                                           HasSubstr("failed: chip 4"), HasSubstr("no more")));
}

TEST_F(ChipResetterTest, ANewFaultOrAnOrderBeginsAnew) {
  for (int i = 0; i < 3; ++i) {
    ExpectDone("a try that does not mend it");
    clock_.now += absl::Minutes(10);
  }
  ExpectRefused("given up");
  // Isolation by hand is no such order, nor is one about another chip or before the last try.
  const auto order = [&](ChipOrder::Action action, int chip, absl::Time at) {
    EXPECT_THAT(WriteChipOrder(paths_.chip_orders_directory(), {.action = action,
                                                                .physical_id = chip,
                                                                .uuid = absl::StrCat("uuid-", chip),
                                                                .reason = "x",
                                                                .at = at}),
                IsOk());
  };
  order(ChipOrder::Action::kIsolate, kSick, clock_.now);
  ExpectRefused("isolated");
  order(ChipOrder::Action::kRelease, 4, clock_.now);
  ExpectRefused("another chip");
  order(ChipOrder::Action::kRelease, kSick, clock_.now - absl::Hours(10));
  ExpectRefused("long ago");
  order(ChipOrder::Action::kRelease, kSick, clock_.now);
  ExpectDone("released");
  EXPECT_EQ(Tries().tries, 1);
  clock_.now += absl::Minutes(1);
  ExpectRefused("the same order counts once");

  Break(HealthLevel::kRestartNpu, 0x80E18005);
  clock_.now += absl::Minutes(1);
  ExpectRefused("another fault does not shorten the time between two tries");
  clock_.now += absl::Minutes(10);
  ExpectDone("another fault");
  EXPECT_EQ(Tries().tries, 1);
  EXPECT_THAT(Tries().codes, ElementsAre(0x80E18005, kCode));
}

TEST_F(ChipResetterTest, AFaultThatComesBackSoonIsTheSame) {
  ExpectDone("first");
  Mend();
  clock_.now += absl::Minutes(5);
  ExpectRefused("well");
  Break();
  clock_.now += absl::Minutes(5);
  ExpectDone("it has come back");
  EXPECT_EQ(Tries().tries, 2);
  Mend();
  EXPECT_EQ(resetter_->Look(), absl::Minutes(10)) << "then it is forgotten";
  clock_.now += absl::Minutes(10);
  EXPECT_EQ(resetter_->Look(), absl::InfiniteDuration());
  Break();
  ExpectDone("another one");
  EXPECT_EQ(Tries().tries, 1);
}

TEST_F(ChipResetterTest, ARefusalOfTheAgentIsNoTry) {
  on_reset_ = [](const agent::ResetRequest&) {
    return absl::FailedPreconditionError("chip 5 is busy: process 77 uses it");
  };
  ExpectDone("asked");
  EXPECT_EQ(Tries().tries, 0);
  clock_.now += absl::Minutes(9);
  ExpectRefused("not again at once");
  on_reset_ = nullptr;
  clock_.now += absl::Minutes(1);
  ExpectDone("again");
  EXPECT_EQ(Tries().tries, 1);
  EXPECT_THAT(Events(1), SizeIs(1)) << "refusals are silent";
}

TEST_F(ChipResetterTest, OneResetMayDoForAllChipsOfTheGroup) {
  verdicts_[5] = verdicts_[kSick];
  verdicts_[5].physical_id = 5;
  verdicts_[5].uuid = "uuid-5";
  ExpectDone("the first");
  ExpectRefused("the other has not been looked at since");
  clock_.now += absl::Seconds(15);
  ExpectDone("its fault is still there");
  EXPECT_EQ(requests_.back().physical_id, 5);
}

TEST_F(ChipResetterTest, NothingBeginsThatCannotBeWrittenDown) {
  ASSERT_THAT(MakeDirectories(paths_.resets_file()), IsOk());  // in the file's place
  ExpectRefused("no record of it");
}

TEST_F(ChipResetterTest, AResetThatNobodyWaitedForIsTakenOver) {
  // The process ends in the middle of it.
  on_reset_ = [&](const agent::ResetRequest&) {
    resetter_->Stop();
    return absl::UnavailableError("resets are cancelled");
  };
  resetter_->Look();
  EXPECT_THAT(resetter_->resetting(), SizeIs(8)) << "until the process has ended";
  EXPECT_TRUE(Tries().under_way());
  ASSERT_THAT(requests_, SizeIs(1));
  on_reset_ = nullptr;
  resetter_ = Make();
  resetter_->TakeOver();
  EXPECT_THAT(resetter_->resetting(), SizeIs(8));
  const auto locked = [&](int chip) {
    return !FileLock::Acquire(paths_.chip_lock(chip), absl::ZeroDuration()).ok();
  };
  EXPECT_TRUE(locked(0));
  EXPECT_TRUE(locked(7));
  EXPECT_EQ(resetter_->Look(), absl::Seconds(1));
  // The agent shows the chips as stuck while it resets them.
  for (vnpu::Chip& chip : inventory_.chips) chip.stuck = "dcmi_get_device_boot_status";
  clock_.now += absl::Seconds(20);
  resetter_->Look();
  EXPECT_TRUE(locked(7));
  for (vnpu::Chip& chip : inventory_.chips) chip.stuck.clear();
  Mend();
  resetter_->Look();
  EXPECT_FALSE(locked(0));
  EXPECT_FALSE(locked(7));
  EXPECT_THAT(resetter_->resetting(), IsEmpty());
  EXPECT_FALSE(Tries().under_way());
  EXPECT_EQ(Tries().tries, 1) << "it counts";
  EXPECT_THAT(requests_, SizeIs(1));
}

TEST_F(ChipResetterTest, AnEndThatNobodySeesComesByTime) {
  on_reset_ = [](const agent::ResetRequest&) { return absl::UnavailableError("the agent died"); };
  ExpectDone("begun");
  EXPECT_THAT(resetter_->resetting(), SizeIs(8));
  EXPECT_THAT(Events(1)[0], HasSubstr("failed: the agent died"));
  connected_ = false;
  clock_.now += absl::Minutes(3);
  resetter_->Look();
  EXPECT_THAT(resetter_->resetting(), SizeIs(8));
  clock_.now += absl::Minutes(1);
  resetter_->Look();
  EXPECT_THAT(resetter_->resetting(), IsEmpty());
  EXPECT_EQ(Tries().outcome, "the agent died");
}

TEST_F(ChipResetterTest, TwoInstancesDoNotResetAtTheSameTime) {
  on_reset_ = [&](const agent::ResetRequest& request) {
    const auto other = Make();
    EXPECT_GT(other->Look(), absl::ZeroDuration());
    EXPECT_THAT(other->resetting(), IsEmpty());
    EXPECT_THAT(requests_, SizeIs(1));
    return Started(request);
  };
  ExpectDone("the first");
}

TEST_F(ChipResetterTest, AControllerResetsByItselfAndStopsInTheMiddle) {
  Mutex mutex;
  CondVar changed;
  bool begun = false, cancelled = false;
  on_reset_ = [&](const agent::ResetRequest&) {
    MutexLock lock(&mutex);
    begun = true;
    changed.SignalAll();
    while (!cancelled) changed.Wait(&mutex);
    return absl::UnavailableError("cancelled");
  };
  ResetController controller(*resetter_, [&] {
    MutexLock lock(&mutex);
    cancelled = true;
    changed.SignalAll();
  });
  {
    MutexLock lock(&mutex);
    while (!begun) changed.Wait(&mutex);
  }
  EXPECT_THAT(resetter_->resetting(), SizeIs(8));
  controller.Stop();
  EXPECT_TRUE(Tries().under_way()) << "for whoever comes next";
}

TEST(ResetsFileTest, WhatIsDamagedIsToldAndSetAside) {
  TempDir temp;
  const std::string path = temp.File("resets.json");
  EXPECT_THAT(ReadResetsFile(path), StatusIs(absl::StatusCode::kNotFound));
  const ResetMemory memory = {{3,
                               {.uuid = "u",
                                .codes = {1, 0x110001024},
                                .tries = 2,
                                .last = absl::FromUnixSeconds(1'790'000'000),
                                .group = {2, 3},
                                .until = absl::FromUnixSeconds(1'790'000'210),
                                .outcome = "\"quoted\"",
                                .failed = true,
                                .gave_up = true}}};
  ASSERT_THAT(WriteResetsFile(path, memory), IsOk());
  EXPECT_THAT(ReadResetsFile(path), IsOkAndHolds(memory));
  const std::string good = *ReadFile(path);
  for (const auto& [from, to] :
       std::map<std::string, std::string>{{"\"version\": 1", "\"version\": 2"},
                                          {"\"tries\": 2", "\"tries\": \"2\""},
                                          {"\"000", "\"x000"},
                                          {"2026", "year"},
                                          {"\"chips\"", "\"chip\""},
                                          {"{", "["}}) {
    ASSERT_TRUE(absl::StrContains(good, from)) << from;
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    ASSERT_THAT(WriteFileAtomically(path, bad), IsOk());
    EXPECT_THAT(ReadResetsFile(path), StatusIs(absl::StatusCode::kDataLoss)) << from;
  }
}

}  // namespace
}  // namespace ascend::kubeletplugin
