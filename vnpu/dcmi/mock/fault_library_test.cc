// Faults, events and resets: the wrapper on the mock library, and what ascend-mock-node does to it.

#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "vnpu/dcmi/library.h"
#include "vnpu/dcmi/mock/fault_edit.h"
#include "vnpu/dcmi/mock/test_node.h"
#include "vnpu/dcmi/mock/vnpu_edit.h"

namespace ascend::dcmi::mock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr unsigned kEcc = 0x80E01801;

// What the subscriber heard. Outlives the test's library, whose threads never end.
class Heard {
 public:
  void operator()(const FaultEvent& event) {
    MutexLock lock(&mutex_);
    thread_ = std::this_thread::get_id();
    events_.push_back(event);
    changed_.SignalAll();
  }
  // Waits for as many; the test's own time limit ends it else.
  std::vector<FaultEvent> Wait(size_t count) {
    MutexLock lock(&mutex_);
    while (events_.size() < count) changed_.Wait(&mutex_);
    return events_;
  }
  std::thread::id thread() {
    MutexLock lock(&mutex_);
    return thread_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<FaultEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::thread::id thread_ ABSL_GUARDED_BY(mutex_);
};

class FaultLibraryTest : public ::testing::Test {
 protected:
  void TearDown() override {
    if (library_ == nullptr) return;
    EXPECT_THAT(library_->SubscribeFaults(nullptr), IsOk());
  }
  Library& Open(const char* shipped, const std::vector<std::string>& hidden = {}) {
    node_.emplace(shipped);
    auto library = Library::Open({TestNode::CopyLibrary(directory_.path(), hidden)});
    EXPECT_THAT(library, IsOk());
    library_ = *std::move(library);
    EXPECT_THAT(library_->Initialise(), IsOk());
    return *library_;
  }
  const std::string& node() const { return node_->directory(); }
  void Subscribe() {
    ASSERT_THAT(
        library_->SubscribeFaults([heard = heard_](const FaultEvent& event) { (*heard)(event); }),
        IsOk());
  }
  void Add(int chip, const FaultWish& wish) { ASSERT_THAT(AddFault(node(), chip, wish), IsOk()); }
  // Until the chip has started; the test's own time limit ends it else.
  void WaitForBoot(ChipAddress chip) {
    for (;;) {
      const auto state = library_->BootState(chip);
      ASSERT_THAT(state, IsOk());
      if (*state == kBootFinished) return;
      std::this_thread::yield();
    }
  }

  TempDir directory_;
  std::optional<TestNode> node_;
  std::unique_ptr<Library> library_;
  const std::shared_ptr<Heard> heard_ = std::make_shared<Heard>();
};

TEST_F(FaultLibraryTest, ListsTheCodesAndGradesTheChip) {
  Library& library = Open("8x910B3");
  const ChipAddress chip{3, 0};
  EXPECT_THAT(library.FaultCodes(chip), IsOkAndHolds(IsEmpty()));
  node_->Set(3, {"errorCodes=[5]"});
  Add(3, {.code = kEcc, .severity = "minor", .text = "HBM multi-bit ECC"});
  EXPECT_THAT(library.FaultCodes(chip), IsOkAndHolds(ElementsAre(5u, kEcc)));
  EXPECT_THAT(library.Health(chip), IsOkAndHolds(HealthGrade::kMinor));
  Add(3, {.code = 9, .severity = "critical", .listed = false});
  EXPECT_THAT(library.FaultCodes(chip), IsOkAndHolds(ElementsAre(5u, kEcc)));
  EXPECT_THAT(library.Health(chip), IsOkAndHolds(HealthGrade::kCritical));
  EXPECT_THAT(library.Health({2, 0}), IsOkAndHolds(HealthGrade::kOk));
  EXPECT_THAT(library.FaultText(chip, kEcc), IsOkAndHolds("HBM multi-bit ECC"));
  EXPECT_THAT(library.FaultText(chip, 0x1234), IsOkAndHolds(HasSubstr("00001234")));
  node_->Set(3, {"healthIsFixed=true"});
  EXPECT_THAT(library.Health(chip), IsOkAndHolds(HealthGrade::kOk));
  node_->Set(3, {"healthIsFixed=false"});
  ASSERT_THAT(ClearFaults(node(), 3, std::nullopt, true), IsOk());
  EXPECT_THAT(library.FaultCodes(chip), IsOkAndHolds(ElementsAre(5u)));
  EXPECT_THAT(library.Health(chip), IsOkAndHolds(HealthGrade::kOk));
}

TEST_F(FaultLibraryTest, TextsAreAscii) {
  Library& library = Open("8x910B3");
  Add(3, {.code = 1, .text = "K\xc3\xbchlung\nfail"});
  EXPECT_THAT(library.FaultText({3, 0}, 1), IsOkAndHolds("K??hlung fail"));
}

TEST_F(FaultLibraryTest, TellsWhatIsWrong) {
  Library& library = Open("8x910B3");
  EXPECT_THAT(library.FaultCodes({30, 0}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(library.FaultText({3, 0}, 0x110001024),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("110001024")));
  ASSERT_THAT(WriteFileAtomically(FaultsFile(node()), "{", {.durable = false}),
              StatusIs(absl::StatusCode::kNotFound))
      << "no state yet";
  Add(3, {.code = 1});
  ASSERT_THAT(WriteFileAtomically(FaultsFile(node()), "{", {.durable = false}), IsOk());
  EXPECT_THAT(library.FaultCodes({3, 0}),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("-8005")));
}

TEST_F(FaultLibraryTest, AbsentFunctionsAreNoFaults) {
  Library& library = Open("8x910B3", {"dcmi_get_device_errorcode_v2", "dcmi_subscribe_fault_event",
                                      "dcmi_get_device_errorcode_string", "dcmi_set_device_reset",
                                      "dcmi_get_device_network_health"});
  const ChipAddress chip{3, 0};
  constexpr auto kAbsent = absl::StatusCode::kUnimplemented;
  EXPECT_THAT(library.FaultCodes(chip), StatusIs(kAbsent));
  EXPECT_THAT(library.FaultText(chip, 1), StatusIs(kAbsent));
  EXPECT_THAT(library.SubscribeFaults([](const FaultEvent&) {}), StatusIs(kAbsent));
  EXPECT_THAT(library.Network(chip), StatusIs(kAbsent));
  EXPECT_THAT(library.Reset(chip, ResetChannel::kInband), StatusIs(kAbsent));
}

TEST_F(FaultLibraryTest, FollowsTheNetwork) {
  Library& library = Open("8x910B3");
  const ChipAddress chip{3, 0};
  EXPECT_THAT(library.Network(chip), IsOkAndHolds(NetworkState::kOk));
  ASSERT_THAT(SetNetwork(node(), 3, "down"), IsOk());
  EXPECT_THAT(library.Network(chip), IsOkAndHolds(NetworkState::kDown));
  EXPECT_THAT(library.Network({2, 0}), IsOkAndHolds(NetworkState::kOk));
  ASSERT_THAT(SetNetwork(node(), 3, "untested"), IsOk());
  EXPECT_THAT(library.Network(chip), IsOkAndHolds(NetworkState::kNotTested));
  node_->Set(3, {"networkHealth=7"});
  EXPECT_THAT(library.Network(chip), IsOkAndHolds(NetworkState::kUnknown));
  node_->Set(3, {"roce=null"});
  EXPECT_THAT(library.Network(chip), StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_F(FaultLibraryTest, AHangingNetworkTestHoldsUpNothing) {
  Library& library = Open("8x910B3");
  const ChipAddress chip{3, 0};
  node_->Call({.function = "dcmi_get_device_network_health", .physical_id = 3, .hang = true});
  const ReadWatch watch(node());
  auto network = std::async(std::launch::async, [&] { return library.Network(chip); });
  watch.Wait();  // it is inside
  EXPECT_THAT(library.Health(chip), IsOkAndHolds(HealthGrade::kOk));
  EXPECT_THAT(library.FaultCodes(chip), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(library.Network({2, 0}), IsOkAndHolds(NetworkState::kOk));
  ASSERT_THAT(ClearCalls(node()), IsOk());
  EXPECT_THAT(network.get(), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(FaultLibraryTest, TellsOfEventsOnAThreadOfItsOwn) {
  Open("8x910B3");
  Add(5, {.code = 1});  // no history
  Subscribe();
  const absl::Time before = absl::Now() - absl::Milliseconds(1);
  Add(3, {.code = kEcc, .severity = "critical", .text = "HBM", .additional = "bank 1"});
  ASSERT_THAT(TellOneShot(node(), 4, {.code = 0x8C2FA009, .severity = "warning"}), IsOk());
  ASSERT_THAT(ClearFaults(node(), 3, kEcc, true), IsOk());
  const std::vector<FaultEvent> events = heard_->Wait(3);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_NE(heard_->thread(), std::this_thread::get_id());
  EXPECT_EQ(events[0].logic_id, 3);
  EXPECT_EQ(events[0].code, kEcc);
  EXPECT_EQ(events[0].severity, FaultSeverity::kCritical);
  EXPECT_EQ(events[0].assertion, FaultAssertion::kOccurred);
  EXPECT_EQ(events[0].name, "HBM");
  EXPECT_EQ(events[0].additional, "bank 1");
  EXPECT_GE(events[0].raised, before);
  EXPECT_LE(events[0].raised, absl::Now());
  EXPECT_EQ(events[1].logic_id, 4);
  EXPECT_EQ(events[1].assertion, FaultAssertion::kOneShot);
  EXPECT_EQ(events[1].severity, FaultSeverity::kWarning);
  EXPECT_EQ(events[2].assertion, FaultAssertion::kRecovered);
  EXPECT_EQ(events[2].raised, events[0].raised);
  EXPECT_EQ(events[2].serial, events[0].serial);
}

TEST_F(FaultLibraryTest, NoFlapIsMissed) {
  Open("8x910B3");
  Subscribe();
  constexpr int kFlaps = 100;
  for (int i = 0; i < kFlaps; ++i) {
    Add(3, {.code = kEcc});
    ASSERT_THAT(ClearFaults(node(), 3, kEcc, true), IsOk());
  }
  const std::vector<FaultEvent> events = heard_->Wait(2 * kFlaps);
  for (int i = 0; i < 2 * kFlaps; ++i) {
    EXPECT_EQ(events[i].assertion,
              i % 2 == 0 ? FaultAssertion::kOccurred : FaultAssertion::kRecovered);
  }
}

TEST_F(FaultLibraryTest, EventsGetLostAsTheNodeSays) {
  Library& library = Open("8x910B3");
  Subscribe();
  ASSERT_THAT(SetEventBehaviour(node(), {"recovered"}, 0), IsOk());
  Add(3, {.code = 1});
  ASSERT_THAT(ClearFaults(node(), 3, 1, true), IsOk());
  Add(3, {.code = 2, .event = false});
  Add(3, {.code = 3});
  const std::vector<FaultEvent> events = heard_->Wait(2);
  EXPECT_EQ(events[0].code, 1u);
  EXPECT_EQ(events[1].code, 3u);
  EXPECT_THAT(library.FaultCodes({3, 0}), IsOkAndHolds(ElementsAre(2u, 3u)));
}

TEST_F(FaultLibraryTest, ALaterHandlerReplacesTheFirst) {
  Library& library = Open("8x910B3");
  Subscribe();
  Add(3, {.code = 1});
  heard_->Wait(1);
  const auto later = std::make_shared<Heard>();
  ASSERT_THAT(library.SubscribeFaults([later](const FaultEvent& event) { (*later)(event); }),
              IsOk());
  Add(3, {.code = 2});
  EXPECT_EQ(later->Wait(1)[0].code, 2u);
  ASSERT_THAT(library.SubscribeFaults(nullptr), IsOk());
  Add(3, {.code = 3});
  Subscribe();
  Add(3, {.code = 4});
  const std::vector<FaultEvent> events = heard_->Wait(2);
  // Code 3 may have come after the handler was back, or not at all.
  EXPECT_THAT(events[1].code, ::testing::AnyOf(3u, 4u));
}

TEST_F(FaultLibraryTest, ASubscriptionThatFailsMayBeTriedAgain) {
  Library& library = Open("8x910B3");
  // What the 65th process of a host gets; which code that is on hardware is uncertain.
  node_->Call({.function = "dcmi_subscribe_fault_event", .return_code = -8020});
  EXPECT_THAT(library.SubscribeFaults([](const FaultEvent&) { FAIL(); }),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("-8020")));
  ASSERT_THAT(ClearCalls(node()), IsOk());
  Subscribe();
  Add(3, {.code = 1});
  EXPECT_EQ(heard_->Wait(1)[0].code, 1u);
}

TEST_F(FaultLibraryTest, OldProductsTellOfNoEvents) {
  Library& library = Open("2x300I-sparse");
  node_->Edit([](nlohmann::json& node) { node["family"] = "310"; });
  EXPECT_THAT(library.SubscribeFaults([](const FaultEvent&) {}),
              StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_F(FaultLibraryTest, TheSecondGenerationTellsAsWell) {
  Library& library = Open("1x950PR");
  Subscribe();
  Add(0, {.code = kEcc});
  EXPECT_EQ(heard_->Wait(1)[0].code, kEcc);
  EXPECT_THAT(library.FaultCodes({0, 0}), IsOkAndHolds(ElementsAre(kEcc)));
  constexpr auto kAbsent = absl::StatusCode::kUnimplemented;
  EXPECT_THAT(library.FaultText({0, 0}, kEcc), StatusIs(kAbsent));
  EXPECT_THAT(library.Network({0, 0}), StatusIs(kAbsent));
  EXPECT_THAT(library.HasOutbandChannel({0, 0}), StatusIs(kAbsent));
  ASSERT_THAT(SetResetBehaviour(node(), {.duration_ms = 50}), IsOk());
  ASSERT_THAT(library.PrepareReset({0, 0}), IsOk());
  ASSERT_THAT(library.Reset({0, 0}, ResetChannel::kOutband), IsOk());
  ASSERT_THAT(library.Rescan({0, 0}), IsOk());
  WaitForBoot({0, 0});
  EXPECT_THAT(library.FaultCodes({0, 0}), IsOkAndHolds(IsEmpty()));
}

TEST_F(FaultLibraryTest, AResetTakesTheGroupDownAndMendsIt) {
  Library& library = Open("16xA3");
  ASSERT_THAT(SetResetBehaviour(node(), {.duration_ms = 300000}), IsOk());
  Add(0, {.code = kEcc});
  Add(0, {.code = 2, .survives_reset = true});
  Add(3, {.code = 3});
  Add(4, {.code = 4});
  Subscribe();
  ASSERT_THAT(library.Reset({0, 0}, ResetChannel::kInband), IsOk());
  for (const ChipAddress chip : {ChipAddress{0, 0}, {0, 1}, {1, 0}, {1, 1}}) {
    EXPECT_THAT(library.BootState(chip), IsOkAndHolds(0));
    EXPECT_THAT(library.Health(chip), IsOkAndHolds(HealthGrade::kAbsent));
    EXPECT_THAT(library.FaultCodes(chip), StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_THAT(library.PhysicalId(chip), IsOk());
  }
  EXPECT_THAT(library.BootState({2, 0}), IsOkAndHolds(kBootFinished));
  EXPECT_THAT(library.FaultCodes({2, 0}), IsOkAndHolds(ElementsAre(4u)));
  const std::vector<FaultEvent> events = heard_->Wait(2);
  EXPECT_EQ(events[0].assertion, FaultAssertion::kRecovered);
  EXPECT_EQ(events[0].code, kEcc);
  EXPECT_EQ(events[1].logic_id, 3);
  // Again, and this time it ends.
  ASSERT_THAT(SetResetBehaviour(node(), {.duration_ms = 20}), IsOk());
  ASSERT_THAT(library.Reset({1, 1}, ResetChannel::kInband), IsOk());
  WaitForBoot({0, 0});
  EXPECT_THAT(library.FaultCodes({0, 0}), IsOkAndHolds(ElementsAre(2u)));
  EXPECT_THAT(library.FaultCodes({1, 1}), IsOkAndHolds(IsEmpty()));
}

TEST_F(FaultLibraryTest, AResetIsRefusedWhileAMemberIsBusy) {
  Library& library = Open("8x910B3");
  ASSERT_THAT(SetProcess(node(), 7, 4711, 1), IsOk());
  EXPECT_THAT(library.Reset({0, 0}, ResetChannel::kInband),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("-8013")));
  EXPECT_THAT(library.BootState({0, 0}), IsOkAndHolds(kBootFinished));
  ASSERT_THAT(ClearProcesses(node(), 7), IsOk());
  const auto vnpu = AddVnpu(node(), 2, {.template_name = "vir05_1c_16g"});
  ASSERT_THAT(vnpu, IsOk());
  ASSERT_THAT(SetOnVnpu(node(), *vnpu, {"busy=true"}), IsOk());
  EXPECT_THAT(library.Reset({0, 0}, ResetChannel::kInband),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_THAT(SetOnVnpu(node(), *vnpu, {"busy=false"}), IsOk());
  EXPECT_THAT(library.Reset({0, 0}, ResetChannel::kInband), IsOk());
}

TEST_F(FaultLibraryTest, AResetMayFailStopOrHang) {
  Library& library = Open("4x310P3");
  const ChipAddress chip = {library.Cards()->front(), 0};
  node_->Call({.function = "dcmi_set_device_reset", .return_code = -8015});
  EXPECT_THAT(library.Reset(chip, ResetChannel::kInband),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("RESET_FAIL")));
  EXPECT_THAT(library.BootState(chip), IsOkAndHolds(kBootFinished));
  node_->Call({.function = "dcmi_set_device_reset", .hang = true});
  const ReadWatch watch(node());
  auto hanging =
      std::async(std::launch::async, [&] { return library.Reset(chip, ResetChannel::kInband); });
  watch.Wait();
  ASSERT_THAT(ClearCalls(node()), IsOk());
  EXPECT_THAT(hanging.get(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  ASSERT_THAT(SetResetBehaviour(node(), {.duration_ms = 1, .stops_at = 0}), IsOk());
  ASSERT_THAT(library.Reset(chip, ResetChannel::kInband), IsOk());
  EXPECT_THAT(library.BootState(chip), IsOkAndHolds(0));
  EXPECT_THAT(library.Health(chip), IsOkAndHolds(HealthGrade::kAbsent));
}

TEST_F(FaultLibraryTest, OutOfBandReachesAChipThatDropped) {
  Library& library = Open("8x910B3");
  const ChipAddress chip{3, 0};
  ASSERT_THAT(SetResetBehaviour(node(), {.unit = "chip", .duration_ms = 1}), IsOk());
  ASSERT_THAT(LoseChip(node(), 3, /*still_listed=*/true, true), IsOk());
  EXPECT_THAT(library.Cards(), IsOkAndHolds(::testing::SizeIs(8)));
  EXPECT_THAT(library.Health(chip), IsOkAndHolds(HealthGrade::kAbsent));
  EXPECT_THAT(library.Chip(chip), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(library.BootState(chip), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(library.Reset(chip, ResetChannel::kInband), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(library.HasOutbandChannel(chip), IsOkAndHolds(true));
  EXPECT_THAT(library.Reset(chip, ResetChannel::kOutband),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("-8015")))
      << "not prepared";
  ASSERT_THAT(library.PrepareReset(chip), IsOk());
  ASSERT_THAT(library.Reset(chip, ResetChannel::kOutband), IsOk());
  EXPECT_THAT(library.BootState(chip), IsOkAndHolds(0)) << "waits for the rescan";
  ASSERT_THAT(library.Rescan(chip), IsOk());
  WaitForBoot(chip);
  EXPECT_THAT(library.Health(chip), IsOkAndHolds(HealthGrade::kOk));
  ASSERT_THAT(SetResetBehaviour(node(), {.outband = false}), IsOk());
  EXPECT_THAT(library.HasOutbandChannel(chip), IsOkAndHolds(false));
  EXPECT_THAT(library.PrepareReset(chip), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(library.Rescan(chip), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(library.Reset(chip, ResetChannel::kOutband),
              StatusIs(absl::StatusCode::kUnimplemented));
}

}  // namespace
}  // namespace ascend::dcmi::mock
