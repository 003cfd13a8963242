#include "vnpu/dcmi/mock/fault_state.h"

#include <stdexcept>
#include <thread>
#include <vector>

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gtest/gtest.h"
#include "vnpu/dcmi/abi.h"

namespace ascend::dcmi::mock {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

int Add(const std::string& directory, Fault fault) {
  return ChangeFaultState(directory, [&](FaultState& state, NoticeList& notices) {
    notices.Add(state, fault, 0, 1);
    state.faults.push_back(fault);
    return int{DCMI_OK};
  });
}

TEST(FaultStateTest, KeepsEverythingOfAFault) {
  TempDir directory;
  EXPECT_THAT(ReadFaultState(directory.path()).faults, IsEmpty()) << "no file: no faults";
  ASSERT_EQ(ChangeFaultState(directory.path(),
                             [](FaultState& state, NoticeList& notices) {
                               Fault fault = {.physical_id = 3,
                                              .code = 0x80E01801,
                                              .severity = 3,
                                              .listed = false,
                                              .survives_reset = true,
                                              .drops_chip = true,
                                              .raised_ms = 1700000000123,
                                              .name = "HBM",
                                              .additional = "bank 1"};
                               notices.Add(state, fault, 2, 1);
                               state.faults.push_back(fault);
                               state.texts[0x80E01801] = "HBM";
                               state.prepared.push_back(3);
                               state.resets.push_back({.physical_id = 3,
                                                       .started_ms = 5,
                                                       .duration_ms = 6,
                                                       .stops_at = 2,
                                                       .waits_for_rescan = true});
                               return int{DCMI_OK};
                             }),
            DCMI_OK);
  FaultState state = ReadFaultState(directory.path());
  const Fault* const fault = state.Find(3, 0x80E01801);
  ASSERT_NE(fault, nullptr);
  EXPECT_EQ(state.Find(2, 0x80E01801), nullptr);
  EXPECT_EQ(state.Find(3, 1), nullptr);
  EXPECT_EQ(fault->severity, 3u);
  EXPECT_FALSE(fault->listed);
  EXPECT_TRUE(fault->survives_reset);
  EXPECT_TRUE(fault->drops_chip);
  EXPECT_EQ(fault->serial, 1);
  EXPECT_EQ(fault->raised_ms, 1700000000123u);
  EXPECT_EQ(fault->name, "HBM");
  EXPECT_EQ(fault->additional, "bank 1");
  EXPECT_EQ(state.texts.at(0x80E01801), "HBM");
  EXPECT_THAT(state.prepared, ::testing::ElementsAre(3));
  const ResetRun* const reset = state.ResetOf(3);
  ASSERT_NE(reset, nullptr);
  EXPECT_EQ(state.ResetOf(2), nullptr);
  EXPECT_EQ(reset->started_ms, 5);
  EXPECT_EQ(reset->duration_ms, 6);
  EXPECT_EQ(reset->stops_at, 2);
  EXPECT_TRUE(reset->waits_for_rescan);

  const FaultNotice notice = ParseNotice(*ReadFile(EventsFile(directory.path())));
  EXPECT_EQ(notice.logic_id, 2);
  EXPECT_EQ(notice.assertion, 1u);
  EXPECT_EQ(notice.notify_serial, 1);
  EXPECT_EQ(notice.fault.code, 0x80E01801u);
}

TEST(FaultStateTest, AChangeThatIsRefusedLeavesNothing) {
  TempDir directory;
  ASSERT_EQ(Add(directory.path(), {.physical_id = 1, .code = 1}), DCMI_OK);
  const std::string before = *ReadFile(EventsFile(directory.path()));
  EXPECT_EQ(ChangeFaultState(directory.path(),
                             [](FaultState& state, NoticeList& notices) {
                               notices.Add(state, state.faults.front(), 0, 0);
                               state.faults.clear();
                               return int{DCMI_RESET_FAIL};
                             }),
            DCMI_RESET_FAIL);
  EXPECT_THAT(ReadFaultState(directory.path()).faults, SizeIs(1));
  EXPECT_THAT(ReadFile(EventsFile(directory.path())), IsOkAndHolds(before));
}

TEST(FaultStateTest, ConcurrentChangesLoseNothing) {
  TempDir directory;
  constexpr int kThreads = 4, kEach = 25;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        EXPECT_EQ(Add(directory.path(), {.physical_id = t, .code = static_cast<unsigned>(i)}),
                  DCMI_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const FaultState state = ReadFaultState(directory.path());
  EXPECT_THAT(state.faults, SizeIs(kThreads * kEach));
  EXPECT_EQ(state.last_serial, kThreads * kEach);
  EXPECT_EQ(state.last_notify_serial, kThreads * kEach);
}

TEST(FaultStateTest, SaysWhichFileIsWrong) {
  TempDir directory;
  ASSERT_THAT(MakeDirectories(StateDirectory(directory.path())), IsOk());
  const std::string path = FaultsFile(directory.path());
  for (const char* text : {"{", "[]", R"({"faults": 1})", R"({"faults": [{"kode": 1}]})",
                           R"({"prepared": ["x"]})", R"({"resets": [{"stopsAt": "x"}]})"}) {
    ASSERT_THAT(WriteFileAtomically(path, text, {.durable = false}), IsOk());
    EXPECT_THAT([&] { ReadFaultState(directory.path()); },
                ThrowsMessage<std::runtime_error>(HasSubstr(path)))
        << text;
  }
  EXPECT_ANY_THROW(ParseNotice("{\"code\": -1}"));
  EXPECT_ANY_THROW(ParseNotice("half a li"));
}

}  // namespace
}  // namespace ascend::dcmi::mock
