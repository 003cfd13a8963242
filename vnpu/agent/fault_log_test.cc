#include "vnpu/agent/fault_log.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace ascend::agent {
namespace {

using ::ascend::dcmi::FaultAssertion;
using ::ascend::vnpu::Chip;
using ::ascend::vnpu::Fault;
using ::ascend::vnpu::FaultSeverity;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TestClock : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch() + now; }
  absl::Duration Monotonic() const override { return now; }
  absl::Duration now = absl::Hours(1);
};

constexpr uint64_t kCode = 0x80E01801;
constexpr uint64_t kOther = 0x110001024;

class FaultLogTest : public ::testing::Test {
 protected:
  FaultLogTest() { log_.SetChips({NewChip(0), NewChip(1)}); }

  static Chip NewChip(int physical_id, const std::string& uuid = "A") {
    return {.physical_id = physical_id, .logic_id = 10 + physical_id, .uuid = uuid};
  }
  static Chip Listing(const std::vector<uint64_t>& codes, Chip chip = NewChip(0)) {
    chip.faults.emplace();
    for (const uint64_t code : codes) {
      chip.faults->push_back({.code = code, .active = true, .occurrences = 1});
    }
    return chip;
  }
  // A whole look that finds these codes on chip 0.
  std::vector<Fault> Look(const std::vector<uint64_t>& codes) {
    return LookThatBegan(log_.BeginLook(), codes);
  }
  std::vector<Fault> LookThatBegan(uint64_t began, const std::vector<uint64_t>& codes) {
    Chip chip = Listing(codes);
    log_.Merge(began, chip);
    return *chip.faults;
  }
  // What there is without a look.
  std::vector<Fault> Refresh(int physical_id = 0) {
    Chip chip = Listing({}, NewChip(physical_id));
    log_.Refresh(chip);
    return *chip.faults;
  }
  bool Note(int serial, FaultAssertion assertion = FaultAssertion::kOccurred,
            uint64_t code = kCode) {
    return log_.Note({.logic_id = 10,
                      .code = code,
                      .severity = dcmi::FaultSeverity::kMajor,
                      .assertion = assertion,
                      .serial = serial});
  }
  static Fault Is(bool active, uint64_t occurrences,
                  FaultSeverity severity = FaultSeverity::kMajor) {
    return {.code = kCode, .active = active, .occurrences = occurrences, .severity = severity};
  }
  static Fault Listed(bool active, uint64_t occurrences) {
    return Is(active, occurrences, FaultSeverity::kUnknown);
  }

  TestClock clock_;
  FaultLog log_{clock_};
};

TEST_F(FaultLogTest, ListsAloneCountEachRise) {
  EXPECT_THAT(Look({}), IsEmpty());
  for (uint64_t rise = 1; rise <= 3; ++rise) {
    EXPECT_THAT(Look({kCode}), ElementsAre(Listed(true, rise)));
    EXPECT_THAT(Look({kCode}), ElementsAre(Listed(true, rise)));
    EXPECT_THAT(Look({}), ElementsAre(Listed(false, rise)));
  }
}

TEST_F(FaultLogTest, AnEventAndTheListTellTheSameOccurrence) {
  EXPECT_TRUE(Note(7));
  EXPECT_THAT(Refresh(), ElementsAre(Is(true, 1))) << "at once";
  EXPECT_THAT(Look({kCode}), ElementsAre(Is(true, 1)));
  EXPECT_THAT(Look({}), ElementsAre(Is(false, 1)));
  // The list first.
  EXPECT_THAT(Look({kCode}), ElementsAre(Is(true, 2)));
  EXPECT_TRUE(Note(8));
  EXPECT_THAT(Look({kCode}), ElementsAre(Is(true, 2)));
  EXPECT_THAT(Look({}), ElementsAre(Is(false, 2)));
}

TEST_F(FaultLogTest, AListThatIsSlowerThanTheEventCountsNothing) {
  Note(7);
  EXPECT_THAT(Look({}), ElementsAre(Is(false, 1)));
  EXPECT_THAT(Look({kCode}), ElementsAre(Is(true, 1)));
  // Unless the driver has said in between that it was gone.
  Look({});
  Note(8);
  Note(8, FaultAssertion::kRecovered);
  EXPECT_THAT(Look({}), ElementsAre(Is(false, 2)));
  EXPECT_THAT(Look({kCode}), ElementsAre(Is(true, 3)));
}

TEST_F(FaultLogTest, ALateEventIsAnotherOccurrence) {
  Look({kCode});
  clock_.now += FaultLog::kSame + absl::Seconds(1);
  Note(7);
  EXPECT_THAT(Look({kCode}), ElementsAre(Is(true, 2)));
}

TEST_F(FaultLogTest, WhatComesAndGoesBetweenLooksIsCounted) {
  Look({});
  for (int serial = 1; serial <= 4; ++serial) {
    EXPECT_TRUE(Note(serial));
    EXPECT_TRUE(Note(serial, FaultAssertion::kRecovered));
  }
  EXPECT_THAT(Look({}), ElementsAre(Is(false, 4)));
}

TEST_F(FaultLogTest, OnlyALookThatBeganAfterTheEventDecides) {
  const uint64_t began = log_.BeginLook();
  Note(7);
  EXPECT_THAT(LookThatBegan(began, {}), ElementsAre(Is(true, 1)));
  EXPECT_THAT(Look({}), ElementsAre(Is(false, 1)));
  // Nor does an old look bring back what has gone since.
  const uint64_t old = log_.BeginLook();
  Note(8);
  Note(8, FaultAssertion::kRecovered);
  EXPECT_THAT(Look({}), ElementsAre(Is(false, 2)));
  EXPECT_THAT(LookThatBegan(old, {kCode}), ElementsAre(Is(false, 2)));
}

TEST_F(FaultLogTest, ARecoveryDoesNotClearWhatIsListed) {
  Look({kCode});
  EXPECT_TRUE(Note(7, FaultAssertion::kRecovered)) << "worth a look";
  EXPECT_THAT(Refresh(), ElementsAre(Listed(true, 1)));
  EXPECT_THAT(Look({kCode}), ElementsAre(Listed(true, 1)));
  // Of a fault that was never told it says nothing.
  EXPECT_TRUE(Note(8, FaultAssertion::kRecovered, kOther));
  EXPECT_THAT(Refresh(), SizeIs(1));
}

TEST_F(FaultLogTest, ADuplicateOrAnUnknownChipChangesNothing) {
  EXPECT_TRUE(Note(7));
  EXPECT_FALSE(Note(7));
  EXPECT_THAT(Refresh(), ElementsAre(Is(true, 1)));
  for (const int logic_id : {-1, 0, 99}) {
    EXPECT_FALSE(log_.Note({.logic_id = logic_id, .code = kOther, .serial = 1}));
  }
  EXPECT_THAT(Refresh(), SizeIs(1));
  EXPECT_THAT(Refresh(1), IsEmpty());
  // Another serial is another occurrence, also while it is active; 0 is no serial.
  EXPECT_TRUE(Note(8));
  EXPECT_TRUE(Note(0));
  EXPECT_TRUE(Note(0));
  EXPECT_THAT(Refresh(), ElementsAre(Is(true, 4)));
}

TEST_F(FaultLogTest, AOneShotIsCountedAndNotActive) {
  EXPECT_TRUE(Note(7, FaultAssertion::kOneShot));
  EXPECT_FALSE(Note(7, FaultAssertion::kOneShot));
  EXPECT_TRUE(Note(8, FaultAssertion::kOneShot));
  EXPECT_THAT(Look({}), ElementsAre(Is(false, 2)));
  EXPECT_THAT(Look({kCode}), ElementsAre(Is(true, 3)));
}

TEST_F(FaultLogTest, WordsComeFromTheListOrElseFromTheEvent) {
  log_.Note({.logic_id = 10, .code = kCode, .serial = 1, .name = "ecc"});
  EXPECT_EQ(Refresh()[0].text, "ecc");
  EXPECT_EQ(Refresh()[0].severity, FaultSeverity::kUnknown);
  Chip chip = Listing({kCode});
  chip.faults->front().text = "HBM multi bit ECC";
  log_.Merge(log_.BeginLook(), chip);
  EXPECT_EQ(chip.faults->front().text, "HBM multi bit ECC");
  log_.Note({.logic_id = 10, .code = kCode, .serial = 2, .name = "ecc"});
  EXPECT_EQ(Refresh()[0].text, "HBM multi bit ECC");
}

TEST_F(FaultLogTest, WhatWentIsKeptForAnHourAndItsCountForEver) {
  Look({kCode});
  Look({});
  clock_.now += FaultLog::kKept;
  EXPECT_THAT(Look({}), ElementsAre(Listed(false, 1)));
  clock_.now += absl::Seconds(1);
  EXPECT_THAT(Look({}), IsEmpty());
  EXPECT_THAT(Look({kCode}), ElementsAre(Listed(true, 2)));
  clock_.now += 2 * FaultLog::kKept;
  EXPECT_THAT(Look({kCode}), ElementsAre(Listed(true, 2))) << "it is there still";
}

TEST_F(FaultLogTest, OfTooManyTheOldestThatWentAreLeftOut) {
  Look({kCode});
  for (int i = 0; i < 1000; ++i) {
    clock_.now += absl::Seconds(1);
    Note(1, FaultAssertion::kOneShot, kOther + static_cast<uint64_t>(i));
    ASSERT_LE(Refresh().size(), FaultLog::kMostFaults);
  }
  const std::vector<Fault> faults = Look({kCode});
  ASSERT_THAT(faults, SizeIs(FaultLog::kMostFaults));
  EXPECT_EQ(faults.front(), Listed(true, 1)) << "active, however old";
  EXPECT_EQ(faults[1].code, kOther + 1000 - FaultLog::kMostFaults + 1);
  EXPECT_EQ(faults.back().code, kOther + 999);
}

TEST_F(FaultLogTest, ManyCodesTakeBoundedMemoryAndOrder) {
  std::vector<uint64_t> codes;
  for (uint64_t i = 0; i < 200; ++i) codes.push_back(1000 - i);
  const std::vector<Fault> faults = Look(codes);
  ASSERT_THAT(faults, SizeIs(FaultLog::kMostFaults));
  for (size_t i = 1; i < faults.size(); ++i) EXPECT_LT(faults[i - 1].code, faults[i].code);
}

TEST_F(FaultLogTest, AnotherChipInThePlaceBeginsAnew) {
  Look({kCode});
  Chip chip = Listing({}, NewChip(0, "B"));
  log_.Merge(log_.BeginLook(), chip);
  EXPECT_THAT(*chip.faults, IsEmpty());
}

TEST_F(FaultLogTest, AChipThatWasAwayKeepsItsCounts) {
  Look({kCode});
  log_.SetChips({NewChip(1)});
  EXPECT_FALSE(Note(7)) << "nobody has this logic id";
  Chip back = NewChip(0);
  back.logic_id = 3;
  log_.SetChips({NewChip(1), back});
  EXPECT_THAT(Look({}), ElementsAre(Listed(false, 1)));
  EXPECT_TRUE(log_.Note({.logic_id = 3, .code = kCode, .serial = 7}));
  EXPECT_FALSE(Note(8));
}

TEST_F(FaultLogTest, AChipWithoutAListHasNone) {
  Note(7);
  Chip chip = NewChip(0);
  chip.faults_error = "no answer";
  log_.Merge(log_.BeginLook(), chip);
  log_.Refresh(chip);
  EXPECT_EQ(chip.faults, std::nullopt);
}

TEST_F(FaultLogTest, TheListenerHearsOfWhatIsNew) {
  int calls = 0;
  log_.SetListener([&calls] { ++calls; });
  Note(7);
  Note(7);
  Note(7, FaultAssertion::kRecovered);
  log_.Note({.logic_id = 99, .code = kCode});
  EXPECT_EQ(calls, 2);
  log_.SetListener(nullptr);
  Note(8);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace ascend::agent
