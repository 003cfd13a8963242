#include "vnpu/dcmi/mock/edit.h"

#include <thread>

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "vnpu/dcmi/mock/node.h"
#include "vnpu/dcmi/mock/test_node.h"

namespace ascend::dcmi::mock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string TextOf(const TestNode& node) { return *ReadFile(NodeFile(node.directory())); }

Node Parsed(const TestNode& node) {
  Node parsed;
  std::string error;
  EXPECT_TRUE(ParseNode(TextOf(node), &parsed, &error)) << error;
  return parsed;
}

TEST(EditTest, SetsKeysOfAChip) {
  TestNode node("8x910B3");
  ASSERT_THAT(SetOnChip(node.directory(), 3,
                        {"present=false", "health=absent", "errorCodes=[1,2]", "serial=X=1",
                         "memory.usedMiB=9", "roce=null", "superPod.id=4"}),
              IsOk());
  const Node parsed = Parsed(node);
  const Chip& chip = parsed.chips[3];
  EXPECT_FALSE(chip.present);
  EXPECT_EQ(chip.health, 0xFFFFFFFFu);
  EXPECT_THAT(chip.error_codes, ElementsAre(1u, 2u));
  EXPECT_EQ(chip.serial, "X=1");
  EXPECT_EQ(chip.memory.used_mib, 9u);
  EXPECT_EQ(chip.memory.total_mib, 65536u);
  EXPECT_FALSE(chip.roce.has_value());
  EXPECT_EQ(chip.super_pod->id, 4u);
  EXPECT_TRUE(parsed.chips[2].present);
}

TEST(EditTest, RefusesWhatTheLibraryWouldNotTake) {
  TestNode node("8x910B3");
  const std::string before = TextOf(node);
  EXPECT_THAT(SetOnChip(node.directory(), 3, {"presnt=false"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("presnt")));
  EXPECT_THAT(SetOnChip(node.directory(), 3, {"present=maybe"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("present")));
  EXPECT_THAT(SetOnChip(node.directory(), 3, {"present"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("key=value")));
  EXPECT_THAT(SetOnChip(node.directory(), 3, {"health.grade=3"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("health.grade")));
  EXPECT_THAT(SetOnChip(node.directory(), 8, {"present=false"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("8")));
  EXPECT_THAT(SetCall(node.directory(), {.function = "dcmi_explode", .crash = true}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("dcmi_explode")));
  EXPECT_EQ(TextOf(node), before);
  EXPECT_THAT(SetOnChip("/nonexistent", 3, {"present=false"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nonexistent")));
  node.Write("broken");
  EXPECT_THAT(SetOnChip(node.directory(), 3, {"present=false"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("node.json")));
}

TEST(EditTest, PutsProcessesOnAChipAndTakesThemOff) {
  TestNode node("8x910B3");
  const auto processes = [&node](int chip) {
    std::vector<std::pair<int, int64_t>> found;
    const Node parsed = Parsed(node);
    for (const Process& process : parsed.chips[chip].processes) {
      found.emplace_back(process.pid, static_cast<int64_t>(process.memory_bytes));
    }
    return found;
  };
  ASSERT_THAT(SetProcess(node.directory(), 2, 4242, int64_t{5} << 30), IsOk());
  ASSERT_THAT(SetProcess(node.directory(), 2, 17, 0), IsOk());
  ASSERT_THAT(SetProcess(node.directory(), 2, 4242, 8), IsOk());
  EXPECT_THAT(processes(2), ElementsAre(std::pair(4242, 8), std::pair(17, 0)));
  EXPECT_THAT(processes(3), ElementsAre());
  ASSERT_THAT(RemoveProcess(node.directory(), 2, 4242), IsOk());
  EXPECT_THAT(processes(2), ElementsAre(std::pair(17, 0)));
  EXPECT_THAT(RemoveProcess(node.directory(), 2, 4242),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("4242")));
  EXPECT_THAT(SetProcess(node.directory(), 8, 1, 0),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("8")));
  EXPECT_THAT(SetProcess(node.directory(), 2, 1, -1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("memoryBytes")));
  EXPECT_THAT(processes(2), ElementsAre(std::pair(17, 0)));
  ASSERT_THAT(ClearProcesses(node.directory(), 2), IsOk());
  EXPECT_THAT(processes(2), ElementsAre());
  ASSERT_THAT(ClearProcesses(node.directory(), 2), IsOk());
}

TEST(EditTest, KeepsOneBehaviourPerFilter) {
  TestNode node("8x910B3");
  const std::string name = "dcmi_get_device_health";
  ASSERT_THAT(SetCall(node.directory(), {.function = name, .delay_ms = 5}), IsOk());
  ASSERT_THAT(SetCall(node.directory(), {.function = name, .card = 2, .return_code = -8005}),
              IsOk());
  ASSERT_THAT(SetCall(node.directory(), {.function = name, .card = 2, .return_code = -8006}),
              IsOk());
  Node parsed = Parsed(node);
  ASSERT_THAT(parsed.calls[name], SizeIs(2));
  EXPECT_EQ(parsed.calls[name][0].return_code, -8006);
  EXPECT_EQ(parsed.calls[name][1].delay_ms, 5);
  ASSERT_THAT(SetCall(node.directory(), {.function = name, .card = 2}), IsOk());
  ASSERT_THAT(SetCall(node.directory(), {.function = name}), IsOk());
  EXPECT_TRUE(Parsed(node).calls.empty());
}

TEST(EditTest, TellsBeforeFromAfterTheWork) {
  TestNode node("8x910B3");
  const std::string name = "dcmi_create_vdevice";
  ASSERT_THAT(
      SetCall(node.directory(), {.function = name, .return_code = -8005, .after_work = true}),
      IsOk());
  EXPECT_TRUE(Parsed(node).calls[name][0].after_work);
  ASSERT_THAT(SetCall(node.directory(), {.function = name, .hang = true}), IsOk());
  EXPECT_FALSE(Parsed(node).calls[name][0].after_work);
}

TEST(EditTest, ConcurrentEditorsLoseNothing) {
  TestNode node("8x910B3");
  std::vector<std::thread> editors;
  editors.reserve(8);
  for (int chip = 0; chip < 8; ++chip) {
    editors.emplace_back(
        [&node, chip] { EXPECT_THAT(SetOnChip(node.directory(), chip, {"health=2"}), IsOk()); });
  }
  for (std::thread& editor : editors) editor.join();
  for (const Chip& chip : Parsed(node).chips) EXPECT_EQ(chip.health, 2u);
}

}  // namespace
}  // namespace ascend::dcmi::mock
