// How the vNPUs of claims that end are taken back.
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/testing/engine_vnpu_fixture.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kPart0[] = "npu-0-vir05-1c-8g-0";

// The same, but the pod is deleted before it is tried again.
TEST_F(EngineVnpuTest, UnprepareDestroysWhatNobodyHeardOf) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  vnpus_.FailCreate(absl::DeadlineExceededError("not returned for 38 s"), true);
  vnpus_.FailDestroy(absl::UnavailableError("busy"));
  EXPECT_THAT(plugin->engine.Prepare(Ref("a")).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("not returned for 38 s")));
  EXPECT_TRUE(HasRecord("a"));
  EXPECT_THAT(plugin->engine.Unprepare(Ref("a")),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("vNPU 100 (vir05_1c_8g) of chip 0 cannot be destroyed")));
  EXPECT_TRUE(HasRecord("a"));
  vnpus_.FailDestroy(absl::OkStatus());
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), IsEmpty());
  ExpectNothingLeft();
}

// VNP-02, VNP-12: a vNPU that cannot be destroyed keeps its claim's record.
TEST_F(EngineVnpuTest, AFailedDestroyIsTriedAgain) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  vnpus_.FailDestroy(absl::DeadlineExceededError("dcmi_set_destroy_vdevice has not returned"));
  EXPECT_THAT(plugin->engine.Unprepare(Ref("a")),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("has not returned")));
  EXPECT_TRUE(HasRecord("a"));
  EXPECT_EQ(Record("a").state, ClaimState::kReleased);
  EXPECT_FALSE(HasCdi("a")) << "the claim ends: it is not restored";
  // Neither the part nor the whole can be had meanwhile.
  Claim("b", {Result(kPart0)});
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")).status(), Refused("is still prepared"));
  vnpus_.FailDestroy(absl::OkStatus());
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), IsEmpty());
  // Forgotten by the library: nothing is left to do.
  ASSERT_THAT(plugin->engine.Prepare(Ref("b")), IsOk());
  vnpus_.Destroy(100);
  ASSERT_THAT(plugin->engine.Unprepare(Ref("b")), IsOk());
  ExpectNothingLeft();
}

// The pod can end although its chip has dropped; the vNPU goes when the chip is back.
TEST_F(EngineVnpuTest, AChipThatIsAwayIsCleanedLater) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  const vnpu::Inventory before = inventory();
  vnpu::Inventory lost = before;
  lost.chips.erase(lost.chips.begin());
  SetInventory(lost);
  vnpus_.FailList(absl::NotFoundError("no such chip"));
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_EQ(Record("a").state, ClaimState::kReleased);
  EXPECT_FALSE(HasCdi("a"));
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk()) << "the kubelet may ask again";
  EXPECT_THAT(vnpus_.Listed(), SizeIs(1));
  Claim("b", {Result(kPart0)});
  EXPECT_FALSE(plugin->engine.Prepare(Ref("b")).ok());

  // Also over a restart.
  plugin.reset();
  plugin = StartWithVnpus();
  EXPECT_TRUE(HasRecord("a"));
  vnpus_.FailList(absl::OkStatus());
  SetInventory(before);
  EXPECT_TRUE(WaitFor([&] { return !HasRecord("a"); }));
  EXPECT_THAT(vnpus_.Listed(), IsEmpty());
  EXPECT_THAT(plugin->engine.Prepare(Ref("b")), IsOk());
}

TEST_F(EngineVnpuTest, AReleasedClaimMayBePreparedAgain) {
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  const vnpu::Inventory before = inventory();
  vnpu::Inventory lost = before;
  lost.chips.erase(lost.chips.begin());
  SetInventory(lost);
  vnpus_.FailList(absl::NotFoundError("no such chip"));
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  vnpus_.FailList(absl::OkStatus());
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  EXPECT_EQ(Record("a").state, ClaimState::kCompleted);
  SetInventory(before);
  plugin.reset();
  plugin = StartWithVnpus();
  EXPECT_THAT(vnpus_.Listed(), ElementsAre("0:vir05_1c_8g:100"));
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), IsEmpty());
}

// The disk decides what a claim holds, not what this process wrote last.
TEST_F(EngineVnpuTest, AnotherInstanceGaveTheClaimAVnpu) {
  auto first = StartWithVnpus();
  auto second = StartWithVnpus();
  Claim("a", {Result("npu-1")});
  ASSERT_THAT(first->engine.Prepare(Ref("a")), IsOk());
  ASSERT_THAT(second->engine.Unprepare(Ref("a")), IsOk());
  Claim("a", {Result(kPart0)});  // allocated anew
  ASSERT_THAT(second->engine.Prepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), ElementsAre("0:vir05_1c_8g:100"));
  ASSERT_THAT(first->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_THAT(vnpus_.Listed(), IsEmpty());
  ExpectNothingLeft();
}

// Whoever wants to know is told of each attempt, with the library's word, and of the end.
TEST_F(EngineVnpuTest, WhatStaysIsTold) {
  Mutex mutex;
  std::vector<std::pair<absl::Status, bool>> kept;
  int gone = 0;
  options_.restore_retry = absl::InfiniteDuration();
  options_.vnpus_kept = [&](const ClaimRecord& record, const KeptVnpus& vnpus) {
    EXPECT_EQ(record.claim_uid, "a");
    MutexLock lock(&mutex);
    kept.emplace_back(vnpus.error, vnpus.chip_lost);
  };
  options_.vnpus_gone = [&](const ClaimRecord& record) {
    EXPECT_EQ(record.claim_uid, "a");
    MutexLock lock(&mutex);
    ++gone;
  };
  auto plugin = StartWithVnpus();
  Claim("a", {Result(kPart0)});
  ASSERT_THAT(plugin->engine.Prepare(Ref("a")), IsOk());
  vnpus_.FailDestroy(absl::FailedPreconditionError("busy"));
  EXPECT_FALSE(plugin->engine.Unprepare(Ref("a")).ok());
  {
    MutexLock lock(&mutex);
    ASSERT_FALSE(kept.empty());
    EXPECT_THAT(kept[0].first, StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("vNPU 100 (vir05_1c_8g) of chip 0 cannot be "
                                                  "destroyed")));
    EXPECT_FALSE(kept[0].second);
    EXPECT_EQ(gone, 0);
  }
  // The chip drops out.
  const vnpu::Inventory before = inventory();
  vnpu::Inventory lost = before;
  lost.chips.erase(lost.chips.begin());
  SetInventory(lost);
  vnpus_.FailList(absl::NotFoundError("no such chip"));
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  {
    MutexLock lock(&mutex);
    EXPECT_TRUE(kept.back().second);
  }
  SetInventory(before);
  vnpus_.FailList(absl::OkStatus());
  vnpus_.FailDestroy(absl::OkStatus());
  ASSERT_THAT(plugin->engine.Unprepare(Ref("a")), IsOk());
  EXPECT_TRUE(WaitFor([&] {
    MutexLock lock(&mutex);
    return gone == 1;
  }));
  plugin.reset();  // the hooks go before the engine's fixture does
}

}  // namespace
}  // namespace ascend::kubeletplugin
