#include "vnpu/agent/inventory_log.h"

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

  InventoryLog log_;
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

}  // namespace
}  // namespace ascend::agent
