#include "vnpu/agent/inventory_log.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"

namespace ascend::agent {
namespace {

using ::ascend::vnpu::Health;
using ::ascend::vnpu::Inventory;
using ::ascend::vnpu::LibraryState;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class TestClock : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch() + now; }
  absl::Duration Monotonic() const override { return now; }
  absl::Duration now = absl::Hours(1);
};

size_t Lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

class InventoryLogTest : public ::testing::Test {
 protected:
  std::string Note(const Inventory& inventory) {
    ::testing::internal::CaptureStderr();
    log_.Note(inventory);
    return ::testing::internal::GetCapturedStderr();
  }

  static Inventory Ready(std::vector<vnpu::Chip> chips) {
    return {.library = LibraryState::kReady,
            .library_path = "/lib/libdcmi.so",
            .driver_version = "25.5.1",
            .chips = std::move(chips)};
  }

  // Chip 6 with one fault.
  static Inventory WithFault(bool active, uint64_t occurrences) {
    vnpu::Chip chip = {.physical_id = 6};
    chip.faults = {{{.code = 0xE01801,
                     .active = active,
                     .occurrences = occurrences,
                     .severity = vnpu::FaultSeverity::kMajor,
                     .text = "HBM ECC"}}};
    return Ready({chip});
  }
  static Inventory WithoutFaults() {
    vnpu::Chip chip = {.physical_id = 6};
    chip.faults.emplace();
    return Ready({chip});
  }

  TestClock clock_;
  InventoryLog log_{clock_};
};

TEST_F(InventoryLogTest, SaysWhatTheFirstEnumerationFound) {
  EXPECT_THAT(Note(Ready({{.physical_id = 6, .model = "910B3", .health = Health::kOk}})),
              AllOf(HasSubstr("NPU library ready"), HasSubstr("path=/lib/libdcmi.so"),
                    HasSubstr("driverVersion=25.5.1"), HasSubstr("chips=1"),
                    HasSubstr("chip appeared"), HasSubstr("chip=6"), HasSubstr("model=910B3")));
}

TEST_F(InventoryLogTest, TheSameAgainIsNotLogged) {
  Note(Ready({{.physical_id = 6}}));
  EXPECT_THAT(Note(Ready({{.physical_id = 6}})), IsEmpty());
}

TEST_F(InventoryLogTest, SaysWhatHappenedToEachChip) {
  Note(Ready({{.physical_id = 0, .uuid = "A", .health = Health::kOk},
              {.physical_id = 1, .uuid = "B", .health = Health::kOk},
              {.physical_id = 2, .uuid = "C", .health = Health::kOk}}));
  Inventory changed = Ready({{.physical_id = 0, .uuid = "A", .health = Health::kMajor},
                             {.physical_id = 1, .uuid = "X", .health = Health::kOk},
                             {.physical_id = 3, .uuid = "D", .health = Health::kOk}});
  changed.skipped = {{.card_id = 5, .device_id = 0, .reason = "no physical id"}};
  const std::string lines = Note(changed);
  EXPECT_THAT(lines, HasSubstr("msg=\"chip health changed\" chip=0 health=major before=ok"));
  EXPECT_THAT(lines, HasSubstr("msg=\"chip replaced\" chip=1 uuid=X before=B"));
  EXPECT_THAT(lines, HasSubstr("msg=\"chip vanished\" chip=2 uuid=C"));
  EXPECT_THAT(lines, HasSubstr("msg=\"chip appeared\" chip=3"));
  EXPECT_THAT(lines, HasSubstr("msg=\"chip not offered\" card=5 cardDevice=0"));
  EXPECT_THAT(lines, Not(HasSubstr("NPU library")));
  EXPECT_THAT(Note(changed), IsEmpty());
}

TEST_F(InventoryLogTest, AHangIsOneLineNotOneForEachChip) {
  Note(Ready({{.physical_id = 0, .health = Health::kOk}}));
  Inventory hanging = Ready({{.physical_id = 0, .health = Health::kUnknown}});
  hanging.library = LibraryState::kNotResponding;
  hanging.library_message = "no answer";
  const std::string lines = Note(hanging);
  EXPECT_THAT(lines, AllOf(HasSubstr("NPU library not usable"), HasSubstr("error=\"no answer\"")));
  EXPECT_THAT(lines, Not(HasSubstr("chip health")));

  // What changed meanwhile is said when the library is back.
  const std::string back = Note(Ready({{.physical_id = 0, .health = Health::kCritical}}));
  EXPECT_THAT(back, AllOf(HasSubstr("NPU library ready"), HasSubstr("health=critical before=ok")));
}

TEST_F(InventoryLogTest, AnotherReasonIsAnotherLine) {
  Inventory failed = {.library = LibraryState::kFailed, .library_message = "one"};
  EXPECT_THAT(Note(failed), HasSubstr("error=one"));
  EXPECT_THAT(Note(failed), IsEmpty());
  failed.library_message = "two";
  EXPECT_THAT(Note(failed), HasSubstr("error=two"));
}

TEST_F(InventoryLogTest, SaysOnceThatAChipIsStuckAndThatItAnswersAgain) {
  Note(Ready({{.physical_id = 2}, {.physical_id = 6}}));
  const std::string stuck = "dcmi_create_vdevice has not returned for 10 s";
  EXPECT_THAT(Note(Ready({{.physical_id = 2}, {.physical_id = 6, .stuck = stuck}})),
              AllOf(HasSubstr("msg=\"chip stuck\" chip=6"), HasSubstr(stuck)));
  EXPECT_THAT(Note(Ready({{.physical_id = 2}, {.physical_id = 6, .stuck = "the same for 20 s"}})),
              IsEmpty());
  EXPECT_THAT(Note(Ready({{.physical_id = 2}, {.physical_id = 6}})),
              AllOf(HasSubstr("msg=\"chip answers again\" chip=6"), Not(HasSubstr("chip=2"))));
}

TEST_F(InventoryLogTest, SaysOnceThatAFaultCameAndThatItWent) {
  Note(WithoutFaults());
  EXPECT_THAT(Note(WithFault(true, 1)),
              AllOf(HasSubstr("level=warning msg=\"chip fault\" chip=6 code=00E01801"),
                    HasSubstr("text=\"HBM ECC\" severity=major occurrences=1")));
  EXPECT_THAT(Note(WithFault(true, 1)), IsEmpty());
  EXPECT_THAT(Note(WithFault(false, 1)),
              HasSubstr("level=info msg=\"chip fault gone\" chip=6 code=00E01801"));
  EXPECT_THAT(Note(WithFault(false, 1)), IsEmpty());
  EXPECT_THAT(Note(WithoutFaults()), IsEmpty()) << "forgotten after an hour";
  EXPECT_THAT(Note(WithFault(false, 2)), HasSubstr("chip fault came and went"));
}

TEST_F(InventoryLogTest, FaultsThatWereThereBeforeAreSaid) {
  EXPECT_THAT(Note(WithFault(true, 1)), HasSubstr("msg=\"chip fault\""));
}

TEST_F(InventoryLogTest, WhileNobodyKnowsTheFaultsNoneCameOrWent) {
  Note(WithFault(true, 1));
  Inventory unknown = Ready({{.physical_id = 6, .faults_error = "dcmi returned -8005"}});
  EXPECT_THAT(Note(unknown), AllOf(HasSubstr("the faults of a chip are unknown"),
                                   HasSubstr("-8005"), Not(HasSubstr("gone"))));
  EXPECT_THAT(Note(unknown), IsEmpty());
  EXPECT_THAT(Note(WithFault(true, 1)), IsEmpty());
  unknown.chips[0].health = Health::kAbsent;
  EXPECT_THAT(Note(unknown), Not(HasSubstr("the faults"))) << "that it is absent says enough";
}

TEST_F(InventoryLogTest, AFaultThatFlapsHasFewLines) {
  size_t lines = 0;
  for (uint64_t i = 1; i <= 1000; ++i) {
    clock_.now += absl::Milliseconds(50);
    lines += Lines(Note(WithFault(true, i)));
    lines += Lines(Note(WithFault(false, i)));
  }
  EXPECT_GE(lines, 8u);
  EXPECT_LE(lines, 2u + 2 * 12) << "the library's line, the first three, the doublings";
  clock_.now += absl::Minutes(1);
  EXPECT_THAT(Note(WithFault(true, 1001)), HasSubstr("occurrences=1001"));
  EXPECT_THAT(Note(WithFault(false, 1001)), HasSubstr("gone"));
}

TEST_F(InventoryLogTest, SaysThatDriverAndPackageDoNotFitOnce) {
  Inventory inventory = Ready({});
  inventory.version_problem = "driver 1 is running, the package on the node is 2";
  EXPECT_THAT(Note(inventory), HasSubstr("the package on the node is 2"));
  EXPECT_THAT(Note(inventory), IsEmpty());
  EXPECT_THAT(Note(Ready({})), HasSubstr("fit together"));
}

TEST_F(InventoryLogTest, SaysThatANetworkIsDown) {
  Note(Ready({{.physical_id = 6}}));
  EXPECT_THAT(Note(Ready({{.physical_id = 6, .network = vnpu::NetworkHealth::kOk}})),
              HasSubstr("network=ok"));
  EXPECT_THAT(Note(Ready({{.physical_id = 6, .network = vnpu::NetworkHealth::kDown}})),
              HasSubstr("level=warning msg=\"chip network changed\" chip=6 network=down"));
}

}  // namespace
}  // namespace ascend::agent
