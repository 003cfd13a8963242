// The claim engine on a node of its own: a fake host with eight chips, a fake API server, and as
// many plugin processes as a test likes.
#ifndef ASCEND_DRA_KUBELETPLUGIN_TESTING_ENGINE_FIXTURE_H_
#define ASCEND_DRA_KUBELETPLUGIN_TESTING_ENGINE_FIXTURE_H_

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "base/runtime/clock.h"
#include "cdi/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/claims/engine.h"
#include "kubeletplugin/testing/fake_host.h"
#include "kubeletplugin/testing/fake_kube_client.h"

namespace ascend::kubeletplugin {

inline constexpr char kDriver[] = "npu.huawei.com";
inline constexpr char kNode[] = "node-1";
inline constexpr char kIdPrefix[] = "k8s.npu.huawei.com/claim=";

template <typename Condition>
bool WaitFor(Condition condition) {
  const absl::Duration deadline = Clock::Real().Monotonic() + absl::Seconds(30);
  while (!condition()) {
    if (Clock::Real().Monotonic() > deadline) return false;
    ::usleep(2000);  // what is waited for is a file
  }
  return true;
}

inline kube::DeviceResult Result(const std::string& device, const std::string& request = "npu") {
  return {.request = request, .driver = kDriver, .pool = kNode, .device = device};
}

inline kube::DeviceResult AdminResult(const std::string& device,
                                      const std::string& request = "npu") {
  kube::DeviceResult result = Result(device, request);
  result.admin_access = true;
  return result;
}

inline ClaimReference Ref(const std::string& uid) {
  return {.namespace_name = "default", .name = absl::StrCat("claim-", uid), .uid = uid};
}

inline std::vector<std::string> DeviceNames(const std::vector<PreparedDevice>& devices) {
  std::vector<std::string> names;
  for (const PreparedDevice& device : devices) names.push_back(device.device);
  return names;
}

// One plugin process, as far as claims go.
struct Instance {
  Instance(const ClaimEngine::Options& options, const Paths& paths, kube::Client& client,
           const Injector& injector, InventorySource inventory)
      : records(paths.claims_directory()),
        cdi_store({.directory = paths.cdi_root()}),
        engine(options, paths, client, records, cdi_store, injector, std::move(inventory)) {}
  ClaimEngine* operator->() { return &engine; }

  RecordStore records;
  cdi::Store cdi_store;
  ClaimEngine engine;
};

class EngineTest : public ::testing::Test {
 protected:
  EngineTest()
      : paths_(Paths::Create({.kubelet_root = dir_.File("kubelet"),
                              .cdi_root = dir_.File("cdi"),
                              .driver_name = kDriver,
                              .pod_uid = ""})
                   .value()) {
    options_.node_name = kNode;
    options_.boot_id = "boot-1";
    options_.holder_wait = absl::Milliseconds(20);
    options_.restore_retry = absl::Milliseconds(10);
  }

  void SetUp() override {
    if (!FakeHost::CanMakeNodes()) GTEST_SKIP() << "mknod is refused: needs root with CAP_MKNOD";
    host_.InstallDriver();
    AddChips(8, vnpu::Family::k910B);
  }

  void AddChips(int count, vnpu::Family family) {
    vnpu::Inventory inventory;
    inventory.library = vnpu::LibraryState::kReady;
    inventory.driver_version = "25.5.1";
    for (int i = 0; i < count; ++i) {
      vnpu::Chip chip;
      chip.physical_id = chip.logic_id = chip.card_id = chip.node_number = i;
      chip.device_id = 0;
      chip.family = family;
      chip.model = "910B3";
      chip.uuid = absl::StrCat("uuid-", i);
      chip.pci_bus_id = absl::StrCat("0000:0", i, ":00.0");
      chip.roce_address = absl::StrCat("10.0.0.", i);
      if (family == vnpu::Family::kA3) chip.module_peer_physical_id = i ^ 1;
      inventory.chips.push_back(chip);
      host_.Chip(i, i);
    }
    SetInventory(inventory);
  }

  void SetInventory(const vnpu::Inventory& inventory) {
    MutexLock lock(&mutex_);
    inventory_ = std::make_shared<const vnpu::Inventory>(inventory);
  }
  vnpu::Inventory inventory() {
    MutexLock lock(&mutex_);
    return *inventory_;
  }

  std::unique_ptr<Instance> NotStarted() {
    return std::make_unique<Instance>(options_, paths_, client_, host_.injector(), [this] {
      MutexLock lock(&mutex_);
      return inventory_;
    });
  }
  std::unique_ptr<Instance> Start() {
    std::unique_ptr<Instance> instance = NotStarted();
    EXPECT_THAT(instance->engine.Start(), IsOk());
    return instance;
  }

  kube::ResourceClaim Claim(const std::string& uid, std::vector<kube::DeviceResult> results) {
    kube::ResourceClaim claim;
    claim.namespace_name = "default";
    claim.name = absl::StrCat("claim-", uid);
    claim.uid = uid;
    claim.allocation.emplace();
    claim.allocation->results = std::move(results);
    client_.SetClaim(claim);
    return claim;
  }

  std::string CdiPath(const std::string& uid) {
    return JoinPath(paths_.cdi_root(), paths_.cdi_file(uid));
  }
  std::string RecordPath(const std::string& uid) {
    return JoinPath(paths_.claims_directory(), uid);
  }
  bool HasCdi(const std::string& uid) { return std::filesystem::exists(CdiPath(uid)); }
  bool HasCdiFile(const std::string& uid) { return std::filesystem::exists(CdiPath(uid)); }
  bool HasRecord(const std::string& uid) { return std::filesystem::exists(RecordPath(uid)); }
  std::string Bytes(const std::string& path) { return ReadFile(path).value_or("no such file"); }
  cdi::Spec Spec(const std::string& uid) {
    absl::StatusOr<cdi::Spec> spec = cdi::ReadJson(Bytes(CdiPath(uid)));
    EXPECT_THAT(spec, IsOk());
    return spec.value_or(cdi::Spec{});
  }
  ClaimRecord Record(const std::string& uid) {
    absl::StatusOr<ClaimRecord> record = ParseRecord(Bytes(RecordPath(uid)));
    EXPECT_THAT(record, IsOk());
    return record.value_or(ClaimRecord{});
  }
  std::vector<std::string> ClaimLocks() {
    std::vector<std::string> locks;
    for (const std::string& name :
         ListDirectory(paths_.locks_directory()).value_or(std::vector<std::string>())) {
      if (absl::StartsWith(name, "claim-")) locks.push_back(name);
    }
    return locks;
  }
  void ExpectNothingLeft() {
    EXPECT_THAT(ListDirectory(paths_.claims_directory()), IsOkAndHolds(::testing::IsEmpty()));
    EXPECT_THAT(ListDirectory(paths_.cdi_root()), IsOkAndHolds(::testing::IsEmpty()));
    EXPECT_THAT(ClaimsWithMetadata(paths_), IsOkAndHolds(::testing::IsEmpty()));
    EXPECT_THAT(ClaimLocks(), ::testing::IsEmpty());
  }

  TempDir dir_;
  const Paths paths_;
  FakeHost host_{dir_.File("host")};
  ClaimEngine::Options options_;
  kube::FakeClient client_;
  Mutex mutex_;
  std::shared_ptr<const vnpu::Inventory> inventory_ ABSL_GUARDED_BY(mutex_);
};

inline ::testing::Matcher<std::vector<std::string>> Ids(std::vector<std::string> names) {
  for (std::string& name : names) name = absl::StrCat(kIdPrefix, name);
  return ::testing::ElementsAreArray(names);
}

inline auto Refused(const std::string& text) {
  return StatusIs(absl::StatusCode::kFailedPrecondition, ::testing::HasSubstr(text));
}

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_TESTING_ENGINE_FIXTURE_H_
