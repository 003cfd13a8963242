#include "vnpu/agent/process_queries.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"

namespace ascend::agent {
namespace {

using ::ascend::vnpu::ChipProcesses;
using ::ascend::vnpu::Inventory;
using ::ascend::vnpu::LibraryState;
using ::ascend::vnpu::Process;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Answers as the test says; by default that chip N is used by process 100 + N.
class Source : public InventorySource {
 public:
  absl::StatusOr<std::shared_ptr<Look>> Begin() override { return absl::InternalError("no look"); }
  absl::StatusOr<std::vector<dcmi::ChipProcess>> Processes(const vnpu::Chip& chip) override {
    asked.push_back(chip.physical_id);
    if (answer != nullptr) return answer(chip);
    return std::vector<dcmi::ChipProcess>{{.pid = 100 + chip.physical_id, .memory_bytes = 7}};
  }
  std::function<absl::StatusOr<std::vector<dcmi::ChipProcess>>(const vnpu::Chip&)> answer;
  std::vector<int> asked;
};

Inventory Ready(int chips) {
  Inventory inventory = {.library = LibraryState::kReady};
  for (int i = 0; i < chips; ++i) inventory.chips.push_back({.physical_id = i});
  return inventory;
}

ChipProcesses UsedBy(int physical_id, int pid, const std::string& name = "") {
  return {.physical_id = physical_id,
          .known = true,
          .processes = {{.pid = pid, .name = name, .memory_bytes = 7}}};
}

class ProcessQueriesTest : public ::testing::Test {
 protected:
  std::shared_ptr<ProcessQuery> Query(std::vector<int> ids) {
    return std::make_shared<ProcessQuery>(std::move(ids), [this](std::vector<ChipProcesses> chips) {
      ++ends_;
      answer_ = std::move(chips);
    });
  }
  void ServeAll(ProcessQuery& query, const Inventory& inventory) {
    while (queries_.ServeNext(query, source_, inventory)) {
    }
  }
  // Asks, and lets the library's thread answer.
  std::vector<ChipProcesses> Serve(std::vector<int> ids, const Inventory& inventory) {
    queries_.Ask(Query(std::move(ids)));
    const std::shared_ptr<ProcessQuery> query = queries_.Next();
    if (query != nullptr) ServeAll(*query, inventory);
    return answer_;
  }

  TempDir proc_;
  ProcessQueries queries_{proc_.path()};
  Source source_;
  std::shared_ptr<ProcessQuery> serving_;
  int ends_ = 0;
  std::vector<ChipProcesses> answer_;
};

TEST_F(ProcessQueriesTest, AnswersInTheOrderAsked) {
  EXPECT_THAT(Serve({2, 0}, Ready(3)), ElementsAre(UsedBy(2, 102), UsedBy(0, 100)));
  EXPECT_THAT(source_.asked, ElementsAre(2, 0));
  EXPECT_EQ(queries_.Next(), nullptr);
}

TEST_F(ProcessQueriesTest, AChipAskedForTwiceIsAnsweredTwice) {
  EXPECT_THAT(Serve({1, 1}, Ready(3)), ElementsAre(UsedBy(1, 101), UsedBy(1, 101)));
  EXPECT_EQ(ends_, 1);
}

TEST_F(ProcessQueriesTest, NamesProcessesAsTheKernelDoes) {
  ASSERT_THAT(MakeDirectories(proc_.File("100")), IsOk());
  ASSERT_THAT(WriteFileAtomically(proc_.File("100/comm"), "python3\n"), IsOk());
  ASSERT_THAT(MakeDirectories(proc_.File("101")), IsOk());
  ASSERT_THAT(WriteFileAtomically(proc_.File("101/comm"), "a\xff\n\x1b[1m\n"), IsOk());
  EXPECT_THAT(Serve({0, 1, 2}, Ready(3)),
              ElementsAre(UsedBy(0, 100, "python3"), UsedBy(1, 101, "a???[1m"), UsedBy(2, 102)));
}

TEST_F(ProcessQueriesTest, AProcessOfAnotherPidNamespaceHasNoName) {
  ASSERT_THAT(MakeDirectories(proc_.File("0")), IsOk());
  ASSERT_THAT(WriteFileAtomically(proc_.File("0/comm"), "wrong\n"), IsOk());
  source_.answer = [](const vnpu::Chip&) { return std::vector<dcmi::ChipProcess>{{.pid = 0}}; };
  const std::vector<ChipProcesses> answer = Serve({0}, Ready(1));
  ASSERT_THAT(answer, SizeIs(1));
  EXPECT_TRUE(answer[0].known);
  EXPECT_THAT(answer[0].processes, ElementsAre(Process{}));
}

TEST_F(ProcessQueriesTest, AnUnknownChipIsNotAFreeOne) {
  const std::vector<ChipProcesses> answer = Serve({7, 1}, Ready(3));
  ASSERT_THAT(answer, SizeIs(2));
  EXPECT_FALSE(answer[0].known);
  EXPECT_THAT(answer[0].error, HasSubstr("no chip with physical id 7"));
  EXPECT_EQ(answer[1], UsedBy(1, 101));
}

TEST_F(ProcessQueriesTest, AFailingCallIsUnknownForItsChipOnly) {
  source_.answer = [](const vnpu::Chip& chip) -> absl::StatusOr<std::vector<dcmi::ChipProcess>> {
    if (chip.physical_id == 1) return absl::UnimplementedError("symbol not found");
    return std::vector<dcmi::ChipProcess>();
  };
  const std::vector<ChipProcesses> answer = Serve({0, 1, 2}, Ready(3));
  ASSERT_THAT(answer, SizeIs(3));
  EXPECT_TRUE(answer[0].known);
  EXPECT_THAT(answer[0].processes, IsEmpty());
  EXPECT_FALSE(answer[1].known);
  EXPECT_EQ(answer[1].error, "symbol not found");
  EXPECT_TRUE(answer[2].known);
}

TEST_F(ProcessQueriesTest, ALibraryThatIsNotReadyIsNotAsked) {
  Inventory inventory = Ready(3);
  inventory.library = LibraryState::kMissing;
  inventory.library_message = "no libdcmi.so";
  const std::vector<ChipProcesses> answer = Serve({0, 9}, inventory);
  ASSERT_THAT(answer, SizeIs(2));
  for (const ChipProcesses& chip : answer) {
    EXPECT_FALSE(chip.known);
    EXPECT_EQ(chip.error, "no libdcmi.so");
  }
  EXPECT_THAT(source_.asked, IsEmpty());
}

TEST_F(ProcessQueriesTest, AnExpiredQueryKeepsWhatWasAnswered) {
  // The time runs out during the call about chip 1.
  source_.answer = [this](const vnpu::Chip& chip) {
    if (chip.physical_id == 1) serving_->Expire("not its turn yet");
    return std::vector<dcmi::ChipProcess>{{.pid = 100 + chip.physical_id, .memory_bytes = 7}};
  };
  queries_.Ask(Query({0, 1, 2}));
  serving_ = queries_.Next();
  ServeAll(*serving_, Ready(3));
  EXPECT_EQ(ends_, 1);
  ASSERT_THAT(answer_, SizeIs(3));
  EXPECT_EQ(answer_[0], UsedBy(0, 100));
  EXPECT_FALSE(answer_[1].known);
  EXPECT_THAT(answer_[1].error, HasSubstr("did not answer in time"));
  EXPECT_FALSE(answer_[2].known);
  EXPECT_THAT(answer_[2].error, HasSubstr("chip 1"));
  EXPECT_THAT(source_.asked, ElementsAre(0, 1)) << "nobody waits for the rest";
}

TEST_F(ProcessQueriesTest, AnotherThreadGoesOnWhileAChipHangs) {
  // During the call about chip 1, another thread asks about the rest; then the time runs out.
  source_.answer = [this](const vnpu::Chip& chip) {
    if (chip.physical_id == 1) {
      ServeAll(*serving_, Ready(3));
      serving_->Expire("not its turn yet");
    }
    return std::vector<dcmi::ChipProcess>{{.pid = 100 + chip.physical_id, .memory_bytes = 7}};
  };
  queries_.Ask(Query({0, 1, 2}));
  serving_ = queries_.Next();
  ServeAll(*serving_, Ready(3));
  EXPECT_EQ(ends_, 1);
  ASSERT_THAT(answer_, SizeIs(3));
  EXPECT_EQ(answer_[0], UsedBy(0, 100));
  EXPECT_FALSE(answer_[1].known);
  EXPECT_THAT(answer_[1].error, HasSubstr("did not answer in time; check"));
  EXPECT_EQ(answer_[2], UsedBy(2, 102));
}

TEST_F(ProcessQueriesTest, AQueryThatExpiredBeforeItsTurnIsNotServed) {
  const std::shared_ptr<ProcessQuery> query = Query({0, 1});
  queries_.Ask(query);
  query->Expire("busy");
  query->Expire("again");
  EXPECT_EQ(ends_, 1);
  ASSERT_THAT(answer_, SizeIs(2));
  for (const ChipProcesses& chip : answer_) EXPECT_EQ(chip.error, "busy");
  EXPECT_EQ(queries_.Next(), nullptr);
}

TEST_F(ProcessQueriesTest, CloseEndsWhatIsWaitingServedAndStillToCome) {
  const std::shared_ptr<ProcessQuery> served = Query({0}), waiting = Query({1}), late = Query({2});
  queries_.Ask(served);
  queries_.Ask(waiting);
  ASSERT_EQ(queries_.Next(), served);
  queries_.Close("shutting down");
  EXPECT_TRUE(served->ended());
  EXPECT_TRUE(waiting->ended());
  queries_.Ask(late);
  EXPECT_TRUE(late->ended());
  EXPECT_EQ(ends_, 3);
  ASSERT_THAT(answer_, SizeIs(1));
  EXPECT_EQ(answer_[0].error, "shutting down");
  EXPECT_EQ(queries_.Next(), nullptr);
}

TEST_F(ProcessQueriesTest, TellsTheListenerOfEachQuery) {
  int calls = 0;
  queries_.SetListener([&calls] { ++calls; });
  queries_.Ask(Query({0}));
  queries_.Ask(Query({0}));
  EXPECT_EQ(calls, 2);
  queries_.SetListener(nullptr);
  queries_.Ask(Query({0}));
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace ascend::agent
