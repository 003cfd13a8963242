#include "vnpu/agent/vnpu_calls.h"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "base/runtime/clock.h"
#include "gmock/gmock.h"
#include "vnpu/fake_dcmi.h"

namespace ascend::agent {
namespace {

using ::ascend::vnpu::FakeDcmi;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kLong = absl::Seconds(30);
constexpr char kTemplate[] = "vir05_1c_16g";

vnpu::Inventory Ready(int chips) {
  vnpu::Inventory inventory = {.library = vnpu::LibraryState::kReady};
  for (int i = 0; i < chips; ++i) {
    inventory.chips.push_back({.physical_id = i, .card_id = i, .device_id = 0, .uuid = "AA"});
  }
  return inventory;
}

// An answer to wait for.
class Result {
 public:
  VnpuCall::Done Done() {
    return [this](const VnpuCall::Answer& answer) {
      MutexLock lock(&mutex_);
      EXPECT_FALSE(answer_.has_value()) << "answered twice";
      answer_ = answer;
      changed_.SignalAll();
    };
  }
  VnpuCall::Answer Wait() {
    const absl::Duration end = Clock::Real().Monotonic() + kLong;
    MutexLock lock(&mutex_);
    while (!answer_.has_value()) {
      const absl::Duration left = end - Clock::Real().Monotonic();
      if (left <= absl::ZeroDuration()) return absl::InternalError("the test waited for too long");
      changed_.WaitFor(&mutex_, left);
    }
    return *answer_;
  }
  bool answered() {
    MutexLock lock(&mutex_);
    return answer_.has_value();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::optional<VnpuCall::Answer> answer_ ABSL_GUARDED_BY(mutex_);
};

class VnpuCallsTest : public ::testing::Test {
 protected:
  VnpuCallsTest() {
    feed_.Publish(Ready(3));
    calls_.SetLibrary(dcmi_);
    dcmi_->Before([this](absl::string_view method, dcmi::ChipAddress chip) {
      MutexLock lock(&mutex_);
      const std::string call = absl::StrCat(method, " ", chip.card);
      reached_.insert(call);
      changed_.SignalAll();
      while (hanging_ == call) changed_.Wait(&mutex_);
      return absl::OkStatus();
    });
  }
  ~VnpuCallsTest() override {
    Hang("");
    calls_.Close("the test ends");
    EXPECT_TRUE(calls_.Stop(kLong));
    dcmi_->Before(nullptr);
  }

  // This call of the library ("CreateVnpu 0") does not return until it is another's turn to hang.
  void Hang(const std::string& call) {
    MutexLock lock(&mutex_);
    hanging_ = call;
    changed_.SignalAll();
  }
  void WaitFor(const std::string& call) {
    MutexLock lock(&mutex_);
    while (reached_.count(call) == 0) changed_.Wait(&mutex_);
  }
  VnpuCall::Answer Run(std::function<std::shared_ptr<VnpuCall>(VnpuCall::Done)> make) {
    Result result;
    calls_.Start(make(result.Done()));
    return result.Wait();
  }
  VnpuCall::Answer List(int chip) {
    return Run([chip](VnpuCall::Done done) { return VnpuCall::List(chip, std::move(done)); });
  }
  static std::shared_ptr<VnpuCall> CreateOn(int chip, Result& result, std::string uuid = "") {
    return VnpuCall::Create(
        {.physical_id = chip, .uuid = std::move(uuid), .template_name = kTemplate}, result.Done());
  }

  InventoryFeed feed_{"instance"};
  const std::shared_ptr<ChipTurns> turns_ = std::make_shared<ChipTurns>(absl::ZeroDuration());
  const std::shared_ptr<FakeDcmi> dcmi_ = std::make_shared<FakeDcmi>(3);
  Mutex mutex_;
  CondVar changed_;
  std::string hanging_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> reached_ ABSL_GUARDED_BY(mutex_);
  VnpuCalls calls_{&feed_, turns_};
};

TEST_F(VnpuCallsTest, CreatesListsAndDestroys) {
  Result created;
  calls_.Start(CreateOn(1, created, "AA"));
  const VnpuCall::Answer made = created.Wait();
  ASSERT_THAT(made, IsOk());
  ASSERT_THAT(*made, SizeIs(1));
  EXPECT_EQ(made->front().id, 116);
  EXPECT_THAT(List(1), IsOkAndHolds(*made));
  EXPECT_THAT(Run([](VnpuCall::Done done) {
                return VnpuCall::Destroy(
                    {.physical_id = 1, .uuid = "AA", .id = 116, .template_name = kTemplate},
                    std::move(done));
              }),
              IsOk());
  EXPECT_THAT(dcmi_->Ids(1), IsEmpty());
  EXPECT_THAT(Run([](VnpuCall::Done done) { return VnpuCall::PrepareModes(std::move(done)); }),
              IsOk());
}

TEST_F(VnpuCallsTest, RefusesWhatTheInventoryDoesNotHave) {
  EXPECT_THAT(List(7), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("physical id 7")));
  Result other;
  calls_.Start(CreateOn(1, other, "BB"));
  EXPECT_THAT(other.Wait(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("BB")));
  vnpu::Inventory failed = Ready(3);
  failed.library = vnpu::LibraryState::kFailed;
  failed.library_message = "cannot be initialised";
  feed_.Publish(failed);
  EXPECT_THAT(List(1),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("cannot be initialised")));
  EXPECT_THAT(dcmi_->requests(), IsEmpty());
}

TEST_F(VnpuCallsTest, BeforeTheLibraryIsThereNothingCanBeDone) {
  calls_.SetLibrary(nullptr);
  EXPECT_THAT(List(1), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("not loaded")));
}

TEST_F(VnpuCallsTest, AHangingChipDelaysNoOther) {
  Hang("CreateVnpu 0");
  Result hanging;
  calls_.Start(CreateOn(0, hanging));
  WaitFor("CreateVnpu 0");
  EXPECT_THAT(List(1), IsOk());
  EXPECT_FALSE(turns_->TryTake({0, 0})) << "the reader leaves it out";
  EXPECT_THAT(turns_->Stuck({0, 0}), HasSubstr("dcmi_create_vdevice"));
  EXPECT_TRUE(turns_->TryTake({2, 0}));
  turns_->Release({2, 0});
  EXPECT_FALSE(hanging.answered());
  Hang("");
  EXPECT_THAT(hanging.Wait(), IsOk());
}

TEST_F(VnpuCallsTest, ACallGivenUpWhileItRunsGoesOn) {
  Hang("CreateVnpu 0");
  Result result, next;
  const std::shared_ptr<VnpuCall> call = CreateOn(0, result);
  calls_.Start(call);
  WaitFor("CreateVnpu 0");
  calls_.GiveUp(*call, absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(result.Wait(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                      AllOf(HasSubstr("chip 0"), HasSubstr("dcmi_create_vdevice"),
                                            HasSubstr("goes on with it"))));
  calls_.GiveUp(*call, absl::StatusCode::kCancelled);  // late; changes nothing
  // Who comes next waits, and sees what became of it.
  calls_.Start(VnpuCall::List(0, next.Done()));
  EXPECT_FALSE(next.answered());
  Hang("");
  const VnpuCall::Answer seen = next.Wait();
  ASSERT_THAT(seen, IsOk());
  EXPECT_THAT(*seen, SizeIs(1));
}

TEST_F(VnpuCallsTest, ACallGivenUpInTheQueueNeverRuns) {
  Hang("CreateVnpu 0");
  Result first, second, third;
  calls_.Start(CreateOn(0, first));
  WaitFor("CreateVnpu 0");
  const std::shared_ptr<VnpuCall> waiting = CreateOn(0, second);
  calls_.Start(waiting);
  calls_.GiveUp(*waiting, absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(second.Wait(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("not begun"), HasSubstr("nothing was changed"),
                             HasSubstr("dcmi_create_vdevice"))));
  Hang("");
  EXPECT_THAT(first.Wait(), IsOk());
  calls_.Start(VnpuCall::List(0, third.Done()));
  EXPECT_THAT(third.Wait(), IsOk());
  EXPECT_THAT(dcmi_->requests(), SizeIs(1));
  EXPECT_THAT(dcmi_->Ids(0), ElementsAre(100));
}

TEST_F(VnpuCallsTest, ACallGivenUpWhileTheChipIsReadNeverRuns) {
  ASSERT_TRUE(turns_->TryTake({0, 0}));
  Result result, next;
  const std::shared_ptr<VnpuCall> call = CreateOn(0, result);
  calls_.Start(call);
  calls_.GiveUp(*call, absl::StatusCode::kCancelled);
  EXPECT_THAT(result.Wait(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("nothing was changed")));
  turns_->Release({0, 0});
  calls_.Start(VnpuCall::List(0, next.Done()));
  EXPECT_THAT(next.Wait(), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(dcmi_->requests(), IsEmpty());
}

TEST_F(VnpuCallsTest, AChipThatMovedIsLookedUpAgain) {
  // While the call waits for the turn at the old address, the cards are counted anew.
  ASSERT_TRUE(turns_->TryTake({0, 0}));
  Result result;
  calls_.Start(CreateOn(0, result));
  vnpu::Inventory moved = Ready(3);
  moved.chips[0].card_id = 9;
  dcmi_->Edit([](auto& chips) {
    chips[{9, 0}] = chips.at({0, 0});
    chips.at({0, 0}).physical_id = 5;
  });
  feed_.Publish(moved);
  turns_->Release({0, 0});
  EXPECT_THAT(result.Wait(), IsOk());
  EXPECT_THAT(dcmi_->Ids(0), IsEmpty());
  EXPECT_THAT(dcmi_->Ids(9), ElementsAre(100));
}

TEST_F(VnpuCallsTest, TellsTheListenerOfWhatMayHaveChanged) {
  Mutex mutex;
  int changes = 0;
  calls_.SetListener([&] {
    MutexLock lock(&mutex);
    ++changes;
  });
  Result created;
  calls_.Start(CreateOn(0, created));
  ASSERT_THAT(created.Wait(), IsOk());
  {
    MutexLock lock(&mutex);
    EXPECT_EQ(changes, 1);
  }
  calls_.SetListener(nullptr);
}

TEST_F(VnpuCallsTest, CloseAnswersWhatWaitsAndStopWaitsForWhatRuns) {
  Hang("CreateVnpu 0");
  Result running, waiting, late, for_the_reader;
  calls_.Start(CreateOn(0, running));
  WaitFor("CreateVnpu 0");
  calls_.Start(CreateOn(0, waiting));
  ASSERT_TRUE(turns_->TryTake({1, 0}));
  calls_.Start(CreateOn(1, for_the_reader));
  calls_.Close("shutting down");
  calls_.Start(CreateOn(2, late));
  for (Result* result : {&waiting, &late, &for_the_reader}) {
    EXPECT_THAT(result->Wait(),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("nothing was changed")));
  }
  EXPECT_FALSE(running.answered());
  EXPECT_FALSE(calls_.Stop(absl::Milliseconds(1))) << "the library has not returned";
  Hang("");
  EXPECT_THAT(running.Wait(), IsOk());
  EXPECT_TRUE(calls_.Stop(kLong));
  EXPECT_THAT(dcmi_->requests(), SizeIs(1));
}

}  // namespace
}  // namespace ascend::agent
