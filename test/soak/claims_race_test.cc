// Sixty-four callers at once, on one engine and on two that share a node: what the schedules of
// claims_model_test do one after the other happens here side by side.
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/directory_watch.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/runtime/logging.h"
#include "cdi/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "test/soak/claims_model.h"
#include "test/soak/claims_node.h"
#include "test/soak/sanitizer.h"
#include "test/soak/wait.h"

namespace ascend::soak {
namespace {

using kubeletplugin::ClaimReference;
using kubeletplugin::ParseRecord;
using kubeletplugin::PreparedDevice;
using ::testing::IsEmpty;

constexpr int kChips = 16;
constexpr int kCallers = 64;
constexpr absl::Duration kPatience = absl::Seconds(120);

ClaimReference Ref(const std::string& name, const std::string& uid) {
  return {.namespace_name = kNamespace, .name = name, .uid = uid};
}

std::vector<std::string> CdiIds(const std::vector<PreparedDevice>& devices) {
  std::vector<std::string> ids;
  for (const PreparedDevice& device : devices) {
    ids.insert(ids.end(), device.cdi_device_ids.begin(), device.cdi_device_ids.end());
  }
  return ids;
}

class ClaimsRaceTest : public ::testing::Test {
 protected:
  ClaimsRaceTest() : node_(kChips) {
    InitLogging({.silent = true});
    // Nobody is to be refused only because the machine is slow.
    node_.options.prepare_budget = node_.options.lock_wait = node_.options.holder_wait = kPatience;
  }
  ~ClaimsRaceTest() override { InitLogging({}); }

  void SetUp() override {
    if (!CanMakeNodes()) GTEST_SKIP() << "mknod is refused: needs root with CAP_MKNOD";
  }

  // Engines that hear of each other's records, as the plugin's do.
  void StartEngines(int count) {
    for (int i = 0; i < count; ++i) ASSERT_THAT(node_.StartEngine(), IsOk());
    auto watch =
        DirectoryWatch::Start(node_.paths().claims_directory(), [this] { node_.NotifyChange(); });
    ASSERT_THAT(watch, IsOk());
    watch_ = *std::move(watch);
  }

  void TearDown() override { watch_.reset(); }

  static kube::DeviceResult Result(int chip) {
    return {
        .request = "npu", .driver = kDriver, .pool = kNode, .device = absl::StrCat("npu-", chip)};
  }

  void SetClaim(const std::string& name, const std::string& uid,
                std::vector<kube::DeviceResult> results) {
    kube::ResourceClaim claim;
    claim.namespace_name = kNamespace;
    claim.name = name;
    claim.uid = uid;
    claim.allocation.emplace();
    claim.allocation->results = std::move(results);
    node_.client.SetClaim(claim);
  }

  kubeletplugin::ClaimEngine& engine(unsigned number) {
    return node_.engine(number % node_.engines());
  }

  static void Run(int callers, const std::function<void(int)>& caller) {
    std::vector<std::thread> threads;
    threads.reserve(static_cast<size_t>(callers));
    for (int i = 0; i < callers; ++i) threads.emplace_back(caller, i);
    for (std::thread& thread : threads) thread.join();
  }

  // Records and CDI files belong together, and no chip has two exclusive holders.
  void ExpectWhole() {
    const std::vector<std::string> records = ClaimsNode::Names(node_.paths().claims_directory());
    std::vector<std::string> expected;
    std::map<int, std::string> holders;
    for (const std::string& uid : records) {
      expected.push_back(node_.paths().cdi_file(uid));
      const auto record = ParseRecord(ReadFile(node_.RecordPath(uid)).value_or(""));
      ASSERT_THAT(record, IsOk());
      EXPECT_THAT(cdi::ReadJson(ReadFile(node_.CdiPath(uid)).value_or("")), IsOk()) << uid;
      for (const auto& device : record->devices) {
        if (device.admin_access || !device.share_id.empty()) continue;
        const auto [holder, first] = holders.emplace(device.chips.at(0).physical_id, uid);
        EXPECT_TRUE(first) << device.device << " of " << holder->second << " and " << uid;
      }
    }
    EXPECT_THAT(ClaimsNode::Names(node_.paths().cdi_root()),
                ::testing::UnorderedElementsAreArray(expected));
  }

  void ExpectNothingLeft() {
    EXPECT_THAT(ClaimsNode::Names(node_.paths().claims_directory()), IsEmpty());
    EXPECT_THAT(ClaimsNode::Names(node_.paths().cdi_root()), IsEmpty());
    EXPECT_THAT(node_.ClaimLocks(), IsEmpty());
  }

  ClaimsNode node_;
  std::unique_ptr<DirectoryWatch> watch_;
};

// ORD-07, ORD-17: the kubelet gave up and asks again, many times, while the first call still waits
// for the API server: all get the one answer.
TEST_F(ClaimsRaceTest, OneClaimPreparedByAllAtOnce) {
  StartEngines(2);
  SetClaim("a", "uid-a", {Result(3), Result(1)});
  for (int round = 0; round < (kSanitized ? 3 : 20); ++round) {
    std::vector<std::vector<std::string>> answers(kCallers);
    node_.client.BlockGets();
    std::thread release([&] {
      EXPECT_TRUE(node_.client.WaitForBlockedGets(kCallers));
      node_.client.ReleaseGets();
    });
    Run(kCallers, [&](int caller) {
      const auto answer = engine(static_cast<unsigned>(caller)).Prepare(Ref("a", "uid-a"));
      EXPECT_THAT(answer, IsOk());
      if (answer.ok()) answers[static_cast<size_t>(caller)] = CdiIds(*answer);
    });
    release.join();
    EXPECT_THAT(answers, ::testing::Each(answers[0]));
    EXPECT_GE(answers[0].size(), 2u);
    ExpectWhole();
    ASSERT_THAT(engine(static_cast<unsigned>(round)).Unprepare(Ref("a", "uid-a")), IsOk());
    ExpectNothingLeft();
  }
}

// ORD-04, ORD-05, ORD-13: several Prepares and Unprepares of one claim at once, each through either
// instance; the last call decides.
TEST_F(ClaimsRaceTest, AThousandInterleavingsThroughTwoInstances) {
  StartEngines(2);
  SetClaim("a", "uid-a", {Result(0)});
  const ClaimReference a = Ref("a", "uid-a");
  std::mt19937 random(20260102);
  for (int round = 0; round < 1000; ++round) {
    const unsigned kinds = random(), engines = random();
    std::vector<absl::Status> prepared(4);
    Run(4, [&](int caller) {
      kubeletplugin::ClaimEngine& one = engine(engines >> caller);
      if ((kinds >> caller) % 2 == 0) {
        EXPECT_THAT(one.Unprepare(a), IsOk());
      } else {
        prepared[static_cast<size_t>(caller)] = one.Prepare(a).status();
      }
    });
    for (const absl::Status& status : prepared) {
      ASSERT_TRUE(status.ok() || absl::IsAborted(status)) << status;
    }
    ASSERT_EQ(node_.HasRecord(a.uid), node_.HasCdi(a.uid)) << "round " << round;
    if (random() % 2 == 0) {
      ASSERT_THAT(engine(random()).Prepare(a), IsOk());
      ASSERT_TRUE(node_.HasRecord(a.uid) && node_.HasCdi(a.uid)) << "round " << round;
    } else {
      ASSERT_THAT(engine(random()).Unprepare(a), IsOk());
      ASSERT_FALSE(node_.HasRecord(a.uid) || node_.HasCdi(a.uid)) << "round " << round;
    }
  }
  ASSERT_THAT(engine(0).Unprepare(a), IsOk());
  ExpectNothingLeft();
}

// ORD-01: pods are force-deleted one after the other. The next claim on the chip is always asked
// for before the one that holds it is unprepared, waits, and gets it.
TEST_F(ClaimsRaceTest, AChipGoesFromOneForceDeletedPodToTheNext) {
  StartEngines(2);
  constexpr int kPods = kSanitized ? 10 : 30;
  std::vector<std::atomic<int>> owners(kChips);
  Run(kChips, [&](int chip) {
    const auto uid = [&](int pod) { return absl::StrCat("uid-", chip, "-", pod); };
    const auto name = [&](int pod) { return absl::StrCat("claim-", chip, "-", pod); };
    std::atomic<int>& owner = owners[static_cast<size_t>(chip)];
    SetClaim(name(0), uid(0), {Result(chip)});
    EXPECT_THAT(engine(0).Prepare(Ref(name(0), uid(0))), IsOk());
    owner = 1;
    for (int pod = 1; pod < kPods; ++pod) {
      SetClaim(name(pod), uid(pod), {Result(chip)});
      std::thread next([&] {
        EXPECT_THAT(engine(static_cast<unsigned>(pod)).Prepare(Ref(name(pod), uid(pod))), IsOk());
        EXPECT_EQ(owner.exchange(pod + 1), 0) << "chip " << chip << " was not free";
      });
      EXPECT_EQ(owner.exchange(0), pod);
      EXPECT_THAT(engine(static_cast<unsigned>(chip)).Unprepare(Ref(name(pod - 1), uid(pod - 1))),
                  IsOk());
      next.join();
    }
    EXPECT_THAT(engine(0).Unprepare(Ref(name(kPods - 1), uid(kPods - 1))), IsOk());
  });
  ExpectNothingLeft();
}

// REC-06, ORD-01: a claim is re-created under its name while callers ask for the old UID and the
// new one. The old one's record keeps the chip until it is unprepared; never are both prepared.
TEST_F(ClaimsRaceTest, AClaimIsReCreatedUnderItsName) {
  StartEngines(2);
  constexpr int kRounds = kSanitized ? 15 : 100;
  Run(kChips, [&](int chip) {
    const std::string name = absl::StrCat("claim-", chip);
    const auto uid = [&](int round) { return absl::StrCat("uid-", chip, "-", round); };
    SetClaim(name, uid(0), {Result(chip)});
    EXPECT_THAT(engine(0).Prepare(Ref(name, uid(0))), IsOk());
    for (int round = 1; round < kRounds; ++round) {
      const ClaimReference old = Ref(name, uid(round - 1)), next = Ref(name, uid(round));
      std::thread again([&] {
        // Prepared already, or refused: it was replaced, or unprepared meanwhile.
        const absl::Status status = engine(static_cast<unsigned>(round)).Prepare(old).status();
        EXPECT_TRUE(status.ok() || absl::IsAborted(status) ||
                    absl::StrContains(status.message(), "was replaced"))
            << status;
        EXPECT_THAT(engine(static_cast<unsigned>(round)).Unprepare(old), IsOk());
      });
      SetClaim(name, next.uid, {Result(chip)});
      EXPECT_THAT(engine(static_cast<unsigned>(chip)).Prepare(next), IsOk());
      again.join();
      EXPECT_TRUE(node_.HasRecord(next.uid) && node_.HasCdi(next.uid));
      EXPECT_FALSE(node_.HasRecord(old.uid) || node_.HasCdi(old.uid));
    }
    EXPECT_THAT(engine(0).Unprepare(Ref(name, uid(kRounds - 1))), IsOk());
  });
  ExpectNothingLeft();
}

// ORD-02, ORD-13, ORD-18, CDI-10: everything at once. Callers with a claim of their own each, of
// all three kinds, callers that share claims, a third instance that starts and stops all the time,
// and somebody who removes CDI files.
TEST_F(ClaimsRaceTest, SixtyFourCallersTwoInstancesAndTheRest) {
  StartEngines(2);
  constexpr int kRounds = kSanitized ? 6 : 25;
  constexpr int kSharedClaims = 4;
  // The last chips belong to the claims that several callers share.
  constexpr int kOwnChips = kChips - kSharedClaims;
  for (int i = 0; i < kSharedClaims; ++i) {
    SetClaim(absl::StrCat("shared-", i), absl::StrCat("uid-shared-", i), {Result(kOwnChips + i)});
  }
  std::vector<std::atomic<int>> owners(kChips);
  std::atomic<bool> stop = false;
  std::thread restarts([&] {
    while (!stop) {
      std::unique_ptr<ClaimsNode::Instance> third = node_.MakeInstance();
      EXPECT_THAT(third->engine.Start(), IsOk());
    }
  });
  std::thread cleaner([&] {
    while (!stop) {
      for (const std::string& name : ClaimsNode::Names(node_.paths().cdi_root())) {
        ::unlink(JoinPath(node_.paths().cdi_root(), name).c_str());
      }
      ::usleep(5000);  // a cleaner that leaves them no time proves nothing
    }
  });
  Run(kCallers, [&](int caller) {
    std::mt19937 random(static_cast<unsigned>(caller));
    const int kind = caller % 4;  // 0, 1: exclusive; 2: admin access; 3: shared claims
    for (int round = 0; round < kRounds; ++round) {
      if (kind == 3) {
        const unsigned number = random() % kSharedClaims;
        const ClaimReference shared =
            Ref(absl::StrCat("shared-", number), absl::StrCat("uid-shared-", number));
        if (random() % 2 == 0) {
          EXPECT_THAT(engine(random()).Unprepare(shared), IsOk());
        } else {
          const absl::Status status = engine(random()).Prepare(shared).status();
          EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
        }
        continue;
      }
      const ClaimReference own =
          Ref(absl::StrCat("claim-", caller), absl::StrCat("uid-", caller, "-", round));
      std::set<int> chips;
      for (int i = caller % 3; i >= 0; --i) {
        chips.insert(static_cast<int>(random() % kOwnChips));
      }
      std::vector<kube::DeviceResult> results;
      for (int chip : chips) {
        results.push_back(Result(chip));
        results.back().admin_access = kind == 2;
      }
      SetClaim(own.name, own.uid, results);
      const auto answer = engine(random()).Prepare(own);
      EXPECT_THAT(answer, IsOk());
      EXPECT_EQ(answer.ok() ? answer->size() : 0, chips.size());
      EXPECT_TRUE(node_.HasRecord(own.uid));
      if (kind != 2) {
        for (int chip : chips) {
          EXPECT_EQ(owners[static_cast<size_t>(chip)].exchange(caller + 1), 0) << "chip " << chip;
        }
        for (int chip : chips) {
          EXPECT_EQ(owners[static_cast<size_t>(chip)].exchange(0), caller + 1) << "chip " << chip;
        }
      }
      EXPECT_THAT(engine(random()).Unprepare(own), IsOk());
      EXPECT_FALSE(node_.HasRecord(own.uid));
    }
  });
  stop = true;
  restarts.join();
  cleaner.join();
  // What the cleaner took last comes back.
  EXPECT_TRUE(WaitFor(
      [&] {
        for (const std::string& uid : ClaimsNode::Names(node_.paths().claims_directory())) {
          if (!node_.HasCdi(uid)) return false;
        }
        return true;
      },
      kPatience));
  ExpectWhole();
  for (int i = 0; i < kSharedClaims; ++i) {
    EXPECT_THAT(engine(0).Unprepare(Ref("any", absl::StrCat("uid-shared-", i))), IsOk());
  }
  watch_.reset();
  node_.StopEngines();
  ExpectNothingLeft();
}

}  // namespace
}  // namespace ascend::soak
