#include "vnpu/agent/reset_calls.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "base/runtime/clock.h"
#include "gmock/gmock.h"
#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/status.h"
#include "vnpu/fake_dcmi.h"

namespace ascend::agent {
namespace {

using ::ascend::vnpu::FakeDcmi;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr absl::Duration kLong = absl::Seconds(30);

vnpu::Inventory Ready(int chips) {
  vnpu::Inventory inventory = {.library = vnpu::LibraryState::kReady};
  for (int i = 0; i < chips; ++i) {
    inventory.chips.push_back({.physical_id = i,
                               .card_id = i,
                               .device_id = 0,
                               .uuid = absl::StrCat("uuid-", i),
                               .health = vnpu::Health::kMajor});
  }
  return inventory;
}

// An answer to wait for.
class Result {
 public:
  ResetCall::Done Done() {
    return [this](const ResetCall::Answer& answer) {
      MutexLock lock(&mutex_);
      EXPECT_FALSE(answer_.has_value()) << "answered twice";
      answer_ = answer;
      changed_.SignalAll();
    };
  }
  ResetCall::Answer Wait() {
    const absl::Duration end = Clock::Real().Monotonic() + kLong;
    MutexLock lock(&mutex_);
    while (!answer_.has_value()) {
      const absl::Duration left = end - Clock::Real().Monotonic();
      if (left <= absl::ZeroDuration()) return absl::InternalError("the test waited for too long");
      changed_.WaitFor(&mutex_, left);
    }
    return *answer_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::optional<ResetCall::Answer> answer_ ABSL_GUARDED_BY(mutex_);
};

// Lets a call of the library hang until the test says so.
class Hang {
 public:
  void Reached() {
    MutexLock lock(&mutex_);
    reached_ = true;
    changed_.SignalAll();
    while (!open_) changed_.Wait(&mutex_);
  }
  void WaitUntilReached() {
    MutexLock lock(&mutex_);
    while (!reached_) changed_.Wait(&mutex_);
  }
  void End() {
    MutexLock lock(&mutex_);
    open_ = true;
    changed_.SignalAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool reached_ ABSL_GUARDED_BY(mutex_) = false;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
};

class ResetCallsTest : public ::testing::Test {
 protected:
  ResetCallsTest() {
    feed_.Publish(Ready(4));
    resets_.SetLibrary(dcmi_);
    resets_.SetListener([this] {
      MutexLock lock(&mutex_);
      ++changes_;
    });
  }
  ~ResetCallsTest() override {
    resets_.Close("the test ends");
    EXPECT_TRUE(resets_.Stop(kLong));
  }

  static ResetRequest Request(std::vector<int> group = {0, 1, 2, 3}) {
    ResetRequest request = {.physical_id = 2, .group = {}, .boot_wait = kLong};
    for (const int id : group) {
      request.group.push_back({.physical_id = id, .uuid = absl::StrCat("uuid-", id)});
    }
    return request;
  }
  ResetCall::Answer Reset(ResetRequest request = Request()) {
    Result result;
    resets_.Start(std::make_shared<ResetCall>(std::move(request), result.Done()));
    return result.Wait();
  }
  void EditChip(int id, const std::function<void(FakeDcmi::FakeChip&)>& edit) {
    dcmi_->Edit([&](auto& chips) { edit(chips.at({id, 0})); });
  }
  // Nothing that changes a chip was called.
  void ExpectUntouched() {
    EXPECT_THAT(dcmi_->calls(), Each(Not(AnyOfThese())));
    EXPECT_EQ(turns_->Doing({2, 0}), "") << "the turns are given back";
  }
  static ::testing::Matcher<std::string> AnyOfThese() {
    return ::testing::AnyOf(StartsWith("Reset"), StartsWith("PrepareReset"), StartsWith("Rescan"));
  }
  std::vector<std::string> Changing() {
    std::vector<std::string> calls;
    for (const std::string& call : dcmi_->calls()) {
      if (absl::StrContains(call, "Res")) {
        calls.push_back(call);
      }
    }
    return calls;
  }
  int changes() {
    MutexLock lock(&mutex_);
    return changes_;
  }
  static auto Refused(const std::string& text) {
    return StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(text));
  }

  Mutex mutex_;
  int changes_ ABSL_GUARDED_BY(mutex_) = 0;
  InventoryFeed feed_{"one"};
  std::shared_ptr<FakeDcmi> dcmi_ = std::make_shared<FakeDcmi>(4);
  std::shared_ptr<ChipTurns> turns_ = std::make_shared<ChipTurns>(absl::Milliseconds(20));
  ResetCalls resets_{{.turn_wait = absl::Milliseconds(50),
                      .settle = absl::Milliseconds(1),
                      .outband_pause = absl::Milliseconds(1),
                      .boot_poll = absl::Milliseconds(1)},
                     &feed_,
                     turns_};
};

TEST_F(ResetCallsTest, OutOfBandWhereThereIsAWay) {
  const ResetCall::Answer answer = Reset();
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(*answer, ElementsAre(ChipReset{0, true, ""}, ChipReset{1, true, ""},
                                   ChipReset{2, true, ""}, ChipReset{3, true, ""}));
  EXPECT_THAT(Changing(), ElementsAre("PrepareReset 2", "Reset outband 2", "Rescan 2"));
  EXPECT_EQ(changes(), 1) << "the reader is woken";
  for (int i = 0; i < 4; ++i) EXPECT_EQ(turns_->Doing({i, 0}), "");
}

TEST_F(ResetCallsTest, ElseInBand) {
  for (const absl::StatusOr<bool>& none :
       {absl::StatusOr<bool>(false), absl::StatusOr<bool>(absl::UnimplementedError("950"))}) {
    dcmi_ = std::make_shared<FakeDcmi>(4);
    resets_.SetLibrary(dcmi_);
    EditChip(2, [&](auto& chip) { chip.outband_channel = none; });
    ASSERT_THAT(Reset(), IsOk());
    EXPECT_THAT(Changing(), ElementsAre("Reset inband 2"));
  }
}

TEST_F(ResetCallsTest, RefusedWhileAnyMemberIsInUse) {
  for (int id = 0; id < 4; ++id) {
    EditChip(id, [](auto& chip) { chip.processes = std::vector<dcmi::ChipProcess>{{.pid = 77}}; });
    EXPECT_THAT(Reset(), Refused(absl::StrCat("chip ", id, " is busy: process 77")));
    // Not knowing is not idle.
    EditChip(id, [](auto& chip) { chip.processes = absl::UnimplementedError("old library"); });
    EXPECT_THAT(Reset(), Refused(absl::StrCat("chip ", id, ": nobody can tell")));
    EditChip(id, [](auto& chip) { chip.processes = std::vector<dcmi::ChipProcess>(); });
    dcmi_->Add(id, {.id = 100, .template_name = "vir05_1c_16g"});
    EXPECT_THAT(Reset(), Refused(absl::StrCat("chip ", id, " is busy: vNPU 100")));
    EditChip(id, [](auto& chip) { chip.vnpus.clear(); });
  }
  ExpectUntouched();
  EXPECT_EQ(changes(), 0);
  EXPECT_THAT(Reset(), IsOk());
}

TEST_F(ResetCallsTest, RefusedWhenAChipIsAnotherOne) {
  ResetRequest request = Request();
  request.group[1].uuid = "another";
  EXPECT_THAT(Reset(request), Refused("chip 1 is uuid-1, not another"));
  EditChip(3, [](auto& chip) { chip.physical_id = 9; });
  EXPECT_THAT(Reset(), Refused("the library has chip 9 in its place"));
  ExpectUntouched();
}

TEST_F(ResetCallsTest, RefusedWhileAnotherCallIsAtAMember) {
  auto turn = turns_->Take({1, 0});
  turn->Calling("dcmi_create_vdevice");
  EXPECT_THAT(Reset(), Refused("chip 1 is busy: "));
  turn.reset();
  ExpectUntouched();
}

TEST_F(ResetCallsTest, AChipThatIsLostOrAbsentHoldsUpNothing) {
  vnpu::Inventory inventory = Ready(3);  // 3 is gone
  inventory.chips[0].health = vnpu::Health::kAbsent;
  feed_.Publish(inventory);
  EditChip(0, [](auto& chip) {
    chip.processes = absl::UnavailableError("-8012");
    chip.boot_state = absl::UnavailableError("-8012");
  });
  ResetRequest request = Request();
  request.boot_wait = absl::Milliseconds(20);
  const ResetCall::Answer answer = Reset(request);
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(*answer, ElementsAre(ChipReset{0, false, "-8012"}, ChipReset{1, true, ""},
                                   ChipReset{2, true, ""},
                                   ChipReset{3, false, "the library does not list it"}));
  inventory.chips.resize(2);
  feed_.Publish(inventory);
  EXPECT_THAT(Reset(request), Refused("the library lists no chip 2"));
}

TEST_F(ResetCallsTest, ARefusalOfTheLibraryIsToldApartFromAFailure) {
  const auto fails = [&](int code) {
    EditChip(2,
             [&](auto& chip) { chip.reset = dcmi::StatusFromCode(code, "dcmi_set_device_reset"); });
    return Reset();
  };
  EXPECT_THAT(fails(DCMI_NOT_SUPPORT_IN_CONTAINER), Refused("busy"));
  EXPECT_THAT(fails(DCMI_RESOURCE_OCCUPIED), Refused("busy"));
  const auto aborted = [](const std::string& text) {
    return StatusIs(absl::StatusCode::kAborted, HasSubstr(text));
  };
  EXPECT_THAT(fails(DCMI_RESET_FAIL), aborted("-8015"));
  EXPECT_THAT(fails(DCMI_OPER_NOT_PERMITTED), aborted("as root"));
  // What was prepared is looked for again after each failure.
  EXPECT_EQ(dcmi_->calls().back(), "Rescan 2");
  EXPECT_EQ(changes(), 4);
}

TEST_F(ResetCallsTest, WaitsForEveryChipUntilItHasStarted) {
  EditChip(1, [](auto& chip) { chip.boot_state = 2; });
  std::atomic<int> looks = 0;
  dcmi_->Before([&](absl::string_view method, FakeDcmi::Address chip) {
    if (method == "BootState" && chip.card == 1 && ++looks == 3) {
      EditChip(1, [](auto& c) { c.boot_state = dcmi::kBootFinished; });
    }
    return absl::OkStatus();
  });
  const ResetCall::Answer answer = Reset();
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(*answer, Each(Field(&ChipReset::started, true)));
  EXPECT_EQ(looks, 3);

  EditChip(1, [](auto& chip) { chip.boot_state = 2; });
  ResetRequest request = Request();
  request.boot_wait = absl::Milliseconds(20);
  const ResetCall::Answer late = Reset(request);
  ASSERT_THAT(late, IsOk());
  EXPECT_THAT((*late)[1].problem, HasSubstr("boot status is 2, not 16"));
  EXPECT_TRUE((*late)[0].started);
}

TEST_F(ResetCallsTest, AResetThatHangsConcernsItsGroupAlone) {
  Hang hang;
  dcmi_->Before([&](absl::string_view method, FakeDcmi::Address /*chip*/) {
    if (method == "Reset outband") hang.Reached();
    return absl::OkStatus();
  });
  Result result;
  const auto call = std::make_shared<ResetCall>(Request({2, 3}), result.Done());
  resets_.Start(call);
  hang.WaitUntilReached();
  EXPECT_TRUE(turns_->TryTake({0, 0})) << "others are read";
  turns_->Release({0, 0});
  for (const int member : {2, 3}) {
    EXPECT_FALSE(turns_->TryTake({member, 0}));
    EXPECT_THAT(turns_->Doing({member, 0}), HasSubstr("dcmi_set_device_reset"));
  }
  // Another reset of a chip of the group is refused, one of other chips is not.
  EXPECT_THAT(Reset(Request({1, 2})), Refused("dcmi_set_device_reset"));
  ResetRequest other = Request({0, 1});
  other.physical_id = 0;
  EditChip(0, [](auto& chip) { chip.outband_channel = false; });
  EXPECT_THAT(Reset(other), IsOk());

  resets_.GiveUp(*call, absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(result.Wait(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("dcmi_set_device_reset"), HasSubstr("it goes on"))));
  resets_.Close("the agent ends");
  EXPECT_FALSE(resets_.Stop(absl::ZeroDuration())) << "still inside the library";
  hang.End();
  EXPECT_TRUE(resets_.Stop(kLong));
}

TEST_F(ResetCallsTest, WhatWasGivenUpBeforeItBeganNeverBegins) {
  Hang hang;
  dcmi_->Before([&](absl::string_view method, FakeDcmi::Address /*chip*/) {
    if (method == "Processes") hang.Reached();
    return absl::OkStatus();
  });
  Result result;
  const auto call = std::make_shared<ResetCall>(Request(), result.Done());
  resets_.Start(call);
  hang.WaitUntilReached();
  resets_.GiveUp(*call, absl::StatusCode::kCancelled);
  EXPECT_THAT(result.Wait(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("nothing was reset")));
  hang.End();
  resets_.Close("the test ends");
  EXPECT_TRUE(resets_.Stop(kLong));
  ExpectUntouched();
}

TEST_F(ResetCallsTest, AnAgentThatEndsWaitsForNoChip) {
  Hang hang;
  dcmi_->Before([&](absl::string_view method, FakeDcmi::Address /*chip*/) {
    if (method == "BootState") hang.Reached();
    return absl::OkStatus();
  });
  EditChip(1, [](auto& chip) { chip.boot_state = 0; });
  Result result;
  resets_.Start(std::make_shared<ResetCall>(Request(), result.Done()));
  hang.WaitUntilReached();
  resets_.Close("the agent ends");
  hang.End();
  EXPECT_TRUE(resets_.Stop(kLong));
  const ResetCall::Answer answer = result.Wait();
  ASSERT_THAT(answer, IsOk());
  EXPECT_FALSE((*answer)[1].started);
  EXPECT_THAT(Reset(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the agent ends")));
}

TEST_F(ResetCallsTest, WrongRequestsAreRefused) {
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Reset(Request({0, 1})), invalid) << "without the chip itself";
  EXPECT_THAT(Reset(Request({})), invalid);
  EXPECT_THAT(Reset(Request({2, 2})), invalid);
  ResetRequest request = Request();
  request.boot_wait = absl::ZeroDuration();
  EXPECT_THAT(Reset(request), invalid);
  request.boot_wait = absl::Hours(1);
  EXPECT_THAT(Reset(request), invalid);
  resets_.SetLibrary(nullptr);
  EXPECT_THAT(Reset(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("not loaded yet")));
  EXPECT_THAT(dcmi_->calls(), IsEmpty());
}

}  // namespace
}  // namespace ascend::agent
