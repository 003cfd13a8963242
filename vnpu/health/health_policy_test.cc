#include "vnpu/health/health_policy.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "vnpu/chip.h"
#include "vnpu/health/fault_table.h"
#include "vnpu/health/level.h"

namespace ascend::vnpu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr uint64_t kSeparate = 0x80E18402;
constexpr uint64_t kRequest = 0x80D58000;    // no frequency rule
constexpr uint64_t kIgnored = 0x80C98006;    // NotHandleFault
constexpr uint64_t kDegraded = 0x80DE0207;   // SubHealthFault
constexpr uint64_t kTwiceADay = 0x80E01801;  // RestartBusiness
constexpr uint64_t kLink = 0x81078603;
constexpr uint64_t kNew = 0xDEADBEEF;

const absl::Time kStart = absl::FromUnixSeconds(1800000000);

Fault Active(uint64_t code, uint64_t occurrences = 1) {
  return {.code = code, .active = true, .occurrences = occurrences};
}
Fault Gone(uint64_t code, uint64_t occurrences = 1) {
  return {.code = code, .active = false, .occurrences = occurrences};
}

class HealthPolicyTest : public ::testing::Test {
 protected:
  HealthPolicyTest() {
    inventory_.library = LibraryState::kReady;
    inventory_.agent_instance = "agent-1";
    AddChip(0);
    AddChip(1);
  }

  void AddChip(int id) {
    Chip chip;
    chip.physical_id = chip.logic_id = chip.card_id = id;
    chip.device_id = 0;
    chip.uuid = absl::StrCat("uuid-", id);
    chip.health = Health::kOk;
    chip.network = NetworkHealth::kOk;
    chip.faults.emplace();
    inventory_.chips.push_back(std::move(chip));
  }
  Chip& chip(int id = 0) {
    for (Chip& chip : inventory_.chips) {
      if (chip.physical_id == id) return chip;
    }
    ADD_FAILURE() << "no chip " << id;
    return inventory_.chips.front();
  }
  void Have(std::vector<Fault> faults) { chip().faults = std::move(faults); }

  bool Look() { return policy_.Update(&inventory_, agent_known_, now_); }
  // Every second, as a plugin does that is told of every look.
  void LookFor(absl::Duration time) {
    for (const absl::Time end = now_ + time; now_ < end;) {
      now_ += absl::Seconds(1);
      Look();
    }
  }
  const Verdict& Of(int id = 0) {
    static const Verdict none;
    const auto found = policy_.verdicts().find(id);
    if (found != policy_.verdicts().end()) return found->second;
    ADD_FAILURE() << "no verdict on chip " << id;
    return none;
  }
  std::string Level(int id = 0) { return std::string(HealthLevelName(Of(id).level)); }
  void RestartPlugin(const std::string& boot_id = "boot-1") {
    const std::string saved = policy_.Save();
    policy_ = HealthPolicy(table_, boot_id);
    EXPECT_THAT(policy_.Restore(saved), IsOk());
  }
  void RestartAgent() { inventory_.agent_instance += "+"; }
  // How long it takes until chip 0 is healthy again; looks every second.
  absl::Duration TimeToRecover() {
    const absl::Time from = now_;
    while (Level() != "" && now_ < from + absl::Hours(1)) LookFor(absl::Seconds(1));
    return now_ - from;
  }
  void UseTable(absl::string_view yaml) {
    absl::StatusOr<FaultTable> table = FaultTable::WithOverrides(yaml);
    ASSERT_THAT(table, IsOk());
    table_ = *table;
    policy_ = HealthPolicy(table_, "boot-1");
  }

  FaultTable table_ = FaultTable::BuiltIn();
  HealthPolicy policy_ = HealthPolicy(table_, "boot-1");
  Inventory inventory_;
  bool agent_known_ = true;
  absl::Time now_ = kStart;
};

TEST_F(HealthPolicyTest, AHealthyChipIsHealthyAtFirstSight) {
  EXPECT_TRUE(Look());
  const Verdict healthy = {.physical_id = 0, .uuid = "uuid-0", .since = kStart};
  EXPECT_EQ(Of(), healthy);
  EXPECT_EQ(policy_.next_change(), absl::InfiniteFuture());
  LookFor(absl::Seconds(3));
  EXPECT_FALSE(Look());
  EXPECT_EQ(Of(), healthy);
}

TEST_F(HealthPolicyTest, EveryCodeAloneHasTheActionOfItsLevel) {
  for (const auto& [code, level] : FaultTable::BuiltIn().codes()) {
    now_ = kStart;
    policy_ = HealthPolicy(table_, "boot-1");
    Have({});
    Look();
    Have({Active(code)});
    Look();
    const HealthAction& action = table_.ActionOf(level);
    EXPECT_EQ(Of().level, level) << FaultCodeText(code);
    EXPECT_EQ(Of().effect, action.effect) << FaultCodeText(code);
    EXPECT_EQ(Of().state, action.state) << FaultCodeText(code);
    EXPECT_THAT(Of().message, HasSubstr(FaultCodeText(code)));
    EXPECT_EQ(Level(1), "") << FaultCodeText(code);
    Have({});
    LookFor(absl::Seconds(15));
    EXPECT_EQ(Of().level, level) << FaultCodeText(code);
    LookFor(absl::Seconds(1));
    EXPECT_EQ(Level(), "") << FaultCodeText(code);
  }
}

TEST_F(HealthPolicyTest, SaysWhatIsWrongAndSinceWhen) {
  Look();
  now_ += absl::Seconds(7);
  Have({Active(kSeparate), Active(kDegraded)});
  chip().faults->at(0).text = "link to peer lost";
  EXPECT_TRUE(Look());
  EXPECT_EQ(Of().message,
            "SeparateNPU: fault 80E18402 (link to peer lost), since 2027-01-15T08:00:07Z; "
            "SubHealthFault: fault 80DE0207, since 2027-01-15T08:00:07Z");
  EXPECT_EQ(Of().since, now_);
  ASSERT_THAT(Of().causes, SizeIs(2));
  EXPECT_EQ(Of().causes[0].code, kSeparate);
  EXPECT_TRUE(Of().causes[0].present);
  const std::string message = Of().message;
  Have({});
  EXPECT_TRUE(Look());  // it is gone, and still counts
  EXPECT_EQ(Of().message, message);
  EXPECT_FALSE(Of().causes[0].present);
}

TEST_F(HealthPolicyTest, AMessageIsBounded) {
  for (uint64_t i = 0; i < 128; ++i) {
    chip().faults->push_back(Active(0x80E18402 + i));
    chip().faults->back().text = std::string(255, 'x');
  }
  Look();
  EXPECT_LE(Of().message.size(), kMaxHealthMessage);
  chip().faults->resize(9);
  for (Fault& fault : *chip().faults) fault.text.clear();
  policy_ = HealthPolicy(table_, "boot-1");
  Look();
  EXPECT_THAT(Of().message, HasSubstr("; and 5 more"));
}

TEST_F(HealthPolicyTest, TheWorstCounts) {
  Look();
  Have({Active(kRequest), Active(kSeparate), Active(kIgnored)});
  Look();
  EXPECT_EQ(Level(), "SeparateNPU");
  Have({Active(kRequest), Gone(kSeparate), Active(kIgnored), Active(kDegraded)});
  LookFor(absl::Seconds(15));
  EXPECT_EQ(Level(), "SeparateNPU");
  LookFor(absl::Seconds(1));
  EXPECT_EQ(Level(), "RestartRequest");
  EXPECT_EQ(Of().since, now_);
}

TEST_F(HealthPolicyTest, TheHardestEffectWinsOverTheWorseLevel) {
  UseTable("actions: {RestartRequest: {effect: NoExecute}, SeparateNPU: {effect: none}}");
  Have({Active(kSeparate), Active(kRequest)});
  Look();
  EXPECT_EQ(Level(), "RestartRequest");
  EXPECT_EQ(Of().effect, TaintEffect::kNoExecute);
}

TEST_F(HealthPolicyTest, TheWorstStateIsTold) {
  UseTable("actions: {RestartRequest: {state: Healthy}}");
  Have({Active(kRequest)});
  chip().stuck = "dcmi_x has not returned for 12 s";
  Look();
  EXPECT_EQ(Level(), "RestartRequest");
  EXPECT_EQ(Of().state, HealthState::kUnknown);
}

TEST_F(HealthPolicyTest, GoodNewsWaitsForTheRecoverDelayOfTheLevelThatIsLeft) {
  UseTable("actions: {SeparateNPU: {recover: 40s}, RestartRequest: {recover: 5s}}");
  Look();
  Have({Active(kSeparate)});
  Look();
  Have({});
  Look();
  EXPECT_EQ(policy_.next_change(), now_ + absl::Seconds(40));
  EXPECT_EQ(TimeToRecover(), absl::Seconds(40));
  now_ += absl::Hours(1);
  Have({Active(kRequest)});
  Look();
  Have({});
  Look();
  EXPECT_EQ(TimeToRecover(), absl::Seconds(5));
}

TEST_F(HealthPolicyTest, AFaultThatComesBackBeginsTheDelayAgain) {
  Look();
  Have({Active(kSeparate)});
  Look();
  const absl::Time since = Of().since;
  for (int i = 0; i < 20; ++i) {
    Have({Gone(kSeparate, 1 + i)});
    LookFor(absl::Seconds(10));
    Have({Active(kSeparate, 2 + i)});
    LookFor(absl::Seconds(1));
    EXPECT_EQ(Level(), "SeparateNPU");
  }
  EXPECT_EQ(Of().since, since);
  EXPECT_EQ(Of().causes[0].since, since);
  Have({});
  Look();
  EXPECT_EQ(TimeToRecover(), absl::Seconds(15));
}

TEST_F(HealthPolicyTest, WhatCameAndWentBetweenTwoLooksCounts) {
  Look();
  Have({Gone(kSeparate, 1)});
  Look();
  EXPECT_EQ(Level(), "SeparateNPU");
  EXPECT_EQ(TimeToRecover(), absl::Seconds(15));
  Have({Gone(kSeparate, 2)});
  Look();
  EXPECT_EQ(Level(), "SeparateNPU");
}

TEST_F(HealthPolicyTest, WhatWentBeforeTheFirstSightDoesNotCount) {
  Have({Gone(kSeparate, 5)});
  Look();
  EXPECT_EQ(Level(), "");
  Have({Gone(kSeparate, 6)});
  Look();
  EXPECT_EQ(Level(), "SeparateNPU");
}

TEST_F(HealthPolicyTest, AnAgentThatStartsAnewCountsAnew) {
  Look();
  Have({Active(kSeparate, 7)});
  Look();
  RestartAgent();
  Have({Gone(kSeparate, 1)});  // the one that was there, gone since
  Look();
  EXPECT_EQ(TimeToRecover(), absl::Seconds(15));
  RestartAgent();
  Have({Gone(kSeparate, 1)});  // came and went since the agent started
  Look();
  EXPECT_EQ(Level(), "SeparateNPU");
}

TEST_F(HealthPolicyTest, SameCountsAfterAPluginRestartAreNothingNew) {
  Look();
  Have({Gone(kSeparate, 1)});
  Look();
  EXPECT_EQ(TimeToRecover(), absl::Seconds(15));
  RestartPlugin();
  Look();
  EXPECT_EQ(Level(), "");
  RestartPlugin();
  Have({Gone(kSeparate, 2)});
  Look();
  EXPECT_EQ(Level(), "SeparateNPU");
}

TEST_F(HealthPolicyTest, UnknownCodesGoBySeverityAndGrade) {
  Look();
  Have({Active(kNew)});
  Look();
  EXPECT_EQ(Level(), "NotHandleFault");
  chip().health = Health::kMajor;
  Look();
  EXPECT_EQ(Level(), "SeparateNPU");
  chip().faults->at(0).severity = FaultSeverity::kMinor;
  LookFor(absl::Seconds(16));
  EXPECT_EQ(Level(), "major");  // a minor fault does not explain it
}

TEST_F(HealthPolicyTest, AGradeThatNoCodeExplainsCounts) {
  Look();
  chip().health = Health::kMajor;
  Look();
  EXPECT_EQ(Level(), "major");
  chip().health = Health::kCritical;
  Look();
  EXPECT_EQ(Level(), "critical");
  Have({Gone(kIgnored, 0)});
  Look();
  EXPECT_EQ(Level(), "critical");
  Have({Active(kIgnored)});
  LookFor(absl::Seconds(16));
  EXPECT_EQ(Level(), "NotHandleFault");
  chip().health = Health::kMinor;
  Have({});
  LookFor(absl::Seconds(16));
  EXPECT_EQ(Level(), "");
  chip().health = Health::kMajor;
  chip().faults.reset();  // a library without a list
  Look();
  EXPECT_EQ(Level(), "major");
}

TEST_F(HealthPolicyTest, AFaultExplainsAGradeThatIsNotWorseThanItself) {
  chip().health = Health::kMajor;
  Have({Active(kIgnored)});
  chip().faults->at(0).severity = FaultSeverity::kMajor;
  Look();
  EXPECT_EQ(Level(), "NotHandleFault");
  chip().health = Health::kCritical;
  Look();
  EXPECT_EQ(Level(), "critical");
}

TEST_F(HealthPolicyTest, AnAbsentChipIsBadAndComesBack) {
  Look();
  chip().health = Health::kAbsent;
  Look();
  EXPECT_EQ(Level(), "absent");
  EXPECT_EQ(Of().state, HealthState::kUnhealthy);
  chip().health = Health::kOk;
  Look();
  EXPECT_EQ(TimeToRecover(), absl::Seconds(15));
}

TEST_F(HealthPolicyTest, AStuckChipKeepsWhatWasKnownAndTheOthersGoOn) {
  Look();
  Have({Active(kRequest)});
  Look();
  chip().stuck = "dcmi_get_device_health has not returned for 12 s";
  Have({});  // whatever it says: nobody asked
  chip(1).faults = {Active(kSeparate)};
  LookFor(absl::Minutes(5));
  EXPECT_EQ(Level(), "RestartRequest");
  EXPECT_THAT(Of().message, HasSubstr("stuck: dcmi_get_device_health has not returned"));
  EXPECT_EQ(Level(1), "SeparateNPU");
  chip().stuck.clear();
  Look();
  EXPECT_EQ(TimeToRecover(), absl::Seconds(15));
  chip().stuck = "again";
  Look();
  EXPECT_EQ(Level(), "stuck");
  EXPECT_EQ(Of().state, HealthState::kUnknown);
}

TEST_F(HealthPolicyTest, NotKnowingTheHealthOrTheCodesIsUnknown) {
  Look();
  chip().health = Health::kUnknown;
  chip(1).faults.reset();
  chip(1).faults_error = "dcmi_get_device_errorcode_v2: timeout";
  Look();
  for (const int id : {0, 1}) {
    EXPECT_EQ(Level(id), "unknown");
    EXPECT_EQ(Of(id).effect, TaintEffect::kNoSchedule);
    EXPECT_EQ(Of(id).state, HealthState::kUnknown);
  }
  EXPECT_THAT(Of(1).message, HasSubstr("fault codes: dcmi_get_device_errorcode_v2: timeout"));
  chip().health = Health::kOk;
  chip(1).faults_error.clear();
  Look();
  EXPECT_EQ(TimeToRecover(), absl::Seconds(15));
  EXPECT_EQ(Level(1), "");
}

TEST_F(HealthPolicyTest, ABadChipDoesNotGetBetterByNotBeingKnown) {
  Look();
  Have({Active(kSeparate)});
  LookFor(absl::Seconds(3));
  Have({});
  LookFor(absl::Seconds(5));  // gone, but not for long enough
  chip().faults.reset();
  chip().faults_error = "timeout";
  LookFor(absl::Hours(1));
  EXPECT_EQ(Level(), "SeparateNPU");
  EXPECT_THAT(Of().message, HasSubstr("unknown: health is not known: fault codes: timeout"));
  chip().faults.emplace();
  chip().faults_error.clear();
  Look();
  EXPECT_EQ(TimeToRecover(), absl::Seconds(15));
}

TEST_F(HealthPolicyTest, AGradeAndALossStayWhileNobodyKnows) {
  Look();
  chip().health = Health::kCritical;
  const Chip lost = chip(1);
  inventory_.chips.pop_back();
  Look();
  inventory_.library = LibraryState::kNotResponding;
  chip().health = Health::kUnknown;
  inventory_.chips.push_back(lost);
  LookFor(absl::Minutes(3));
  EXPECT_EQ(Level(0), "critical");
  EXPECT_EQ(Level(1), "lost");
  inventory_.library = LibraryState::kReady;
  LookFor(absl::Minutes(3));
  EXPECT_EQ(Level(0), "critical");
  EXPECT_EQ(Level(1), "");
}

class NotReady : public HealthPolicyTest, public ::testing::WithParamInterface<LibraryState> {};

TEST_P(NotReady, IsUnknownAndBadStaysBad) {
  Look();
  Have({Active(kSeparate)});
  Look();
  const std::vector<Chip> chips = inventory_.chips;
  inventory_.library = GetParam();
  inventory_.library_message = "the driver says no";
  Have({});
  LookFor(absl::Minutes(3));
  EXPECT_EQ(Level(0), "SeparateNPU");
  EXPECT_EQ(Level(1), "unknown");
  EXPECT_THAT(Of(1).message,
              HasSubstr(absl::StrCat(LibraryStateName(GetParam()), " (the driver says no)")));
  inventory_.chips.clear();
  LookFor(absl::Minutes(3));
  EXPECT_EQ(Level(0), "SeparateNPU");
  EXPECT_EQ(Level(1), "unknown");
  inventory_.library = LibraryState::kReady;
  inventory_.chips = chips;
  Have({});
  Look();
  EXPECT_EQ(TimeToRecover(), absl::Seconds(15));
  EXPECT_EQ(Level(1), "");
}
INSTANTIATE_TEST_SUITE_P(All, NotReady,
                         ::testing::Values(LibraryState::kMissing, LibraryState::kStarting,
                                           LibraryState::kNotResponding, LibraryState::kFailed),
                         [](const auto& param) { return absl::StrCat(param.index); });

TEST_F(HealthPolicyTest, AnAgentThatIsAwayForTooLongMakesChipsUnknown) {
  Look();
  Have({Active(kSeparate)});
  Look();
  agent_known_ = false;
  Look();
  EXPECT_EQ(Level(0), "SeparateNPU");
  EXPECT_EQ(Level(1), "unknown");
  EXPECT_THAT(Of(1).message, HasSubstr("agent on the node does not answer"));
  agent_known_ = true;
  Look();
  EXPECT_EQ(Level(1), "unknown");
  LookFor(absl::Seconds(15));
  EXPECT_EQ(Level(1), "");
}

TEST_F(HealthPolicyTest, ALostChipIsBadAndTheSameWhenItReturnsElsewhere) {
  Look();
  Have({Active(kRequest)});
  Look();
  const Chip lost = chip();
  inventory_.chips.erase(inventory_.chips.begin());
  Look();
  EXPECT_EQ(Level(), "lost");
  EXPECT_EQ(Of().uuid, "uuid-0");
  EXPECT_EQ(Of().effect, TaintEffect::kNoSchedule);
  EXPECT_EQ(Level(1), "");
  LookFor(absl::Hours(1));
  EXPECT_EQ(Level(), "lost");
  inventory_.chips.insert(inventory_.chips.begin(), lost);
  chip().logic_id = 7;
  chip().pci_bus_id = "0000:ff:00.0";
  Look();
  EXPECT_EQ(Level(), "lost");
  LookFor(absl::Seconds(15));
  EXPECT_EQ(Level(), "RestartRequest");
  EXPECT_EQ(Of().causes[0].since, kStart);
}

TEST_F(HealthPolicyTest, AChipThatIsSkippedSaysWhy) {
  Look();
  inventory_.chips.erase(inventory_.chips.begin());
  inventory_.skipped.push_back({.card_id = 0, .device_id = 0, .reason = "no physical id"});
  inventory_.skipped.push_back({.card_id = 5, .device_id = 0, .reason = "another"});
  Look();
  EXPECT_EQ(Level(), "lost");
  EXPECT_THAT(Of().message, HasSubstr("cannot be used any more: no physical id"));
}

TEST_F(HealthPolicyTest, ChipsFollowTheirUuid) {
  Look();
  ASSERT_THAT(policy_.Isolate("uuid-0", "for tests", now_), IsOk());
  chip(0).uuid = "uuid-1";
  chip(1).uuid = "uuid-0";
  Look();
  EXPECT_EQ(Level(0), "");
  EXPECT_EQ(Level(1), "ManuallySeparateNPU");
  EXPECT_THAT(policy_.verdicts(), SizeIs(2));
}

TEST_F(HealthPolicyTest, AnotherChipInItsPlaceHasItsOwnHistory) {
  Look();
  Have({Active(kSeparate)});
  Look();
  chip().uuid = "uuid-new";
  Have({});
  Look();
  EXPECT_EQ(Level(), "");
  EXPECT_EQ(Of().uuid, "uuid-new");
  chip().uuid = "uuid-0";
  Look();
  EXPECT_EQ(Level(), "lost");  // it was away
  LookFor(absl::Seconds(15));
  EXPECT_EQ(Level(), "");
}

TEST_F(HealthPolicyTest, AChipWithoutAUuidIsWhoIsInItsPlace) {
  Look();
  Have({Active(kSeparate)});
  Look();
  chip().uuid.clear();
  Have({});
  Look();
  EXPECT_EQ(Level(), "SeparateNPU");
  EXPECT_EQ(Of().uuid, "uuid-0");
  policy_ = HealthPolicy(table_, "boot-1");
  Look();
  EXPECT_EQ(Of().uuid, "");
  EXPECT_THAT(policy_.Isolate("0", "for tests", now_), IsOk());
  EXPECT_EQ(Level(), "ManuallySeparateNPU");
  chip().uuid = "uuid-0";
  Look();
  EXPECT_EQ(Of().uuid, "uuid-0");
  EXPECT_EQ(Level(), "ManuallySeparateNPU");
}

TEST_F(HealthPolicyTest, TwoChipsWithOneUuidAreTwoChips) {
  chip(1).uuid = "uuid-0";
  chip(1).faults = {Active(kSeparate)};
  Look();
  LookFor(absl::Seconds(5));
  EXPECT_EQ(Level(0), "");
  EXPECT_EQ(Level(1), "SeparateNPU");
}

TEST_F(HealthPolicyTest, TheNetworkHasItsOwnDeadlines) {
  Look();
  chip().network = NetworkHealth::kDown;
  Look();
  EXPECT_EQ(policy_.next_change(), now_ + absl::Seconds(20));
  LookFor(absl::Seconds(19));
  EXPECT_EQ(Level(), "");
  LookFor(absl::Seconds(1));
  EXPECT_EQ(Level(), "PreSeparateNPU");
  EXPECT_THAT(Of().message, HasSubstr("the network port is down for 20s or more"));
  chip().network = NetworkHealth::kUnknown;
  LookFor(absl::Hours(1));
  EXPECT_EQ(Level(), "PreSeparateNPU");
  chip().network = NetworkHealth::kOk;
  Look();
  EXPECT_EQ(TimeToRecover(), absl::Seconds(60));
  for (int i = 0; i < 5; ++i) {
    chip().network = NetworkHealth::kDown;
    LookFor(absl::Seconds(20));
    EXPECT_EQ(Level(), "");
    chip().network = NetworkHealth::kOk;
    LookFor(absl::Seconds(2));
  }
}

TEST_F(HealthPolicyTest, AReleaseForgetsANetworkThatNobodyKnows) {
  Look();
  chip().network = NetworkHealth::kDown;
  LookFor(absl::Seconds(30));
  ASSERT_THAT(policy_.Release("uuid-0", now_), IsOk());
  LookFor(absl::Minutes(5));
  EXPECT_EQ(Level(), "PreSeparateNPU");  // it is down
  chip().network = NetworkHealth::kUnknown;
  LookFor(absl::Seconds(2));
  ASSERT_THAT(policy_.Release("uuid-0", now_), IsOk());
  EXPECT_EQ(TimeToRecover(), absl::Seconds(60));
}

TEST_F(HealthPolicyTest, ALinkCodeIsIgnoredUntilItLasts) {
  Look();
  Have({Active(kLink)});
  Look();
  EXPECT_EQ(Level(), "NotHandleFault");
  EXPECT_EQ(policy_.next_change(), now_ + absl::Seconds(20));
  LookFor(absl::Seconds(19));
  EXPECT_EQ(Level(), "NotHandleFault");
  LookFor(absl::Seconds(1));
  EXPECT_EQ(Level(), "PreSeparateNPU");
  EXPECT_EQ(Of().since, now_);
  Have({Gone(kLink)});
  LookFor(absl::Seconds(30));
  Have({Active(kLink, 2)});  // within the time: still counts, at once
  Look();
  EXPECT_EQ(Level(), "PreSeparateNPU");
  Have({Gone(kLink, 2)});
  Look();
  EXPECT_EQ(TimeToRecover(), absl::Seconds(60));
  Have({Active(kLink, 3)});
  LookFor(absl::Seconds(19));
  EXPECT_EQ(Level(), "NotHandleFault");
}

TEST_F(HealthPolicyTest, AFaultThatComesTooOftenIsolatesUntilItsTime) {
  Look();
  Have({Active(kTwiceADay, 1)});
  LookFor(absl::Seconds(2));
  Have({Gone(kTwiceADay, 1)});
  LookFor(absl::Hours(1));
  EXPECT_EQ(Level(), "");
  Have({Active(kTwiceADay, 2)});
  Look();
  const absl::Time second = now_;
  EXPECT_EQ(Level(), "ManuallySeparateNPU");
  EXPECT_THAT(Of().message,
              HasSubstr("fault 80E01801 came too often: isolated until 2027-01-16T09:00:02Z"));
  Have({});
  now_ = second + absl::Hours(24) - absl::Seconds(1);
  Look();
  EXPECT_EQ(Level(), "ManuallySeparateNPU");
  EXPECT_EQ(policy_.next_change(), second + absl::Hours(24));
  now_ = policy_.next_change();
  Look();
  EXPECT_EQ(TimeToRecover(), absl::Seconds(15));
}

TEST_F(HealthPolicyTest, OccurrencesAreCountedWithinTheWindowAlone) {
  Look();
  Have({Gone(kTwiceADay, 1)});
  Look();
  now_ += absl::Hours(24);
  Have({Gone(kTwiceADay, 2)});
  Look();
  EXPECT_EQ(Level(), "RestartBusiness");
  now_ += absl::Hours(24) - absl::Seconds(1);
  Have({Gone(kTwiceADay, 3)});
  Look();
  EXPECT_EQ(Level(), "ManuallySeparateNPU");
}

TEST_F(HealthPolicyTest, OneRiseOfTheCountMayBeManyOccurrences) {
  Look();
  Have({Gone(kLink, 4)});
  Look();
  EXPECT_EQ(Level(), "NotHandleFault");
  Have({Gone(kLink, 5)});
  Look();
  EXPECT_EQ(Level(), "ManuallySeparateNPU");
  EXPECT_EQ(policy_.next_change(), now_ + absl::Seconds(15));  // of the fault itself
  LookFor(absl::Seconds(20));
  EXPECT_EQ(policy_.next_change(), kStart + absl::Hours(48));
}

TEST_F(HealthPolicyTest, EachFurtherOccurrenceProlongsIsolation) {
  Look();
  Have({Gone(kTwiceADay, 2)});
  Look();
  const absl::Time since = Of().since;
  now_ += absl::Hours(20);
  Have({Gone(kTwiceADay, 3)});
  Look();
  now_ += absl::Hours(23);
  LookFor(absl::Minutes(1));  // longer than the recover delay
  EXPECT_EQ(Level(), "ManuallySeparateNPU");
  EXPECT_EQ(Of().since, since);
}

TEST_F(HealthPolicyTest, FrequencyOutlivesRestartsAndBoots) {
  Look();
  Have({Active(kTwiceADay, 1)});
  Look();
  RestartPlugin();
  RestartAgent();
  Look();
  EXPECT_EQ(Level(), "RestartBusiness");  // the same one
  RestartPlugin("boot-2");
  RestartAgent();
  Look();
  EXPECT_EQ(Level(), "ManuallySeparateNPU");  // it came again after the boot
  RestartPlugin("boot-3");
  RestartAgent();
  Have({});
  Look();
  EXPECT_EQ(Level(), "ManuallySeparateNPU");
  ASSERT_THAT(policy_.Release("uuid-0", now_), IsOk());
  EXPECT_EQ(TimeToRecover(), absl::Seconds(15));
  Have({Gone(kTwiceADay, 1)});
  Look();
  EXPECT_EQ(Level(), "RestartBusiness");  // counts from one again
}

TEST_F(HealthPolicyTest, IsolationByHandStaysUntilItIsReleased) {
  Look();
  ASSERT_THAT(policy_.Isolate("uuid-0", "  fan is loud\n", now_), IsOk());
  EXPECT_EQ(Level(), "ManuallySeparateNPU");
  EXPECT_EQ(Of().effect, TaintEffect::kNoSchedule);
  EXPECT_THAT(Of().message, HasSubstr("isolated by hand: fan is loud, since"));
  EXPECT_EQ(Level(1), "");
  LookFor(absl::Minutes(1));
  RestartPlugin("boot-2");
  Look();
  EXPECT_EQ(Level(), "ManuallySeparateNPU");
  EXPECT_THAT(Of().message, HasSubstr("since 2027-01-15T08:00:00Z"));
  ASSERT_THAT(policy_.Isolate("uuid-0", "fan is gone", now_), IsOk());
  EXPECT_THAT(Of().message, HasSubstr("isolated by hand: fan is gone, since"));
  ASSERT_THAT(policy_.Release("uuid-0", now_), IsOk());
  EXPECT_EQ(Level(), "ManuallySeparateNPU");
  EXPECT_EQ(policy_.next_change(), now_ + absl::Seconds(15));
  EXPECT_EQ(TimeToRecover(), absl::Seconds(15));
  EXPECT_THAT(policy_.Release("uuid-0", now_), IsOk());
  EXPECT_EQ(Level(), "");
}

TEST_F(HealthPolicyTest, IsolationNeedsAChipAndAReason) {
  Look();
  EXPECT_THAT(policy_.Isolate("uuid-7", "x", now_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("uuid-7")));
  EXPECT_THAT(policy_.Release("uuid-7", now_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("uuid-7")));
  EXPECT_THAT(policy_.Isolate("0", "x", now_), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(policy_.Isolate("uuid-0", " \n", now_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("uuid-0")));
  EXPECT_EQ(Level(), "");
}

TEST_F(HealthPolicyTest, AReleaseDoesNotHideFaults) {
  Look();
  Have({Active(kSeparate)});
  Look();
  ASSERT_THAT(policy_.Isolate("uuid-0", "x", now_), IsOk());
  ASSERT_THAT(policy_.Release("uuid-0", now_), IsOk());
  LookFor(absl::Seconds(15));
  EXPECT_EQ(Level(), "SeparateNPU");
}

TEST_F(HealthPolicyTest, FlapsGrowTheDelayAndCalmShrinksIt) {
  Look();
  for (const int seconds : {15, 30, 60, 120, 240, 480, 600, 600}) {
    Have({Active(kSeparate)});
    LookFor(absl::Seconds(1));
    Have({});
    Look();
    EXPECT_EQ(TimeToRecover(), absl::Seconds(seconds));
    LookFor(absl::Minutes(9));
  }
  LookFor(absl::Minutes(2));
  Have({Active(kSeparate)});
  LookFor(absl::Seconds(1));
  Have({});
  Look();
  EXPECT_EQ(TimeToRecover(), absl::Seconds(15));
}

TEST_F(HealthPolicyTest, FlapsAreKeptOverRestartsAndForgottenByRelease) {
  Look();
  const auto flap = [this] {
    Have({Active(kSeparate)});
    LookFor(absl::Seconds(1));
    Have({});
    Look();
    return TimeToRecover();
  };
  EXPECT_EQ(flap(), absl::Seconds(15));
  RestartPlugin();
  EXPECT_EQ(flap(), absl::Seconds(30));
  RestartPlugin();
  EXPECT_EQ(flap(), absl::Seconds(60));
  ASSERT_THAT(policy_.Release("uuid-0", now_), IsOk());
  EXPECT_EQ(flap(), absl::Seconds(15));
}

TEST_F(HealthPolicyTest, AThousandFlapsAMinuteAreOneChange) {
  Look();
  int changes = 0;
  std::string level = Level();
  for (uint64_t i = 1; i <= 5000; ++i) {
    now_ += absl::Milliseconds(60);
    Have({i % 2 == 1 ? Active(kSeparate, (i + 1) / 2) : Gone(kSeparate, i / 2)});
    Look();
    changes += Level() != level ? 1 : 0;
    level = Level();
  }
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(Level(), "SeparateNPU");
}

TEST_F(HealthPolicyTest, ARestoredVerdictStaysUntilTheAgentAnswersOrIsGivenUp) {
  Look();
  Have({Active(kSeparate)});
  Look();
  const Verdict bad = Of(0);
  const Verdict good = Of(1);
  RestartPlugin();
  EXPECT_EQ(Of(0), bad);
  EXPECT_EQ(Of(1), good);
  now_ += absl::Minutes(1);
  policy_.Update(nullptr, true, now_);
  EXPECT_EQ(Of(0), bad);
  EXPECT_EQ(Of(1), good);
  policy_.Update(nullptr, false, now_);
  EXPECT_EQ(Level(0), "SeparateNPU");
  EXPECT_EQ(Level(1), "unknown");
  Look();
  EXPECT_EQ(Level(1), "unknown");
  LookFor(absl::Seconds(15));
  EXPECT_EQ(Level(1), "");
  EXPECT_EQ(Of(0).level, HealthLevel::kSeparateNpu);
  EXPECT_EQ(Of(0).since, bad.since);
}

TEST_F(HealthPolicyTest, ARestartDoesNotShortenTheDelay) {
  Look();
  Have({Active(kSeparate)});
  Look();
  Have({});
  LookFor(absl::Seconds(10));
  RestartPlugin();
  now_ += absl::Hours(1);  // nobody looked
  Look();
  EXPECT_EQ(Level(), "SeparateNPU");
  EXPECT_EQ(TimeToRecover(), absl::Seconds(15));
}

TEST_F(HealthPolicyTest, ALostChipStaysLostOverAPluginRestartButNotOverABoot) {
  Look();
  inventory_.chips.erase(inventory_.chips.begin());
  Look();
  RestartPlugin();
  Look();
  EXPECT_EQ(Level(), "lost");
  RestartPlugin("boot-2");
  EXPECT_THAT(policy_.verdicts(), IsEmpty());
  Look();
  EXPECT_THAT(policy_.verdicts(), ElementsAre(Pair(1, ::testing::_)));
}

TEST_F(HealthPolicyTest, ABootEndsWhatWasThereBefore) {
  Look();
  Have({Active(kSeparate)});
  chip().network = NetworkHealth::kDown;
  LookFor(absl::Seconds(30));
  RestartPlugin("boot-2");
  RestartAgent();
  Have({});
  chip().network = NetworkHealth::kUnknown;
  Look();
  EXPECT_EQ(Level(), "");
}

TEST_F(HealthPolicyTest, AClockThatIsSetBackPutsNothingIntoTheFuture) {
  Look();
  Have({Gone(kTwiceADay, 2)});
  chip().network = NetworkHealth::kDown;
  Look();
  ASSERT_THAT(policy_.Isolate("uuid-1", "x", now_), IsOk());
  now_ -= absl::Hours(100);
  Look();
  EXPECT_EQ(Of(0).since, now_);
  EXPECT_EQ(Of(1).since, now_);
  for (const HealthCause& cause : Of(0).causes) EXPECT_LE(cause.since, now_);
  EXPECT_EQ(Level(0), "ManuallySeparateNPU");
  LookFor(absl::Seconds(20));
  EXPECT_THAT(Of().message, HasSubstr("network"));
  now_ += absl::Hours(24) - absl::Seconds(20);
  Look();
  chip().network = NetworkHealth::kOk;
  LookFor(absl::Minutes(2));
  EXPECT_EQ(Level(0), "");
}

TEST_F(HealthPolicyTest, AClockThatWasSetBackBetweenProcessesToo) {
  Look();
  Have({Active(kSeparate)});
  Look();
  RestartPlugin();
  now_ -= absl::Hours(100);
  Look();
  EXPECT_EQ(Of().since, now_);
  Have({});
  Look();
  EXPECT_EQ(TimeToRecover(), absl::Seconds(15));
}

TEST_F(HealthPolicyTest, WhatIsSavedComesBackTheSame) {
  Look();
  Have({Active(kLink, 3), Gone(kTwiceADay, 2), Active(0x110001024)});
  chip().faults->at(0).text = "a \"b\"\n\xc3\xa4 \xff";
  chip().network = NetworkHealth::kDown;
  now_ += absl::Nanoseconds(1234567);
  LookFor(absl::Seconds(30));
  ASSERT_THAT(policy_.Isolate("uuid-1", "x", now_), IsOk());
  inventory_.chips.pop_back();
  Look();
  const std::string saved = policy_.Save();
  LookFor(absl::Seconds(2));
  EXPECT_EQ(policy_.Save(), saved);  // nothing worth writing
  HealthPolicy other(table_, "boot-1");
  ASSERT_THAT(other.Restore(saved), IsOk());
  EXPECT_EQ(other.Save(), saved);
  EXPECT_THAT(other.verdicts(), SizeIs(2));
  EXPECT_EQ(other.verdicts().at(1), policy_.verdicts().at(1));
}

TEST_F(HealthPolicyTest, ADamagedMemoryIsAnErrorAndStartsEmpty) {
  Look();
  Have({Active(kTwiceADay, 2)});
  Look();
  ASSERT_THAT(policy_.Isolate("uuid-1", "x", now_), IsOk());
  const std::string saved = policy_.Save();
  const auto damaged = [&saved](absl::string_view from, absl::string_view to) {
    std::string text = absl::StrReplaceAll(saved, {{from, to}});
    EXPECT_NE(text, saved) << from;
    return text;
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "not valid JSON"},
      {saved.substr(0, saved.size() / 2), "not valid JSON"},
      {"[]", "is not an object"},
      {"{}", "version is missing"},
      {damaged("\"version\": 1", "\"version\": 2"), "version is not a whole number in its range"},
      {damaged("\"bootId\"", "\"boot\""), "bootId is missing"},
      {damaged("\"flaps\": 0", "\"flaps\": -1"), "chips[0].flaps is not a whole number"},
      {damaged("\"flaps\": 0", "\"flaps\": 17"), "chips[0].flaps is not a whole number"},
      {damaged("\"flaps\": 0", "\"flaps\": 0, \"x\": 1"), "chips[0]. has a member"},
      {damaged("\"uuid-1\"", "7"), "chips[1].uuid is not a string"},
      {damaged("\"uuid-1\"", "\"uuid-0\""), "chips[1].uuid uuid-0 is there twice"},
      {damaged("\"seenOnBoot\": true", "\"seenOnBoot\": 1"), "seenOnBoot is not a boolean"},
      {damaged("\"since\": 1800000000000000", "\"since\": -1"), "since is not a whole number"},
      {damaged("\"since\": 1800000000000000", "\"since\": 1e18"), "since is not a whole number"},
      {damaged("\"isolatedUntil\": 18", "\"isolatedUntil\": null, \"y\": 18"), "belong together"},
      {damaged("\"level\": \"Restart", "\"level\": \"restart"), "level is not a health level"},
      {damaged("\"NoSchedule\"", "\"noschedule\""), "effect is not a taint effect"},
      {damaged("\"source\": \"fault\"", "\"source\": \"f\""), "causes[0].source is not a source"},
      {damaged("\"code\": \"80E01801\"", "\"code\": \"-1\""), "code is not a fault code"},
      {damaged("\"seen\": 2", "\"seen\": -2"), "codes[0].seen is not a whole number"},
      {damaged("\"reason\": \"x\"", "\"reason\": null"), "isolated.reason is not a string"},
      {damaged("\"times\": [", "\"times\": [1900000000000000,"), "times are not in order"},
      {damaged("\"times\": [", "\"times\": [\"x\","), "times[0]. is not a time"},
  };
  for (const auto& [text, what] : cases) {
    HealthPolicy policy(table_, "boot-1");
    ASSERT_THAT(policy.Restore(saved), IsOk());
    EXPECT_THAT(policy.Restore(text), StatusIs(absl::StatusCode::kInvalidArgument,
                                               AllOf(HasSubstr("health memory"), HasSubstr(what))));
    EXPECT_THAT(policy.verdicts(), IsEmpty());
    policy.Update(&inventory_, true, now_);
    EXPECT_EQ(policy.verdicts().at(1).level, HealthLevel::kHealthy);
  }
}

TEST_F(HealthPolicyTest, ChipsAreForgottenButNotThoseThatSomebodyIsolated) {
  AddChip(2);
  Look();
  ASSERT_THAT(policy_.Isolate("uuid-2", "in repair", now_), IsOk());
  inventory_.chips.resize(1);
  Look();
  EXPECT_EQ(policy_.next_change(), now_ + absl::Hours(30 * 24));
  now_ = policy_.next_change() - absl::Seconds(1);
  Look();
  EXPECT_THAT(policy_.verdicts(), SizeIs(3));
  now_ += absl::Seconds(1);
  EXPECT_TRUE(Look());
  EXPECT_THAT(policy_.verdicts(), SizeIs(2));
  EXPECT_EQ(Level(2), "lost");
  EXPECT_THAT(policy_.Save(), Not(HasSubstr("uuid-1")));
}

TEST_F(HealthPolicyTest, TheMemoryIsBounded) {
  Look();
  ASSERT_THAT(policy_.Isolate("uuid-1", "x", now_), IsOk());
  inventory_.chips.resize(1);
  uint64_t code = 0x90000000;
  for (int i = 0; i < 300; ++i) {
    now_ += absl::Seconds(1);
    chip().uuid = absl::StrCat("many-", i);
    std::vector<Fault> faults;
    for (int j = 0; j < 5; ++j) faults.push_back(Active(code++));
    Have(std::move(faults));
    Look();
  }
  EXPECT_THAT(policy_.Save(),
              AllOf(HasSubstr("uuid-1"), HasSubstr("many-299"), Not(HasSubstr("many-0\""))));
  for (int i = 0; i < 10; ++i) {
    now_ += absl::Seconds(1);
    std::vector<Fault> faults;
    for (int j = 0; j < 128; ++j) faults.push_back(Active(code++));
    faults.back().code = kSeparate;
    Have(std::move(faults));
    Look();
    EXPECT_LE(Of().causes.size(), 256);
    EXPECT_EQ(Of().causes[0].code, kSeparate);
  }
  const std::string saved = policy_.Save();
  EXPECT_THAT(policy_.Restore(saved), IsOk());
}

}  // namespace
}  // namespace ascend::vnpu
