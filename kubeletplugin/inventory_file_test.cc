#include "kubeletplugin/inventory_file.h"

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

vnpu::Inventory Example() {
  vnpu::Inventory inventory;
  inventory.revision = 3;
  inventory.library = vnpu::LibraryState::kReady;
  vnpu::Chip chip;
  chip.physical_id = 5;
  chip.family = vnpu::Family::k910B;
  chip.numa_node = 1;
  chip.faults = {{.code = 0x110001024, .occurrences = uint64_t{1} << 60, .text = "UBOE port"}};
  inventory.chips = {chip};
  return inventory;
}

TEST(InventoryFileTest, RoundTripWithinABoot) {
  TempDir dir;
  ASSERT_THAT(WriteInventoryFile(dir.File("i"), "boot-1", Example()), IsOk());
  EXPECT_THAT(ReadInventoryFile(dir.File("i"), "boot-1"), IsOkAndHolds(Example()));
  EXPECT_THAT(ReadInventoryFile(dir.File("i"), "boot-2"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ReadInventoryFile(dir.File("i"), "boot-"), StatusIs(absl::StatusCode::kNotFound));
}

TEST(InventoryFileTest, MissingAndDamagedFilesAreTold) {
  TempDir dir;
  EXPECT_THAT(ReadInventoryFile(dir.File("i"), "b"), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_THAT(WriteFileAtomically(dir.File("i"), "bootID b\n{\"chips\":"), IsOk());
  EXPECT_THAT(ReadInventoryFile(dir.File("i"), "b"), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace ascend::kubeletplugin
