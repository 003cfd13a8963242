#include "kubeletplugin/claims/dead_claims.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "base/runtime/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/testing/fake_kube_client.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// One prepared claim "a" of chip 2; a test says what is known about it.
class DeadClaimsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(records_.Prepare(), IsOk());
    ClaimRecord record;
    record.claim_namespace = "default";
    record.claim_name = "claim-a";
    record.claim_uid = "a";
    RecordedDevice device;
    device.requests = {"npu"};
    device.pool = "node-1";
    device.device = "npu-2";
    device.chips = {{.physical_id = 2}};
    record.devices = {device};
    ASSERT_THAT(records_.Write(record), IsOk());
  }

  kube::ResourceClaim Claim(const std::string& uid, const std::string& device) {
    kube::ResourceClaim claim;
    claim.namespace_name = "default";
    claim.name = "claim-a";
    claim.uid = uid;
    if (!device.empty()) {
      kube::DeviceResult result;
      result.driver = "npu.huawei.com";
      result.pool = "node-1";
      result.device = device;
      claim.allocation.emplace().results = {result};
    }
    return claim;
  }

  void Start() {
    sweeper_ = std::make_unique<DeadClaimSweeper>(
        DeadClaimSweeper::Options{
            .driver = "npu.huawei.com", .period = absl::Milliseconds(2), .periods = 3},
        records_, client_, events_,
        DeadClaimSweeper::Sources{
            .registered =
                [this] {
                  MutexLock lock(&mutex_);
                  ++looks_;
                  changed_.SignalAll();
                  return known_.registered;
                },
            .container_uses = [this]() -> absl::StatusOr<std::vector<ContainerUse>> {
              MutexLock lock(&mutex_);
              return known_.uses;
            },
            .processes = [this](const std::vector<int>& ids)
                -> absl::StatusOr<std::vector<vnpu::ChipProcesses>> {
              EXPECT_THAT(ids, ElementsAre(2));
              MutexLock lock(&mutex_);
              return known_.processes;
            },
            .unprepare =
                [this](const ClaimReference& claim) {
                  EXPECT_THAT(records_.Remove(claim.uid), IsOk());
                  MutexLock lock(&mutex_);
                  known_.unprepared.push_back(claim.uid);
                  changed_.SignalAll();
                  return absl::OkStatus();
                },
            .quarantine =
                [this](const std::vector<UnreadableRecord>& unreadable) {
                  return FindQuarantine(unreadable, *paths_);
                }});
  }
  // After so many looks everything that could happen has happened.
  void ExpectKept() {
    MutexLock lock(&mutex_);
    const int enough = looks_ + 12;
    while (looks_ < enough && known_.unprepared.empty()) changed_.Wait(&mutex_);
    EXPECT_THAT(known_.unprepared, IsEmpty());
  }
  void ExpectReleased() {
    MutexLock lock(&mutex_);
    const absl::Duration end = Clock::Real().Monotonic() + absl::Seconds(30);
    while (known_.unprepared.empty() && Clock::Real().Monotonic() < end) {
      changed_.WaitFor(&mutex_, absl::Seconds(1));
    }
    EXPECT_THAT(known_.unprepared, ElementsAre("a"));
  }
  template <typename Change>
  void Set(Change change) {
    MutexLock lock(&mutex_);
    change(known_);
  }

  // What a container on this node lists for "claim-a".
  static std::vector<ContainerUse> UseOf(const std::string& device) {
    ContainerUse use;
    use.pod_namespace = "default";
    use.pod_name = "p";
    use.claim_name = "claim-a";
    use.devices = {{.pool = "node-1", .device = device, .share_id = ""}};
    return {use};
  }
  // Of a record "bad" with these bytes, reported while the claim "a" lives.
  kube::Event UnreadableEvent(const std::string& bytes) {
    client_.SetClaim(Claim("a", "npu-2"));
    EXPECT_THAT(WriteFileAtomically(dir_.File("claims/bad"), bytes), IsOk());
    Start();
    ExpectKept();
    EXPECT_EQ(client_.events().size(), 1u);
    return client_.events().empty() ? kube::Event() : client_.events()[0];
  }

  TempDir dir_;
  absl::StatusOr<Paths> paths_ = Paths::Create({.kubelet_root = dir_.File("kubelet"),
                                                .cdi_root = dir_.File("cdi"),
                                                .driver_name = "npu.huawei.com",
                                                .pod_uid = ""});
  RecordStore records_{dir_.File("claims")};
  kube::FakeClient client_;
  kube::EventRecorder events_{{.controller = "npu.huawei.com", .node_name = "node-1"}, client_};
  Mutex mutex_;
  CondVar changed_;
  struct Known {
    bool registered = true;
    absl::StatusOr<std::vector<ContainerUse>> uses = std::vector<ContainerUse>();
    absl::StatusOr<std::vector<vnpu::ChipProcesses>> processes =
        std::vector<vnpu::ChipProcesses>{{.physical_id = 2, .known = true}};
    std::vector<std::string> unprepared;
  };
  Known known_ ABSL_GUARDED_BY(mutex_);
  int looks_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<DeadClaimSweeper> sweeper_;  // goes first
};

// REC-06: with the whole proof.
TEST_F(DeadClaimsTest, AClaimThatIsGoneIsReleased) {
  Start();
  ExpectReleased();
  ASSERT_TRUE(client_.WaitUntil([&] { return !client_.events().empty(); }));
  EXPECT_EQ(client_.events().at(0).reason, "DeadClaimReleased");
  EXPECT_EQ(client_.events().at(0).regarding.kind, "Node");
  EXPECT_THAT(client_.events().at(0).message, HasSubstr("default/claim-a (UID a)"));
}

TEST_F(DeadClaimsTest, ReplacedAndReallocatedClaimsAreReleased) {
  for (const kube::ResourceClaim& claim :
       {Claim("another", "npu-2"), Claim("a", "npu-3"), Claim("a", "")}) {
    client_.SetClaim(claim);
    Set([&](auto& known) { known.unprepared.clear(); });
    SetUp();
    Start();
    ExpectReleased();
    sweeper_.reset();
  }
}

// REC-06: each part of the proof missing in turn.
TEST_F(DeadClaimsTest, ALivingClaimIsKept) {
  client_.SetClaim(Claim("a", "npu-2"));
  Start();
  ExpectKept();
}

TEST_F(DeadClaimsTest, ApiErrorsChangeNothing) {
  client_.FailGets(absl::UnavailableError("HTTP 500"), 1 << 20);
  Start();
  ExpectKept();
}

TEST_F(DeadClaimsTest, AKubeletThatIsAwayChangesNothing) {
  Set([&](auto& known) { known.registered = false; });
  Start();
  ExpectKept();
  Set([&](auto& known) {
    known.registered = true;
    known.uses = absl::UnavailableError("no socket");
  });
  ExpectKept();
  Set([&](auto& known) { known.uses = std::vector<ContainerUse>(); });
  ExpectReleased();
}

TEST_F(DeadClaimsTest, AClaimThatAContainerUsesIsKept) {
  Set([&](auto& known) { known.uses = UseOf("npu-2"); });
  Start();
  ExpectKept();
}

// REC-06: the pod of the claim that took the name uses another chip.
TEST_F(DeadClaimsTest, AContainerOfTheNextClaimOfThatNameKeepsNothing) {
  client_.SetClaim(Claim("another", "npu-3"));
  Set([&](auto& known) { known.uses = UseOf("npu-3"); });
  Start();
  ExpectReleased();
}

TEST_F(DeadClaimsTest, AChipThatAProcessUsesIsKeptAndReportedOnce) {
  Set([&](auto& known) {
    known.processes = std::vector<vnpu::ChipProcesses>{
        {.physical_id = 2, .known = true, .processes = {{.pid = 77, .name = "python3"}}}};
  });
  Start();
  ASSERT_TRUE(client_.WaitUntil([&] { return !client_.events().empty(); }));
  ExpectKept();
  ASSERT_EQ(client_.events().size(), 1u);
  EXPECT_EQ(client_.events()[0].reason, "ClaimNotReleased");
  EXPECT_TRUE(client_.events()[0].warning);
  EXPECT_THAT(client_.events()[0].message,
              AllOf(HasSubstr("default/claim-a"), HasSubstr("process 77 (python3) uses chip 2")));
  Set([&](auto& known) {
    known.processes = std::vector<vnpu::ChipProcesses>{{.physical_id = 2, .known = true}};
  });
  ExpectReleased();
}

TEST_F(DeadClaimsTest, WhatCannotBeToldIsKept) {
  Set([&](auto& known) { known.processes = absl::UnavailableError("agent is away"); });
  Start();
  ASSERT_TRUE(client_.WaitUntil([&] { return !client_.events().empty(); }));
  EXPECT_THAT(client_.events()[0].message, HasSubstr("agent is away"));
  ExpectKept();
  Set([&](auto& known) {
    known.processes =
        std::vector<vnpu::ChipProcesses>{{.physical_id = 2, .known = false, .error = "hung"}};
  });
  ExpectKept();
  Set([&](auto& known) { known.processes = std::vector<vnpu::ChipProcesses>(); });
  ExpectKept();
}

TEST_F(DeadClaimsTest, WhatIsKeptIsReportedOnceTheApiServerIsBack) {
  Set([&](auto& known) { known.processes = absl::UnavailableError("agent is away"); });
  client_.FailEvents(absl::UnavailableError("HTTP 503"), 3);
  Start();
  ASSERT_TRUE(client_.WaitUntil([&] { return !client_.events().empty(); }));
  ExpectKept();
  ASSERT_EQ(client_.events().size(), 1u);
  EXPECT_EQ(client_.events()[0].reason, "ClaimNotReleased");
  EXPECT_EQ(client_.event_attempts(), 4);
}

// REC-03: an Event on the Node, once per record.
TEST_F(DeadClaimsTest, UnreadableRecordsAreReported) {
  const kube::Event event = UnreadableEvent("garbage");
  EXPECT_EQ(event.reason, "ClaimRecordUnreadable");
  EXPECT_EQ(event.regarding.kind, "Node");
  EXPECT_EQ(event.regarding.name, "node-1");
  EXPECT_THAT(event.message,
              AllOf(HasSubstr("UID bad"), HasSubstr("every free chip of the node is withheld"),
                    HasSubstr("remove"), HasSubstr("claims/bad on the node")));
}

TEST_F(DeadClaimsTest, UnreadableRecordsAreReportedOnceTheApiServerIsBack) {
  client_.FailEvents(absl::UnavailableError("HTTP 503"), 3);
  EXPECT_EQ(UnreadableEvent("garbage").reason, "ClaimRecordUnreadable");
  EXPECT_EQ(client_.event_attempts(), 4);
}

// REC-02: it is not to be removed, and it still tells its chips.
TEST_F(DeadClaimsTest, ARecordOfANewerVersionAsksForThatVersion) {
  const std::string line = R"({"formatVersion":99,"state":"Completed","bootID":"b","claim":{},)"
                           R"("devices":[{"device":"npu-5"}]})";
  const std::string bytes =
      absl::StrCat(line, "\ncrc32c:", absl::Hex(Crc32c(line), absl::kZeroPad8), "\n");
  EXPECT_THAT(UnreadableEvent(bytes).message,
              AllOf(HasSubstr("its chips (5) are withheld"), HasSubstr("upgrade the driver"),
                    Not(HasSubstr("remove")), Not(HasSubstr("every free chip"))));
}

}  // namespace
}  // namespace ascend::kubeletplugin
