#include "vnpu/dcmi/mock/fault_edit.h"

#include <sstream>

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "vnpu/dcmi/mock/edit_json.h"
#include "vnpu/dcmi/mock/test_node.h"

namespace ascend::dcmi::mock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<FaultNotice> Notices(const TestNode& node) {
  std::istringstream lines(ReadFile(EventsFile(node.directory())).value_or(""));
  std::vector<FaultNotice> notices;
  for (std::string line; std::getline(lines, line);) notices.push_back(ParseNotice(line));
  return notices;
}

FaultState State(const TestNode& node) {
  auto state = FaultsOf(node.directory());
  EXPECT_THAT(state, IsOk());
  return *std::move(state);
}

TEST(FaultEditTest, AFaultComesAndGoes) {
  TestNode node("8x910B3");
  ASSERT_THAT(AddFault(node.directory(), 3,
                       {.code = 0x80E01801, .severity = "critical", .text = "HBM multi-bit ECC"}),
              IsOk());
  FaultState state = State(node);
  ASSERT_THAT(state.faults, SizeIs(1));
  EXPECT_EQ(state.faults[0].severity, 3u);
  EXPECT_EQ(state.faults[0].name, "HBM multi-bit ECC");
  const uint64_t raised = state.faults[0].raised_ms;
  EXPECT_GT(raised, 1600000000000u);
  ASSERT_THAT(ClearFaults(node.directory(), 3, 0x80E01801, true), IsOk());
  EXPECT_THAT(State(node).faults, IsEmpty());
  const auto notices = Notices(node);
  ASSERT_THAT(notices, SizeIs(2));
  EXPECT_EQ(notices[0].assertion, 1u);
  EXPECT_EQ(notices[1].assertion, 0u);
  EXPECT_EQ(notices[1].fault.raised_ms, raised) << "a recovery tells when the fault had come";
  EXPECT_EQ(notices[1].fault.serial, notices[0].fault.serial);
  EXPECT_EQ(notices[1].notify_serial, notices[0].notify_serial + 1);
}

TEST(FaultEditTest, TheSameFaultComesAgainAndEventsGetLost) {
  TestNode node("8x910B3");
  ASSERT_THAT(AddFault(node.directory(), 3, {.code = 7}), IsOk());
  ASSERT_THAT(AddFault(node.directory(), 3, {.code = 7, .severity = "minor", .event = false}),
              IsOk());
  ASSERT_THAT(State(node).faults, SizeIs(1));
  EXPECT_EQ(State(node).faults[0].severity, 1u);
  EXPECT_THAT(Notices(node), SizeIs(1));
  ASSERT_THAT(ClearFaults(node.directory(), 3, std::nullopt, false), IsOk());
  EXPECT_THAT(Notices(node), SizeIs(1));
  ASSERT_THAT(TellOneShot(node.directory(), 3, {.code = 9}), IsOk());
  EXPECT_THAT(State(node).faults, IsEmpty());
  ASSERT_THAT(Notices(node), SizeIs(2));
  EXPECT_EQ(Notices(node)[1].assertion, 2u);
}

TEST(FaultEditTest, ClearsOneOrAllOfAChip) {
  TestNode node("8x910B3");
  for (const unsigned code : {1u, 2u, 3u}) {
    ASSERT_THAT(AddFault(node.directory(), 3, {.code = code}), IsOk());
  }
  ASSERT_THAT(AddFault(node.directory(), 4, {.code = 1}), IsOk());
  ASSERT_THAT(ClearFaults(node.directory(), 3, 2, true), IsOk());
  EXPECT_THAT(State(node).faults, SizeIs(3));
  ASSERT_THAT(ClearFaults(node.directory(), 3, std::nullopt, true), IsOk());
  ASSERT_THAT(State(node).faults, SizeIs(1));
  EXPECT_EQ(State(node).faults[0].physical_id, 4);
}

TEST(FaultEditTest, RefusesWhatCannotBe) {
  TestNode node("8x910B3");
  EXPECT_THAT(AddFault(node.directory(), 77, {.code = 1}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("77")));
  EXPECT_THAT(AddFault(node.directory(), 3, {.code = 1, .severity = "bad"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bad")));
  EXPECT_THAT(ClearFaults(node.directory(), 3, std::nullopt, true),
              StatusIs(absl::StatusCode::kNotFound));
  ASSERT_THAT(AddFault(node.directory(), 3, {.code = 1}), IsOk());
  EXPECT_THAT(ClearFaults(node.directory(), 3, 2, true), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(SetNetwork(node.directory(), 3, "slow"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(SetResetBehaviour(node.directory(), {.unit = "rack"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("modulePair")));
  EXPECT_THAT(SetResetBehaviour(node.directory(), {.stops_at = 16}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("stopsAt")));
  EXPECT_THAT(SetResetBehaviour(node.directory(), {.duration_ms = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("durationMs")));
  EXPECT_THAT(SetEventBehaviour(node.directory(), {"all"}, 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("oneShot")));
  EXPECT_THAT(SetEventBehaviour(node.directory(), {}, -1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("delayMs")));
  ASSERT_THAT(WriteFileAtomically(FaultsFile(node.directory()), "{", {.durable = false}), IsOk());
  EXPECT_THAT(AddFault(node.directory(), 3, {.code = 1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("faults.json")));
  EXPECT_THAT(FaultsOf(node.directory()), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FaultEditTest, ReadsCodes) {
  EXPECT_THAT(ParseFaultCode("80E01801"), IsOkAndHolds(0x80E01801u));
  EXPECT_THAT(ParseFaultCode("0x80e01801"), IsOkAndHolds(0x80E01801u));
  for (const char* text : {"", "0x", "hbm", "110001024", "80E01801 ?", "-1"}) {
    EXPECT_THAT(ParseFaultCode(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(FaultEditTest, AChipDropsAndReturnsElsewhere) {
  TestNode node("8x910B3");
  ASSERT_THAT(LoseChip(node.directory(), 3, false, true), IsOk());
  auto parsed = NodeOf(node.directory());
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(parsed->Visible().size(), 7u);
  ASSERT_THAT(Notices(node), SizeIs(1));
  EXPECT_EQ(Notices(node)[0].logic_id, 3) << "the one that it had";
  EXPECT_EQ(Notices(node)[0].fault.code, kChipDropped);
  ASSERT_THAT(ReturnChip(node.directory(), 3, {.bus_id = "0000:7f:00.0", .logic_id = 7}), IsOk());
  parsed = NodeOf(node.directory());
  ASSERT_THAT(parsed, IsOk());
  ASSERT_EQ(parsed->Visible().size(), 8u);
  EXPECT_EQ(parsed->Visible()[7]->physical_id, 3);
  EXPECT_EQ(parsed->Visible()[7]->pci.BusId(), "0000:7f:00.0");
  EXPECT_EQ(parsed->Visible()[3]->physical_id, 4);
  EXPECT_THAT(State(node).faults, IsEmpty());
  ASSERT_THAT(Notices(node), SizeIs(2));
  EXPECT_EQ(Notices(node)[1].assertion, 0u);
  EXPECT_EQ(Notices(node)[1].logic_id, 7);
  // Back to where it was; a chip that was never gone may move as well.
  ASSERT_THAT(ReturnChip(node.directory(), 3, {.logic_id = 3}), IsOk());
  EXPECT_EQ(NodeOf(node.directory())->Visible()[3]->physical_id, 3);
  EXPECT_THAT(ReturnChip(node.directory(), 3, {.logic_id = 8}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("8")));
  EXPECT_THAT(ReturnChip(node.directory(), 9, {}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ReturnChip(node.directory(), 3, {.bus_id = "here"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FaultEditTest, SetsHowResetsAndEventsGo) {
  TestNode node("16xA3");
  ASSERT_THAT(
      SetResetBehaviour(node.directory(),
                        {.unit = "module", .duration_ms = 20, .stops_at = 2, .outband = false}),
      IsOk());
  ASSERT_THAT(SetEventBehaviour(node.directory(), {"occurred", "oneShot"}, 30), IsOk());
  auto parsed = NodeOf(node.directory());
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(parsed->reset.unit, ResetUnit::kModule);
  EXPECT_EQ(parsed->reset.duration_ms, 20);
  EXPECT_EQ(parsed->reset.stops_at, 2);
  EXPECT_FALSE(parsed->reset.outband);
  EXPECT_TRUE(parsed->events.lose_occurred);
  EXPECT_FALSE(parsed->events.lose_recovered);
  EXPECT_TRUE(parsed->events.lose_one_shot);
  EXPECT_EQ(parsed->events.delay_ms, 30);
  // What is not named stays.
  ASSERT_THAT(SetResetBehaviour(node.directory(), {.unit = "product", .stops_at = -1}), IsOk());
  parsed = NodeOf(node.directory());
  EXPECT_FALSE(parsed->reset.unit.has_value());
  EXPECT_FALSE(parsed->reset.stops_at.has_value());
  EXPECT_EQ(parsed->reset.duration_ms, 20);
}

}  // namespace
}  // namespace ascend::dcmi::mock
