// What a look tells of chips that are sick, absent, or do not answer.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "vnpu/discovery.h"
#include "vnpu/fake_dcmi.h"

namespace ascend::vnpu {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// Turns that a test can look into.
class Turns : public ReadingTurns {
 public:
  bool TryTake(dcmi::ChipAddress chip) override {
    MutexLock lock(&mutex_);
    return held_.insert({chip.card, chip.device}).second;
  }
  void Release(dcmi::ChipAddress chip) override {
    MutexLock lock(&mutex_);
    held_.erase({chip.card, chip.device});
    changed_.SignalAll();
  }
  void Reading(dcmi::ChipAddress chip, absl::string_view what) override {
    MutexLock lock(&mutex_);
    last_ = absl::StrCat(chip.card, ": ", what);
  }
  std::string Stuck(dcmi::ChipAddress chip) const override {
    MutexLock lock(&mutex_);
    return held_.count({chip.card, chip.device}) != 0 ? stuck : "";
  }
  std::string last() const {
    MutexLock lock(&mutex_);
    return last_;
  }
  size_t held() const {
    MutexLock lock(&mutex_);
    return held_.size();
  }
  std::string stuck;

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::set<std::pair<int, int>> held_ ABSL_GUARDED_BY(mutex_);
  std::string last_ ABSL_GUARDED_BY(mutex_);
};

// Holds up a call of the fake until it is opened.
class Gate {
 public:
  void Pass() {
    MutexLock lock(&mutex_);
    ++waiting_;
    changed_.SignalAll();
    while (!open_) changed_.Wait(&mutex_);
  }
  void WaitForSomebody() {
    MutexLock lock(&mutex_);
    while (waiting_ == 0) changed_.Wait(&mutex_);
  }
  void Open() {
    MutexLock lock(&mutex_);
    open_ = true;
    changed_.SignalAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
};

class DiscoveryFaultsTest : public ::testing::Test {
 protected:
  std::shared_ptr<Look> Begin(const Inventory& last = {}) {
    auto look = Look::Begin(dcmi_, options_, turns_, texts_, last);
    EXPECT_THAT(look, IsOk());
    return *look;
  }
  Look::Result Run(const Inventory& last = {}) {
    const std::shared_ptr<Look> look = Begin(last);
    while (look->Step()) {
    }
    return look->Finish();
  }
  void Set(int card, absl::StatusOr<std::vector<uint64_t>> codes) {
    dcmi_.Edit([&](auto& chips) { chips.at({card, 0}).fault_codes = codes; });
  }
  int Count(const std::string& call) {
    const std::vector<std::string> calls = dcmi_.calls();
    return static_cast<int>(std::count(calls.begin(), calls.end(), call));
  }
  void Version(const std::string& text) {
    ASSERT_THAT(MakeDirectories(directory_.File("driver")), IsOk());
    ASSERT_THAT(WriteFileAtomically(directory_.File("driver/version.info"), text), IsOk());
  }

  TempDir directory_;
  const DiscoveryOptions options_ = {.sysfs_root = directory_.path(),
                                     .hccn_conf = directory_.File("hccn.conf"),
                                     .ascend_root = directory_.path()};
  FakeDcmi dcmi_{3};
  Turns turns_;
  FaultTexts texts_;
};

TEST_F(DiscoveryFaultsTest, ListsTheCodesWithTheLibrarysWords) {
  Set(1, std::vector<uint64_t>{0x80E01801, 0x110001024, 0x80E01801});
  dcmi_.Edit([](auto& chips) { chips.at({1, 0}).fault_texts = {{0x80E01801, "HBM ECC"}}; });
  const Look::Result result = Run();
  ASSERT_THAT(result.inventory.chips, SizeIs(3));
  EXPECT_THAT(result.read, ElementsAre(0, 1, 2));
  EXPECT_EQ(result.inventory.chips[0].faults, std::vector<Fault>());
  const std::vector<Fault> expected = {
      {.code = 0x80E01801, .active = true, .occurrences = 1, .text = "HBM ECC"},
      {.code = 0x110001024, .active = true, .occurrences = 1}};
  EXPECT_EQ(result.inventory.chips[1].faults, expected);
  EXPECT_EQ(result.inventory.chips[1].faults_error, "");

  // The words are asked for once, also those that it does not have.
  Run();
  EXPECT_EQ(Count("FaultText 1"), 2);
  Set(2, std::vector<uint64_t>{0x80E01801});
  Run();
  EXPECT_EQ(Count("FaultText 2"), 1);
}

TEST_F(DiscoveryFaultsTest, AListThatFailsIsNotAnEmptyOne) {
  Set(0, absl::InternalError("dcmi_get_device_errorcode_v2 returned -8005"));
  Set(1, absl::UnimplementedError("not in this library"));
  const Inventory inventory = Run().inventory;
  EXPECT_EQ(inventory.chips[0].faults, std::nullopt);
  EXPECT_THAT(inventory.chips[0].faults_error, HasSubstr("-8005"));
  EXPECT_EQ(inventory.chips[0].health, Health::kOk);
  EXPECT_EQ(inventory.chips[1].faults, std::nullopt);
  EXPECT_EQ(inventory.chips[1].faults_error, "") << "no fault of the chip";
  EXPECT_EQ(inventory.chips[2].faults, std::vector<Fault>());
}

TEST_F(DiscoveryFaultsTest, TellsTheNetworksHealth) {
  const std::pair<absl::StatusOr<dcmi::NetworkState>, NetworkHealth> cases[] = {
      {dcmi::NetworkState::kOk, NetworkHealth::kOk},
      {dcmi::NetworkState::kDown, NetworkHealth::kDown},
      {dcmi::NetworkState::kNotTested, NetworkHealth::kUnknown},
      {dcmi::NetworkState::kUnknown, NetworkHealth::kUnknown},
      {absl::UnimplementedError("no port"), NetworkHealth::kUnknown},
      {absl::InternalError("-8005"), NetworkHealth::kUnknown}};
  for (const auto& [state, expected] : cases) {
    const absl::StatusOr<dcmi::NetworkState>& answer = state;
    dcmi_.Edit([&answer](auto& chips) { chips.at({1, 0}).network = answer; });
    const Inventory inventory = Run().inventory;
    EXPECT_EQ(inventory.chips[1].network, expected);
    EXPECT_EQ(inventory.chips[1].health, Health::kOk);
    EXPECT_EQ(inventory.chips[0].network, NetworkHealth::kOk);
  }
}

TEST_F(DiscoveryFaultsTest, OfAnAbsentChipNothingIsAskedThatMayHang) {
  Set(1, std::vector<uint64_t>{0x40F84E00});
  dcmi_.Add(1, {.id = 116});
  const Inventory before = Run().inventory;
  dcmi_.Edit([](auto& chips) { chips.at({1, 0}).health = dcmi::HealthGrade::kAbsent; });
  const size_t calls = dcmi_.calls().size();
  const Look::Result result = Run(before);
  std::vector<std::string> about;
  for (const std::string& call : dcmi_.calls()) about.push_back(call);
  about.erase(about.begin(), about.begin() + static_cast<std::ptrdiff_t>(calls));
  for (const char* method : {"FaultCodes 1", "Network 1", "Processes 1", "Vnpus 1", "Vnpu 1"}) {
    EXPECT_THAT(about, Not(Contains(method)));
  }
  EXPECT_THAT(about, Contains("FaultCodes 2"));
  const Chip& chip = result.inventory.chips[1];
  EXPECT_EQ(chip.health, Health::kAbsent);
  EXPECT_EQ(chip.faults, std::nullopt);
  EXPECT_THAT(chip.faults_error, HasSubstr("absent"));
  EXPECT_EQ(chip.network, NetworkHealth::kUnknown);
  EXPECT_EQ(chip.busy, std::nullopt);
  EXPECT_THAT(chip.partitioning_error, HasSubstr("absent"));
  EXPECT_EQ(chip.partitioning, before.chips[1].partitioning) << "as it was";
  EXPECT_EQ(chip.model, before.chips[1].model);
  // Also if it was absent when this began.
  EXPECT_EQ(Run().inventory.chips[1].health, Health::kAbsent);

  dcmi_.Edit([](auto& chips) { chips.at({1, 0}).health = dcmi::HealthGrade::kOk; });
  EXPECT_EQ(Run(result.inventory).inventory, before);
}

TEST_F(DiscoveryFaultsTest, AnotherThreadGoesOnWhileAChipHangs) {
  const Inventory last = Run().inventory;
  Gate gate;
  dcmi_.Before([&gate](absl::string_view method, dcmi::ChipAddress chip) {
    if (method == "Network" && chip.card == 1) gate.Pass();
    return absl::OkStatus();
  });
  Set(2, std::vector<uint64_t>{7});
  const std::shared_ptr<Look> look = Begin(last);
  std::thread hanging([look] {
    while (look->Step()) {
    }
  });
  gate.WaitForSomebody();
  EXPECT_EQ(turns_.last(), "1: the health of its network");
  while (look->Step()) {
  }
  const Look::Result result = look->Finish();
  EXPECT_THAT(result.read, ElementsAre(0, 2));
  ASSERT_THAT(result.inventory.chips, SizeIs(3));
  EXPECT_EQ(result.inventory.chips[1], last.chips[1]);
  EXPECT_THAT(*result.inventory.chips[2].faults, SizeIs(1));

  // The next look does not touch the chip, and shows it as stuck when it is.
  turns_.stuck = "reading the health of its network has not returned for 10 s";
  const Look::Result next = Run(result.inventory);
  EXPECT_THAT(next.read, ElementsAre(0, 2));
  const Chip& chip = next.inventory.chips[1];
  EXPECT_EQ(chip.stuck, turns_.stuck);
  EXPECT_EQ(chip.health, Health::kUnknown);
  EXPECT_EQ(chip.busy, std::nullopt);
  EXPECT_EQ(chip.faults, std::nullopt);
  EXPECT_EQ(chip.faults_error, turns_.stuck);
  EXPECT_EQ(chip.network, NetworkHealth::kUnknown);
  EXPECT_EQ(chip.partitioning, last.chips[1].partitioning);

  gate.Open();
  hanging.join();
  EXPECT_EQ(turns_.held(), 0u);
  Inventory expected = last;
  expected.chips[2].faults = next.inventory.chips[2].faults;
  EXPECT_EQ(Run(next.inventory).inventory, expected);
}

class CardListTest : public DiscoveryFaultsTest {
 protected:
  // A look during which the list of card 1 does not return.
  Look::Result RunWithHangingList(const Inventory& before) {
    Gate gate;
    dcmi_.Before([&gate](absl::string_view method, dcmi::ChipAddress chip) {
      if (method == "Units" && chip.card == 1) gate.Pass();
      return absl::OkStatus();
    });
    const std::shared_ptr<Look> look = Begin(before);
    std::thread hanging([look] {
      while (look->Step()) {
      }
    });
    gate.WaitForSomebody();
    while (look->Step()) {
    }
    Look::Result result = look->Finish();
    // In the next one only the card's first chip is left out.
    if (!before.chips.empty()) {
      EXPECT_THAT(Run(before).read, ElementsAre(0, 2, 8));
    }
    gate.Open();
    hanging.join();
    dcmi_.Before(nullptr);
    return result;
  }
};

TEST_F(CardListTest, ACardWhoseListHangsIsAsItWas) {
  dcmi_.Edit([](auto& chips) { chips[{1, 1}].physical_id = 8; });
  const Inventory last = Run().inventory;
  ASSERT_THAT(last.chips, SizeIs(4));
  const Look::Result result = RunWithHangingList(last);
  EXPECT_THAT(result.read, ElementsAre(0, 2));
  EXPECT_EQ(result.inventory.chips, last.chips);
}

TEST_F(CardListTest, ACardThatWasNeverListedIsNotOffered) {
  const Look::Result result = RunWithHangingList({});
  EXPECT_THAT(result.read, ElementsAre(0, 2));
  EXPECT_THAT(result.inventory.chips, SizeIs(2));
  ASSERT_THAT(result.inventory.skipped, SizeIs(1));
  EXPECT_EQ(result.inventory.skipped[0].card_id, 1);
  EXPECT_THAT(Run().read, ElementsAre(0, 1, 2));
}

TEST_F(DiscoveryFaultsTest, ADriverOtherThanThePackageIsAProblem) {
  EXPECT_EQ(Run().inventory.version_problem, "") << "no file";
  Version("Version=2\n");
  EXPECT_EQ(Run().inventory.version_problem, "");
  Version("Version=25.0.rc1\nfoo=bar\n");
  EXPECT_THAT(Run().inventory.version_problem,
              HasSubstr("driver 2 is running, the package on the node is 25.0.rc1: restart"));
}

}  // namespace
}  // namespace ascend::vnpu
