#include "vnpu/health/fault_table.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "vnpu/chip.h"
#include "vnpu/health/fault_table_reader.h"
#include "vnpu/health/level.h"

namespace ascend::vnpu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

FaultTable With(absl::string_view yaml) {
  absl::StatusOr<FaultTable> table = FaultTable::WithOverrides(yaml);
  EXPECT_THAT(table, IsOk()) << yaml;
  return table.ok() ? *table : FaultTable::BuiltIn();
}

// The reference's counts, but for RestartBusiness: it counts A2301001, which SeparateNPU has too.
TEST(BuiltInFaultTable, HasEveryCodeOfTheReference) {
  std::map<HealthLevel, int> counts;
  for (const auto& [code, level] : FaultTable::BuiltIn().codes()) ++counts[level];
  EXPECT_THAT(counts,
              UnorderedElementsAre(
                  Pair(HealthLevel::kNotHandleFault, 132), Pair(HealthLevel::kSubHealthFault, 13),
                  Pair(HealthLevel::kRestartRequest, 33), Pair(HealthLevel::kRestartBusiness, 24),
                  Pair(HealthLevel::kFreeRestartNpu, 23), Pair(HealthLevel::kRestartNpu, 162),
                  Pair(HealthLevel::kPreSeparateNpu, 200), Pair(HealthLevel::kSeparateNpu, 215)));
  EXPECT_EQ(FaultTable::BuiltIn().version(), "MindCluster 2026-08-21");
}

// Typed from the reference's list of named codes, not from the table.
TEST(BuiltInFaultTable, KnowsTheNamedCodes) {
  const FaultTable& table = FaultTable::BuiltIn();
  EXPECT_EQ(table.Find(0x40F84E00), HealthLevel::kRestartNpu);
  EXPECT_EQ(table.Find(0x80E24E00), HealthLevel::kRestartNpu);
  EXPECT_EQ(table.Find(0x80E21E01), HealthLevel::kRestartNpu);
  EXPECT_EQ(table.Find(0x80E18402), HealthLevel::kSeparateNpu);
  EXPECT_EQ(table.Find(0x8C204E00), HealthLevel::kRestartBusiness);
  EXPECT_EQ(table.Find(0x80C98008), HealthLevel::kRestartRequest);
  EXPECT_EQ(table.Find(0x80C98009), HealthLevel::kRestartRequest);
  EXPECT_EQ(table.Find(0x80C9800A), HealthLevel::kRestartRequest);
  EXPECT_EQ(table.Find(0x80E01801), HealthLevel::kRestartBusiness);
  EXPECT_EQ(table.Find(0x81078603), HealthLevel::kNotHandleFault);
  EXPECT_EQ(table.Find(0x110001024), HealthLevel::kPreSeparateNpu);
  EXPECT_EQ(table.Find(0x110000002), HealthLevel::kSubHealthFault);
  EXPECT_EQ(table.Find(0x020001002), HealthLevel::kSeparateNpu);
  EXPECT_EQ(table.Find(0x020000002), HealthLevel::kSubHealthFault);
  EXPECT_EQ(table.Find(0x200001002), HealthLevel::kNotHandleFault);
  EXPECT_EQ(table.Find(0x8C2FA009), HealthLevel::kNotHandleFault);
  EXPECT_EQ(table.Find(0xA2301001), HealthLevel::kSeparateNpu);  // the worse of two
  EXPECT_EQ(table.Find(0x10001024), std::nullopt);               // the low half of a composed code
  EXPECT_EQ(table.Find(0x80C98004), std::nullopt);
}

TEST(BuiltInFaultTable, HasTheRulesOfTheReference) {
  const FaultTable& table = FaultTable::BuiltIn();
  constexpr absl::Duration kDay = absl::Hours(24);
  std::set<uint64_t> twice;
  for (const uint64_t half :
       {0x80A1, 0x80A3, 0x80A5, 0x80BD, 0x80C7, 0x80C9, 0x80CB, 0x80CD, 0x80CF, 0x80D9,
        0x80DF, 0x80E1, 0x80E3, 0x80E7, 0x80F1, 0x80F3, 0x80F7, 0x8131, 0x8133, 0x813B,
        0x8147, 0x8157, 0x815F, 0x8193, 0x8195, 0x8197, 0x80B9, 0x80BB}) {
    twice.insert(half << 16 | 0x8008);
  }
  for (const uint64_t half : {0x80B5, 0x80B7, 0x80C9, 0x80E7, 0x80F1, 0x80B9, 0x80BB, 0x80BD}) {
    twice.insert(half << 16 | 0x8000);
  }
  twice.insert({0x80DE1801, 0x80E01801, 0x80E39200, 0x80E3A202, 0x80E3A203});
  for (const auto& [code, rule] : table.frequency()) {
    if (code == 0x80E18005) {
      EXPECT_EQ(rule, (FrequencyRule{3, kDay, kDay}));
    } else if (code == 0x81078603) {
      EXPECT_EQ(rule, (FrequencyRule{5, kDay, 2 * kDay}));
    } else {
      EXPECT_EQ(twice.count(code), 1) << FaultCodeText(code);
      EXPECT_EQ(rule, (FrequencyRule{2, kDay, kDay})) << FaultCodeText(code);
    }
  }
  EXPECT_EQ(table.frequency().size(), twice.size() + 2);
  const DurationRule link = {absl::Seconds(20), HealthLevel::kPreSeparateNpu, absl::Seconds(60)};
  EXPECT_THAT(table.duration(), ElementsAre(Pair(0x81078603, link)));
  EXPECT_EQ(table.network(), link);
  EXPECT_EQ(table.damping(), (Damping{absl::Minutes(10), absl::Minutes(10)}));
  ASSERT_NE(table.FrequencyOf(0x81078603), nullptr);
  EXPECT_EQ(table.FrequencyOf(0x81078603)->times, 5);
  EXPECT_EQ(table.FrequencyOf(0x81078604), nullptr);
  ASSERT_NE(table.DurationOf(0x81078603), nullptr);
  EXPECT_EQ(table.DurationOf(0x80E01801), nullptr);
}

TEST(BuiltInFaultTable, KeepsPodsAwayButEvictsNone) {
  const FaultTable& table = FaultTable::BuiltIn();
  EXPECT_EQ(table.ActionOf(HealthLevel::kHealthy), HealthAction());
  for (size_t i = 1; i < kHealthLevels; ++i) {
    const auto level = static_cast<HealthLevel>(i);
    HealthAction expected = {TaintEffect::kNoSchedule, HealthState::kUnhealthy, absl::Seconds(15)};
    if (level == HealthLevel::kNotHandleFault || level == HealthLevel::kSubHealthFault) {
      expected = {TaintEffect::kNone, HealthState::kHealthy, absl::Seconds(15)};
    } else if (level == HealthLevel::kUnknown || level == HealthLevel::kStuck) {
      expected.state = HealthState::kUnknown;
    }
    EXPECT_EQ(table.ActionOf(level), expected) << HealthLevelName(level);
  }
}

TEST(HealthLevel, HasANameThatLeadsBack) {
  std::set<std::string> names;
  for (size_t i = 1; i < kHealthLevels; ++i) {
    const auto level = static_cast<HealthLevel>(i);
    names.emplace(HealthLevelName(level));
    EXPECT_EQ(HealthLevelFromName(HealthLevelName(level)), level);
  }
  EXPECT_EQ(names.size(), kHealthLevels - 1);
  EXPECT_EQ(HealthLevelName(HealthLevel::kHealthy), "");
  EXPECT_EQ(HealthLevelFromName(""), std::nullopt);
  EXPECT_EQ(HealthLevelFromName("separatenpu"), std::nullopt);
  EXPECT_EQ(HealthLevelName(HealthLevel::kManuallySeparateNpu), "ManuallySeparateNPU");
  EXPECT_EQ(HealthLevelName(HealthLevel::kUnknown), "unknown");
}

TEST(LevelOf, UnknownCodesGoBySeverityThenByGrade) {
  const FaultTable& table = FaultTable::BuiltIn();
  constexpr uint64_t kNobodyKnows = 0xDEADBEEF;
  const auto of = [&table](FaultSeverity severity, Health grade) {
    return table.LevelOf(kNobodyKnows, severity, grade);
  };
  EXPECT_EQ(of(FaultSeverity::kWarning, Health::kCritical), HealthLevel::kNotHandleFault);
  EXPECT_EQ(of(FaultSeverity::kMinor, Health::kCritical), HealthLevel::kNotHandleFault);
  EXPECT_EQ(of(FaultSeverity::kMajor, Health::kOk), HealthLevel::kSeparateNpu);
  EXPECT_EQ(of(FaultSeverity::kCritical, Health::kOk), HealthLevel::kSeparateNpu);
  EXPECT_EQ(of(FaultSeverity::kUnknown, Health::kOk), HealthLevel::kNotHandleFault);
  EXPECT_EQ(of(FaultSeverity::kUnknown, Health::kMinor), HealthLevel::kNotHandleFault);
  EXPECT_EQ(of(FaultSeverity::kUnknown, Health::kMajor), HealthLevel::kSeparateNpu);
  EXPECT_EQ(of(FaultSeverity::kUnknown, Health::kCritical), HealthLevel::kSeparateNpu);
  EXPECT_EQ(of(FaultSeverity::kUnknown, Health::kAbsent), HealthLevel::kSeparateNpu);
  EXPECT_EQ(of(FaultSeverity::kUnknown, Health::kUnknown), HealthLevel::kSeparateNpu);
}

TEST(LevelOf, KnownCodesDoNotGoBySeverity) {
  const FaultTable& table = FaultTable::BuiltIn();
  EXPECT_EQ(table.LevelOf(0x80C98006, FaultSeverity::kCritical, Health::kCritical),
            HealthLevel::kNotHandleFault);
  EXPECT_EQ(table.LevelOf(0x80E18402, FaultSeverity::kWarning, Health::kOk),
            HealthLevel::kSeparateNpu);
}

TEST(FaultTableOverrides, MoveCodesAndKeepTheRest) {
  const FaultTable table = With(R"(
version: site 3
levels:
  SubHealthFault: [80E0:1801]
  SeparateNPU:
    - 80C9:8000,8008-800A
    - FEDCBA9876543210
)");
  EXPECT_EQ(table.version(), "MindCluster 2026-08-21+site 3");
  EXPECT_EQ(table.Find(0x80E01801), HealthLevel::kSubHealthFault);
  EXPECT_EQ(table.Find(0x80C98000), HealthLevel::kSeparateNpu);
  EXPECT_EQ(table.Find(0x80C98009), HealthLevel::kSeparateNpu);
  EXPECT_EQ(table.Find(0x80C98002), HealthLevel::kRestartRequest);
  EXPECT_EQ(table.Find(0xFEDCBA9876543210), HealthLevel::kSeparateNpu);
  EXPECT_EQ(table.codes().size(), FaultTable::BuiltIn().codes().size() + 1);
  EXPECT_EQ(table.frequency(), FaultTable::BuiltIn().frequency());
}

TEST(FaultTableOverrides, ChangeRulesAndTakeThemAway) {
  const FaultTable table = With(R"(
frequency:
  - {codes: ["80E0:1801"], times: 7, within: 90m, release: 30m}
  - {codes: ["80E1:8005"], off: true}
  - {codes: [DEADBEEF], times: 1, within: 1s, release: 1s}
duration:
  - {codes: ["8107:8603"], off: true}
  - {codes: ["8107,8109:8607"], after: 1m, level: SubHealthFault, recover: 2m}
network: {after: 5s, level: SeparateNPU, recover: 6s}
damping: {window: 1m, longest: 2m}
)");
  EXPECT_EQ(table.version(), "MindCluster 2026-08-21+custom");
  EXPECT_EQ(*table.FrequencyOf(0x80E01801),
            (FrequencyRule{7, absl::Minutes(90), absl::Minutes(30)}));
  EXPECT_EQ(table.FrequencyOf(0x80E18005), nullptr);
  EXPECT_EQ(table.FrequencyOf(0xDEADBEEF)->times, 1);
  EXPECT_EQ(table.frequency().size(), FaultTable::BuiltIn().frequency().size());
  const DurationRule rule = {absl::Minutes(1), HealthLevel::kSubHealthFault, absl::Minutes(2)};
  EXPECT_THAT(table.duration(), ElementsAre(Pair(0x81078607, rule), Pair(0x81098607, rule)));
  EXPECT_EQ(table.network(),
            (DurationRule{absl::Seconds(5), HealthLevel::kSeparateNpu, absl::Seconds(6)}));
  EXPECT_EQ(table.damping(), (Damping{absl::Minutes(1), absl::Minutes(2)}));
}

TEST(FaultTableOverrides, ChangeActionsInPart) {
  const FaultTable table = With(R"(
actions:
  SeparateNPU: {effect: NoExecute}
  lost: {recover: 90s}
  RestartRequest: {effect: none, state: Healthy}
)");
  EXPECT_EQ(table.ActionOf(HealthLevel::kSeparateNpu),
            (HealthAction{TaintEffect::kNoExecute, HealthState::kUnhealthy, absl::Seconds(15)}));
  EXPECT_EQ(table.ActionOf(HealthLevel::kLost),
            (HealthAction{TaintEffect::kNoSchedule, HealthState::kUnhealthy, absl::Seconds(90)}));
  EXPECT_EQ(table.ActionOf(HealthLevel::kRestartRequest),
            (HealthAction{TaintEffect::kNone, HealthState::kHealthy, absl::Seconds(15)}));
}

TEST(FaultTableOverrides, NothingIsTheBuiltInTable) {
  for (const char* text : {"", "# only a comment\n", "---\n", "{}"}) {
    EXPECT_EQ(With(text).version(), FaultTable::BuiltIn().version()) << text;
    EXPECT_EQ(With(text).codes(), FaultTable::BuiltIn().codes()) << text;
  }
}

TEST(EvictOn, IsForLevelsThatAreKnownToBeBad) {
  FaultTable table = FaultTable::BuiltIn();
  EXPECT_THAT(table.EvictOn("RestartNPU"), IsOk());
  EXPECT_THAT(table.EvictOn("lost"), IsOk());
  EXPECT_EQ(table.ActionOf(HealthLevel::kRestartNpu).effect, TaintEffect::kNoExecute);
  EXPECT_EQ(table.ActionOf(HealthLevel::kLost).effect, TaintEffect::kNoExecute);
  EXPECT_EQ(table.ActionOf(HealthLevel::kSeparateNpu).effect, TaintEffect::kNoSchedule);
  for (const char* level : {"unknown", "stuck", "", "Broken"}) {
    EXPECT_THAT(table.EvictOn(level),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(absl::StrCat("\"", level))));
  }
  EXPECT_EQ(table.ActionOf(HealthLevel::kUnknown).effect, TaintEffect::kNoSchedule);
}

struct WrongTable {
  const char* yaml;
  const char* where;
  const char* what;
};

class FaultTableErrors : public ::testing::TestWithParam<WrongTable> {};

TEST_P(FaultTableErrors, NameLineAndCode) {
  EXPECT_THAT(FaultTable::WithOverrides(GetParam().yaml),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(GetParam().where), HasSubstr(GetParam().what))));
}

INSTANTIATE_TEST_SUITE_P(
    All, FaultTableErrors,
    ::testing::Values(
        WrongTable{"[]", "line 1", "the fault table must be a mapping"},
        WrongTable{"level: {}", "line 1", "no key \"level\""},
        WrongTable{"levels: {}\nlevels: {}", "line 2", "key levels appears twice"},
        WrongTable{"a: [", "not valid YAML", "line"},
        WrongTable{"{}\n---\n{}", "line 3", "more than one YAML document"},
        WrongTable{"version: [1]", "line 1", "version must be a text"},
        WrongTable{"version: ''", "line 1", "version must be a text"},
        WrongTable{"version: \"a\\nb\"", "line 1", "version must be a text"},
        WrongTable{"levels: [80E01801]", "line 1", "levels must be a mapping"},
        WrongTable{"levels:\n  Broken: []", "line 2", "\"Broken\" is no level of a fault"},
        WrongTable{"levels:\n  lost: []", "line 2", "\"lost\" is no level of a fault"},
        WrongTable{"levels:\n  ManuallySeparateNPU: []", "line 2", "is no level of a fault"},
        WrongTable{"levels:\n  SeparateNPU: 80E01801", "line 2", "must be a list of codes"},
        WrongTable{"levels:\n  SeparateNPU:\n    - 80E0: 1801", "line 3", "needs quotes"},
        WrongTable{"levels:\n  SeparateNPU:\n    - 1\n    - 80E0180G", "line 4", "80E0180G"},
        WrongTable{"levels: {SeparateNPU: [0x80E01801]}", "line 1", "0x80E01801"},
        WrongTable{"levels: {SeparateNPU: ['']}", "line 1", "is no fault code"},
        WrongTable{"levels: {SeparateNPU: [-1]}", "line 1", "\"-1\" is no fault code"},
        WrongTable{"levels: {SeparateNPU: [12345678901234567]}", "line 1", "12345678901234567"},
        WrongTable{"levels: {SeparateNPU: ['80E:1801']}", "line 1", "\"80E\" is not four"},
        WrongTable{"levels: {SeparateNPU: ['80E0:1801,']}", "line 1", "\"\" is not four"},
        WrongTable{"levels: {SeparateNPU: [',80E0:1801']}", "line 1", "\"\" is not four"},
        WrongTable{"levels: {SeparateNPU: ['80E0:0x01']}", "line 1", "\"0x01\" is not four"},
        WrongTable{"levels: {SeparateNPU: ['80E0:1801:2']}", "line 1", "is not four"},
        WrongTable{"levels: {SeparateNPU: ['80E0:1801-']}", "line 1", "\"\" is not four"},
        WrongTable{"levels: {SeparateNPU: ['80E0:1801-1801']}", "80E0:1801-1801", "is empty"},
        WrongTable{"levels: {SeparateNPU: ['80E0:1802-1801']}", "80E0:1802-1801", "is empty"},
        WrongTable{"levels: {SeparateNPU: ['80E0,80E1:0000-FFFF']}", "line 1", "more than"},
        WrongTable{"levels:\n  SeparateNPU: [80E01801]\n  RestartNPU:\n    - '80E0:1801'", "line 4",
                   "code 80E01801 is SeparateNPU already, and cannot be RestartNPU"},
        WrongTable{"levels:\n  SeparateNPU: ['80E0:1801,1801']", "line 2", "code 80E01801 is"},
        WrongTable{"frequency: {}", "line 1", "frequency must be a list"},
        WrongTable{"frequency:\n- 1", "line 2", "a rule of frequency must be a mapping"},
        WrongTable{"frequency: [{times: 2, within: 1h, release: 1h}]", "line 1", "needs codes"},
        WrongTable{"frequency: [{codes: [1], within: 1h, release: 1h}]", "line 1", "needs times"},
        WrongTable{"frequency: [{codes: [1], times: 0, within: 1h, release: 1h}]", "line 1",
                   "times must be a whole number from 1"},
        WrongTable{"frequency: [{codes: [1], times: 101, within: 1h, release: 1h}]", "line 1",
                   "times must be"},
        WrongTable{"frequency: [{codes: [1], times: 2, within: 0s, release: 1h}]", "line 1",
                   "within must be a time"},
        WrongTable{"frequency: [{codes: [1], times: 2, within: 1h, release: inf}]", "line 1",
                   "release must be a time"},
        WrongTable{"frequency: [{codes: [1], times: 2, within: 1h}]", "line 1", "needs release"},
        WrongTable{"frequency: [{codes: [1], off: false}]", "line 1", "off must be true"},
        WrongTable{"frequency: [{codes: [1], off: true, times: 2}]", "line 1", "no key \"times\""},
        WrongTable{"frequency:\n- {codes: [1], off: true}\n- {codes: [1], off: true}", "line 3",
                   "code 00000001 has a rule of frequency already"},
        WrongTable{"duration: [{codes: [1], after: 0, level: SeparateNPU, recover: 1s}]", "line 1",
                   "after must be a time"},
        WrongTable{"duration: [{codes: [1], after: 1s, level: lost, recover: 1s}]", "line 1",
                   "\"lost\" is no level of a fault"},
        WrongTable{"duration: [{codes: [1], after: 1s, level: SeparateNPU, recover: -1s}]",
                   "line 1", "recover must be a time"},
        WrongTable{"duration: [{codes: [Z], after: 1s, level: SeparateNPU, recover: 1s}]", "line 1",
                   "\"Z\" is no fault code"},
        WrongTable{"duration: [{codes: [1], after: 1s, recover: 1s}]", "line 1", "needs level"},
        WrongTable{"network: {after: 1s, level: SeparateNPU}", "line 1", "needs recover"},
        WrongTable{"network: {after: 1s, level: SeparateNPU, recover: 1s, x: 1}", "line 1",
                   "no key \"x\""},
        WrongTable{"actions: []", "line 1", "actions must be a mapping"},
        WrongTable{"actions: {Broken: {}}", "line 1", "no level \"Broken\""},
        WrongTable{"actions: {'': {}}", "line 1", "no level \"\""},
        WrongTable{"actions: {lost: NoExecute}", "line 1", "lost must be a mapping"},
        WrongTable{"actions: {lost: {efect: none}}", "line 1", "no key \"efect\""},
        WrongTable{"actions: {lost: {effect: noexecute}}", "line 1", "effect must be none"},
        WrongTable{"actions:\n  unknown: {effect: NoExecute}", "line 2", "unknown: effect cannot"},
        WrongTable{"actions:\n  stuck: {effect: NoExecute}", "line 2", "stuck: effect cannot"},
        WrongTable{"actions: {lost: {state: Sick}}", "line 1", "state must be Healthy"},
        WrongTable{"actions: {lost: {recover: 0s}}", "line 1", "recover must be a time"},
        WrongTable{"actions: {lost: {recover: 721h}}", "line 1", "recover must be a time"},
        WrongTable{"actions: {lost: {recover: [1s]}}", "line 1", "recover must be one value"},
        WrongTable{"damping: {window: 1m}", "line 1", "damping needs longest"},
        WrongTable{"damping: {window: 0m, longest: 1m}", "line 1", "window must be a time"}));

TEST(ParseFaultCodes, ExpandsGroups) {
  EXPECT_THAT(*ParseFaultCodes("80C9:8000,8008-800a"),
              ElementsAre(0x80C98000, 0x80C98008, 0x80C98009, 0x80C9800A));
  EXPECT_THAT(*ParseFaultCodes("80CB,80CD:0001,FFFF"),
              ElementsAre(0x80CB0001, 0x80CBFFFF, 0x80CD0001, 0x80CDFFFF));
  EXPECT_THAT(*ParseFaultCodes("110001024"), ElementsAre(0x110001024));
  EXPECT_THAT(*ParseFaultCodes("FFFFFFFFFFFFFFFF"), ElementsAre(0xFFFFFFFFFFFFFFFF));
}

TEST(FaultCodeText, HasAtLeastEightDigits) {
  EXPECT_EQ(FaultCodeText(0x020001002), "20001002");
  EXPECT_EQ(FaultCodeText(0x1801), "00001801");
  EXPECT_EQ(FaultCodeText(0x110001024), "110001024");
}

}  // namespace
}  // namespace ascend::vnpu
