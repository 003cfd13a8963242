#include "vnpu/agent/inventory_monitor.h"

#include <atomic>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/core/mutex.h"
#include "base/runtime/clock.h"
#include "gmock/gmock.h"

namespace ascend::agent {
namespace {

using ::ascend::vnpu::Health;
using ::ascend::vnpu::Inventory;
using ::ascend::vnpu::LibraryState;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Far more than anything here takes.
constexpr absl::Duration kLong = absl::Seconds(30);

// What a scripted library does; shared with the test, and with a reader that was left behind.
class Script {
 public:
  // From now on reads return this.
  void Answer(absl::StatusOr<Inventory> answer) {
    MutexLock lock(&mutex_);
    answer_ = std::move(answer);
  }
  // Reads that are under way or follow do not return until Release().
  void Hang() {
    MutexLock lock(&mutex_);
    hanging_ = true;
  }
  void Release() {
    MutexLock lock(&mutex_);
    hanging_ = false;
    changed_.SignalAll();
  }
  void WaitForReads(int count) {
    MutexLock lock(&mutex_);
    while (reads_ < count) changed_.Wait(&mutex_);
  }
  int reads() {
    MutexLock lock(&mutex_);
    return reads_;
  }
  absl::StatusOr<Inventory> Read() {
    MutexLock lock(&mutex_);
    ++reads_;
    changed_.SignalAll();
    while (hanging_) changed_.Wait(&mutex_);
    return answer_;
  }
  // From now on calls about this chip do not return; -1: none.
  void HangAt(int physical_id) {
    MutexLock lock(&mutex_);
    hanging_chip_ = physical_id;
    changed_.SignalAll();
  }
  void WaitForHanging(int count) {
    MutexLock lock(&mutex_);
    while (in_hanging_chip_ != count) changed_.Wait(&mutex_);
  }
  void ReadChip(int physical_id) {
    MutexLock lock(&mutex_);
    WaitWhileHanging(physical_id);
  }
  absl::StatusOr<std::vector<dcmi::ChipProcess>> Processes(const vnpu::Chip& chip) {
    MutexLock lock(&mutex_);
    ++asked_;
    changed_.SignalAll();
    WaitWhileHanging(chip.physical_id);
    return std::vector<dcmi::ChipProcess>{{.pid = 100 + chip.physical_id}};
  }
  void WaitForQuestions(int count) {
    MutexLock lock(&mutex_);
    while (asked_ < count) changed_.Wait(&mutex_);
  }

 private:
  void WaitWhileHanging(int physical_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++in_hanging_chip_;
    changed_.SignalAll();
    while (hanging_chip_ == physical_id) changed_.Wait(&mutex_);
    --in_hanging_chip_;
    changed_.SignalAll();
  }

  Mutex mutex_;
  CondVar changed_;
  int hanging_chip_ ABSL_GUARDED_BY(mutex_) = -1;
  int in_hanging_chip_ ABSL_GUARDED_BY(mutex_) = 0;
  int reads_ ABSL_GUARDED_BY(mutex_) = 0;
  int asked_ ABSL_GUARDED_BY(mutex_) = 0;
  bool hanging_ ABSL_GUARDED_BY(mutex_) = false;
  absl::StatusOr<Inventory> answer_ ABSL_GUARDED_BY(mutex_) = Inventory();
};

// One step for each chip. A chip whose step has not returned is stuck, and not stepped on again.
class ScriptedSource : public InventorySource {
 public:
  explicit ScriptedSource(std::shared_ptr<Script> script) : script_(std::move(script)) {}
  absl::StatusOr<std::shared_ptr<InventorySource::Look>> Begin() override {
    absl::StatusOr<Inventory> inventory = script_->Read();
    if (!inventory.ok()) return inventory.status();
    return std::make_shared<Look>(*this, *std::move(inventory));
  }
  absl::StatusOr<std::vector<dcmi::ChipProcess>> Processes(const vnpu::Chip& chip) override {
    return script_->Processes(chip);
  }

 private:
  class Look : public InventorySource::Look {
   public:
    Look(ScriptedSource& source, Inventory inventory)
        : source_(source), inventory_(std::move(inventory)) {}
    bool Step() override {
      int id = -1;
      {
        MutexLock lock(&source_.mutex_);
        while (next_ < inventory_.chips.size() &&
               source_.reading_.count(inventory_.chips[next_].physical_id) != 0) {
          ++next_;
        }
        if (next_ == inventory_.chips.size()) return false;
        id = inventory_.chips[next_++].physical_id;
        source_.reading_.insert(id);
      }
      source_.script_->ReadChip(id);
      MutexLock lock(&source_.mutex_);
      source_.reading_.erase(id);
      return true;
    }
    Inventory Finish() override {
      MutexLock lock(&source_.mutex_);
      for (vnpu::Chip& chip : inventory_.chips) {
        if (source_.reading_.count(chip.physical_id) != 0) chip.stuck = "no answer";
      }
      return inventory_;
    }

   private:
    ScriptedSource& source_;
    Inventory inventory_;
    size_t next_ = 0;
  };

  const std::shared_ptr<Script> script_;
  Mutex mutex_;
  std::set<int> reading_ ABSL_GUARDED_BY(mutex_);
};

Inventory Chips(std::vector<vnpu::Chip> chips) {
  return {.library_path = "/lib/libdcmi.so", .driver_version = "25.5.1", .chips = std::move(chips)};
}

vnpu::Chip Chip(int physical_id, Health health = Health::kOk) {
  return {.physical_id = physical_id, .model = "910B3", .health = health};
}

// What a chip is while nobody can ask about it.
vnpu::Chip Unseen(int physical_id, const Inventory& inventory) {
  vnpu::Chip chip = Chip(physical_id, Health::kUnknown);
  chip.faults_error = inventory.library_message;
  return chip;
}

class InventoryMonitorTest : public ::testing::Test {
 protected:
  static constexpr InventoryMonitor::Options kFast = {.poll_interval = absl::Milliseconds(2),
                                                      .call_timeout = absl::Seconds(20),
                                                      .stuck_timeout = absl::Seconds(60)};
  static constexpr InventoryMonitor::Options kImpatient = {.poll_interval = absl::Milliseconds(2),
                                                           .call_timeout = absl::Milliseconds(50),
                                                           .stuck_timeout = absl::Seconds(60),
                                                           .patience = absl::Milliseconds(20)};

  ~InventoryMonitorTest() override {
    script_->Release();
    script_->HangAt(-1);
  }

  void Start(const InventoryMonitor::Options& options) {
    monitor_ =
        std::make_unique<InventoryMonitor>(std::make_unique<ScriptedSource>(script_), &feed_,
                                           queries_, options, [this](absl::Duration stuck_for) {
                                             MutexLock lock(&mutex_);
                                             stuck_.push_back(stuck_for);
                                             stuck_changed_.SignalAll();
                                           });
  }

  // The first snapshot from now on in this state.
  std::shared_ptr<const Inventory> WaitFor(LibraryState state) {
    auto inventory = feed_.Current();
    while (inventory->library != state) {
      const auto next = feed_.WaitNewerThan(inventory->revision, kLong);
      if (next == inventory) {
        ADD_FAILURE() << "no change to " << std::string(vnpu::LibraryStateName(state));
        break;
      }
      inventory = next;
    }
    return inventory;
  }

  std::shared_ptr<const Inventory> WaitForChange() {
    const auto next = feed_.WaitNewerThan(seen_, kLong);
    EXPECT_GT(next->revision, seen_);
    seen_ = next->revision;
    return next;
  }
  void Seen() { seen_ = feed_.Current()->revision; }

  const std::shared_ptr<Script> script_ = std::make_shared<Script>();
  InventoryFeed feed_{"instance"};
  const std::shared_ptr<ProcessQueries> queries_ = std::make_shared<ProcessQueries>();
  uint64_t seen_ = 1;
  Mutex mutex_;
  CondVar stuck_changed_;
  std::vector<absl::Duration> stuck_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<InventoryMonitor> monitor_;  // goes first
};

// A query whose end a test can wait for.
class Question {
 public:
  explicit Question(std::vector<int> ids)
      : query_(std::make_shared<ProcessQuery>(std::move(ids),
                                              [this](std::vector<vnpu::ChipProcesses> chips) {
                                                MutexLock lock(&mutex_);
                                                answer_ = std::move(chips);
                                                ended_.SignalAll();
                                              })) {}
  const std::shared_ptr<ProcessQuery>& query() const { return query_; }
  std::vector<vnpu::ChipProcesses> Wait() {
    MutexLock lock(&mutex_);
    while (answer_.empty()) ended_.Wait(&mutex_);
    return answer_;
  }

 private:
  Mutex mutex_;
  CondVar ended_;
  std::vector<vnpu::ChipProcesses> answer_ ABSL_GUARDED_BY(mutex_);
  const std::shared_ptr<ProcessQuery> query_;
};

TEST_F(InventoryMonitorTest, AnswersQuestionsBetweenReads) {
  script_->Answer(Chips({Chip(0), Chip(3)}));
  InventoryMonitor::Options options = kFast;
  options.poll_interval = absl::Hours(1);  // a question does not wait for the next beat
  Start(options);
  WaitForChange();
  for (int i = 0; i < 3; ++i) {
    Question question({3, 0});
    queries_->Ask(question.query());
    const std::vector<vnpu::ChipProcesses> answer = question.Wait();
    ASSERT_THAT(answer, SizeIs(2));
    ASSERT_THAT(answer[0].processes, SizeIs(1));
    EXPECT_EQ(answer[0].processes[0].pid, 103);
    EXPECT_EQ(answer[1].physical_id, 0);
  }
  EXPECT_EQ(script_->reads(), 1);
}

TEST_F(InventoryMonitorTest, AQuestionThatWasAskedBeforeTheStartIsAnswered) {
  script_->Answer(Chips({Chip(0)}));
  Question question({0});
  queries_->Ask(question.query());
  InventoryMonitor::Options options = kFast;
  options.poll_interval = absl::Hours(1);
  Start(options);
  EXPECT_TRUE(question.Wait()[0].known);
}

TEST_F(InventoryMonitorTest, AQuestionThatHangsHoldsUpNeitherTheRestNorTheReader) {
  script_->Answer(Chips({Chip(0), Chip(1), Chip(2)}));
  InventoryMonitor::Options options = kImpatient;
  options.poll_interval = absl::Hours(1);  // so that it is the question that hangs
  Start(options);
  WaitFor(LibraryState::kReady);
  script_->HangAt(1);
  Question question({0, 1, 2}), other({2});
  queries_->Ask(question.query());
  script_->WaitForQuestions(3);
  queries_->Ask(other.query());
  EXPECT_TRUE(other.Wait()[0].known);
  EXPECT_FALSE(question.query()->ended()) << "its own time limit is the asker's";
  script_->Answer(Chips({Chip(0), Chip(1), Chip(2, Health::kMajor)}));
  Seen();
  monitor_->ReadSoon();
  EXPECT_EQ(WaitForChange()->chips[2].health, Health::kMajor);
  EXPECT_EQ(feed_.Current()->library, LibraryState::kReady);
  script_->HangAt(-1);
  const std::vector<vnpu::ChipProcesses> answer = question.Wait();
  ASSERT_THAT(answer, SizeIs(3));
  for (const vnpu::ChipProcesses& chip : answer) EXPECT_TRUE(chip.known) << chip.physical_id;
}

TEST_F(InventoryMonitorTest, AChipThatHangsHoldsUpNoOther) {
  script_->Answer(Chips({Chip(0), Chip(1), Chip(2)}));
  InventoryMonitor::Options options = kImpatient;
  options.stuck_timeout = absl::Milliseconds(100);
  Start(options);
  WaitFor(LibraryState::kReady);
  script_->HangAt(1);
  Seen();
  const auto hanging = WaitForChange();
  EXPECT_EQ(hanging->library, LibraryState::kReady);
  ASSERT_THAT(hanging->chips, SizeIs(3));
  EXPECT_EQ(hanging->chips[1].stuck, "no answer");
  for (const Health health : {Health::kMajor, Health::kOk, Health::kMinor}) {
    script_->Answer(Chips({Chip(0, health), Chip(1), Chip(2, health)}));
    auto inventory = WaitForChange();
    EXPECT_EQ(inventory->chips[0].health, health);
    EXPECT_EQ(inventory->chips[2].health, health);
    EXPECT_EQ(inventory->chips[1].stuck, "no answer");
    EXPECT_EQ(inventory->library, LibraryState::kReady);
  }
  {
    // Longer than the time after which a call about the node would end the process.
    MutexLock lock(&mutex_);
    EXPECT_FALSE(stuck_changed_.WaitFor(&mutex_, absl::Milliseconds(200)));
    EXPECT_THAT(stuck_, IsEmpty());
  }
  script_->HangAt(-1);
  EXPECT_EQ(WaitForChange()->chips[1].stuck, "");
}

TEST_F(InventoryMonitorTest, AChipThatAnswersAgainIsLookedAtSoon) {
  script_->Answer(Chips({Chip(0), Chip(1)}));
  script_->HangAt(0);
  InventoryMonitor::Options options = kImpatient;
  options.poll_interval = absl::Hours(1);
  options.patience = absl::Milliseconds(1);
  Start(options);
  EXPECT_EQ(WaitForChange()->chips[0].stuck, "no answer");
  script_->HangAt(-1);
  EXPECT_EQ(WaitForChange()->chips[0].stuck, "");
}

TEST_F(InventoryMonitorTest, StopDoesNotWaitForAChipThatHangs) {
  script_->Answer(Chips({Chip(0), Chip(1)}));
  script_->HangAt(1);
  Start(kImpatient);
  WaitFor(LibraryState::kReady);
  script_->WaitForHanging(1);
  EXPECT_FALSE(monitor_->Stop(absl::Milliseconds(10)));
  script_->HangAt(-1);
  EXPECT_TRUE(monitor_->Stop(kLong)) << "the thread has ended by itself";
}

TEST_F(InventoryMonitorTest, RestsBetweenLooksOnRequest) {
  InventoryMonitor::Options options = kFast;
  options.poll_interval = absl::Hours(1);
  Start(options);
  script_->WaitForReads(1);
  const absl::Duration start = Clock::Real().Monotonic();
  monitor_->ReadSoon(absl::Milliseconds(100));
  monitor_->ReadSoon(absl::Hours(1));  // the first of both counts
  script_->WaitForReads(2);
  for (int i = 0; i < 50; ++i) monitor_->ReadSoon(absl::Milliseconds(100));
  script_->WaitForReads(3);
  EXPECT_GE(Clock::Real().Monotonic() - start, absl::Milliseconds(190));
}

TEST_F(InventoryMonitorTest, StopDoesNotWaitForAQuestionThatHangs) {
  script_->Answer(Chips({Chip(0)}));
  InventoryMonitor::Options options = kFast;
  options.poll_interval = absl::Hours(1);
  Start(options);
  WaitForChange();
  script_->HangAt(0);
  Question question({0});
  queries_->Ask(question.query());
  script_->WaitForQuestions(1);
  EXPECT_FALSE(monitor_->Stop(absl::Milliseconds(10)));
  script_->HangAt(-1);
  EXPECT_TRUE(question.Wait()[0].known);
  EXPECT_TRUE(monitor_->Stop(kLong)) << "the thread has ended by itself";
}

TEST_F(InventoryMonitorTest, PublishesWhatTheLibrarySees) {
  script_->Answer(Chips({Chip(0), Chip(1)}));
  Start(kFast);
  const auto inventory = WaitForChange();
  EXPECT_EQ(inventory->library, LibraryState::kReady);
  EXPECT_EQ(inventory->library_message, "");
  EXPECT_EQ(inventory->agent_instance, "instance");
  EXPECT_EQ(inventory->driver_version, "25.5.1");
  EXPECT_EQ(inventory->chips, Chips({Chip(0), Chip(1)}).chips);
}

TEST_F(InventoryMonitorTest, ManyReadsWithoutChangeAreOneRevision) {
  script_->Answer(Chips({Chip(0)}));
  Start(kFast);
  script_->WaitForReads(20);
  EXPECT_EQ(feed_.Current()->revision, 2u);
}

TEST_F(InventoryMonitorTest, FailuresThatRepeatAreOneRevision) {
  script_->Answer(absl::UnavailableError("dcmi_init returned -8005"));
  Start(kFast);
  script_->WaitForReads(20);
  EXPECT_EQ(feed_.Current()->revision, 2u);
}

TEST_F(InventoryMonitorTest, AChipThatVanishesLeavesAndReturns) {
  script_->Answer(Chips({Chip(0), Chip(3)}));
  Start(kFast);
  WaitForChange();
  script_->Answer(Chips({Chip(0)}));
  EXPECT_THAT(WaitForChange()->chips, SizeIs(1));
  script_->Answer(Chips({Chip(0), Chip(3, Health::kMajor)}));
  const auto inventory = WaitForChange();
  ASSERT_THAT(inventory->chips, SizeIs(2));
  EXPECT_EQ(inventory->chips[1].health, Health::kMajor);
}

TEST_F(InventoryMonitorTest, AMissingLibraryIsLookedForUntilItIsThere) {
  script_->Answer(absl::NotFoundError("no libdcmi.so, looked for /usr/local/dcmi/libdcmi.so"));
  Start(kFast);
  const auto missing = WaitForChange();
  EXPECT_EQ(missing->library, LibraryState::kMissing);
  EXPECT_THAT(missing->library_message, HasSubstr("/usr/local/dcmi/libdcmi.so"));
  EXPECT_THAT(missing->chips, IsEmpty());

  script_->Answer(Chips({Chip(0)}));
  const auto ready = WaitForChange();
  EXPECT_EQ(ready->library, LibraryState::kReady);
  EXPECT_EQ(ready->library_message, "");
  EXPECT_THAT(ready->chips, SizeIs(1));
}

TEST_F(InventoryMonitorTest, AFailingLibraryKeepsTheChipsWithUnknownHealth) {
  vnpu::Chip sick = Chip(1, Health::kCritical);
  sick.busy = {100};
  sick.faults = {{{.code = 0x80E01801, .active = true}}};
  sick.network = vnpu::NetworkHealth::kOk;
  script_->Answer(Chips({Chip(0), sick}));
  Start(kFast);
  WaitForChange();
  script_->Answer(absl::UnavailableError("dcmi_get_card_list returned -8005"));
  const auto failed = WaitForChange();
  EXPECT_EQ(failed->library, LibraryState::kFailed);
  EXPECT_THAT(failed->library_message, HasSubstr("-8005"));
  EXPECT_THAT(failed->chips, ElementsAre(Unseen(0, *failed), Unseen(1, *failed)));
  EXPECT_EQ(failed->driver_version, "25.5.1");

  script_->Answer(Chips({Chip(0), Chip(1)}));
  EXPECT_EQ(WaitForChange()->chips, Chips({Chip(0), Chip(1)}).chips);
}

TEST_F(InventoryMonitorTest, ACallThatHangsIsShownAndOverWhenItReturns) {
  script_->Answer(Chips({Chip(0), Chip(1)}));
  Start(kImpatient);
  WaitFor(LibraryState::kReady);
  script_->Hang();
  const auto hanging = WaitFor(LibraryState::kNotResponding);
  EXPECT_THAT(hanging->chips, ElementsAre(Unseen(0, *hanging), Unseen(1, *hanging)));
  EXPECT_THAT(hanging->library_message, AllOf(HasSubstr("has not answered since 20"),
                                              HasSubstr("limit 50ms"), HasSubstr("npu-smi")));

  script_->Release();
  EXPECT_EQ(WaitFor(LibraryState::kReady)->chips, Chips({Chip(0), Chip(1)}).chips);

  // And again: each call has its own limit.
  script_->Hang();
  WaitFor(LibraryState::kNotResponding);
  script_->Release();
  WaitFor(LibraryState::kReady);
  MutexLock lock(&mutex_);
  EXPECT_THAT(stuck_, IsEmpty());
}

TEST_F(InventoryMonitorTest, AHangIsOneRevisionHoweverLongItLasts) {
  script_->Answer(Chips({Chip(0)}));
  Start({.poll_interval = absl::Milliseconds(1),
         .call_timeout = absl::Milliseconds(5),
         .stuck_timeout = absl::Milliseconds(100)});
  WaitFor(LibraryState::kReady);
  script_->Hang();
  const uint64_t revision = WaitFor(LibraryState::kNotResponding)->revision;
  MutexLock lock(&mutex_);
  while (stuck_.empty()) stuck_changed_.Wait(&mutex_);
  EXPECT_EQ(feed_.Current()->revision, revision);
}

TEST_F(InventoryMonitorTest, AHangOfTheVeryFirstCallIsShown) {
  script_->Hang();
  Start(kImpatient);
  const auto hanging = WaitFor(LibraryState::kNotResponding);
  EXPECT_THAT(hanging->chips, IsEmpty());
}

TEST_F(InventoryMonitorTest, AFailureAfterAHangIsShownAsFailure) {
  script_->Hang();
  Start(kImpatient);
  WaitFor(LibraryState::kNotResponding);
  script_->Answer(absl::UnavailableError("card lost"));
  script_->Release();
  EXPECT_EQ(WaitFor(LibraryState::kFailed)->library_message, "card lost");
}

TEST_F(InventoryMonitorTest, AStuckCallIsReportedOnce) {
  script_->Hang();
  Start({.poll_interval = absl::Milliseconds(2),
         .call_timeout = absl::Milliseconds(10),
         .stuck_timeout = absl::Milliseconds(40)});
  {
    MutexLock lock(&mutex_);
    while (stuck_.empty()) stuck_changed_.Wait(&mutex_);
    EXPECT_GE(stuck_[0], absl::Milliseconds(40));
    // Several more periods of the supervisor.
    stuck_changed_.WaitFor(&mutex_, absl::Milliseconds(100));
    EXPECT_THAT(stuck_, SizeIs(1));
  }
  script_->Release();
  script_->WaitForReads(3);
  script_->Hang();  // another call: reported again
  MutexLock lock(&mutex_);
  while (stuck_.size() < 2) stuck_changed_.Wait(&mutex_);
}

TEST_F(InventoryMonitorTest, ASlowReadIsNotFollowedByABurst) {
  // Reads that take longer than the interval: the missed beats are left out.
  script_->Hang();
  Start({.poll_interval = absl::Milliseconds(20),
         .call_timeout = absl::Seconds(20),
         .stuck_timeout = absl::Seconds(60)});
  script_->WaitForReads(1);
  const absl::Duration start = Clock::Real().Monotonic();
  MutexLock lock(&mutex_);
  while (Clock::Real().Monotonic() - start < absl::Milliseconds(200)) {
    stuck_changed_.WaitFor(&mutex_, absl::Milliseconds(50));
  }
  const absl::Duration released = Clock::Real().Monotonic();
  script_->Release();
  script_->WaitForReads(4);
  EXPECT_GE(Clock::Real().Monotonic() - released, absl::Milliseconds(55));
}

TEST_F(InventoryMonitorTest, StopDoesNotWaitForTheInterval) {
  script_->Answer(Chips({Chip(0)}));
  Start({.poll_interval = absl::Hours(1),
         .call_timeout = absl::Hours(1),
         .stuck_timeout = absl::Hours(1)});
  WaitForChange();
  const absl::Duration start = Clock::Real().Monotonic();
  EXPECT_TRUE(monitor_->Stop(absl::Minutes(1)));
  EXPECT_LT(Clock::Real().Monotonic() - start, absl::Seconds(10));
  EXPECT_TRUE(monitor_->Stop(absl::Minutes(1))) << "a second Stop does nothing";
}

TEST_F(InventoryMonitorTest, StopLeavesAStuckReaderBehindAndItPublishesNothing) {
  auto feed = std::make_unique<InventoryFeed>("instance");
  script_->Hang();
  InventoryMonitor monitor(std::make_unique<ScriptedSource>(script_), feed.get(), queries_, kFast,
                           [](absl::Duration) {});
  script_->WaitForReads(1);
  EXPECT_FALSE(monitor.Stop(absl::Milliseconds(10)));
  feed.reset();  // what the late reader must not touch
  script_->Answer(Chips({Chip(0)}));
  script_->Release();
  EXPECT_TRUE(monitor.Stop(kLong)) << "the reader has ended by itself";
  EXPECT_EQ(script_->reads(), 1);
}

TEST_F(InventoryMonitorTest, ReadsSoonOnRequest) {
  Start({.poll_interval = absl::Hours(1),
         .call_timeout = absl::Seconds(20),
         .stuck_timeout = absl::Seconds(60)});
  script_->WaitForReads(1);
  monitor_->ReadSoon();
  script_->WaitForReads(2);
  // Also if it is asked for during a read: what that one has seen already may have changed.
  script_->Hang();
  monitor_->ReadSoon();
  script_->WaitForReads(3);
  monitor_->ReadSoon();
  script_->Release();
  script_->WaitForReads(4);
}

}  // namespace
}  // namespace ascend::agent
