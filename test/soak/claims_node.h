// A node as far as claims go: its directories (in memory), device nodes, an inventory, an API
// server that answers late and fails as told, and claim engines that come and go as processes do.
#ifndef ASCEND_DRA_TEST_SOAK_CLAIMS_NODE_H_
#define ASCEND_DRA_TEST_SOAK_CLAIMS_NODE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/core/mutex.h"
#include "base/core/temp_dir.h"
#include "cdi/store.h"
#include "kubeletplugin/claims/engine.h"
#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/paths.h"
#include "kubeletplugin/testing/fake_host.h"
#include "kubeletplugin/testing/fake_kube_client.h"

namespace ascend::soak {

inline constexpr char kDriver[] = "npu.huawei.com";
inline constexpr char kNode[] = "node-1";
inline constexpr char kNamespace[] = "default";

// Whether chips can be given device nodes here: tests skip where not (it takes root).
bool CanMakeNodes();

// Thread-safe, as FakeClient is.
class SlowClient : public kube::FakeClient {
 public:
  // Runs `happens` while the answer to the next GET of a claim is on its way: what it changes is
  // not in the answer.
  void DuringNextGet(std::function<void()> happens);

  absl::StatusOr<kube::ResourceClaim> GetResourceClaim(const std::string& namespace_name,
                                                       const std::string& name,
                                                       absl::Duration timeout) override;

 private:
  Mutex mutex_;
  std::function<void()> happens_ ABSL_GUARDED_BY(mutex_);
};

// Thread-safe, but for starting and stopping engines.
class ClaimsNode {
 public:
  // Chips 0 to `chips` - 1, all there, no engine.
  explicit ClaimsNode(int chips);

  // --- Chips ---
  // Whether the library lists the chip, as which hardware, and whether its device node is there.
  void SetChip(int chip, bool listed, const std::string& uuid, bool node);

  // --- Engines: each with stores of its own, as a process has. ---
  kubeletplugin::ClaimEngine::Options options;  // of engines that start from now on
  absl::Status StartEngine();
  // Without any farewell to the claims.
  void StopEngine(size_t index);
  void StopEngines();
  size_t engines() const { return instances_.size(); }
  kubeletplugin::ClaimEngine& engine(size_t index) { return instances_[index]->engine; }
  // Tells all of them that records or the inventory changed.
  void NotifyChange();

  struct Instance {
    Instance(ClaimsNode& node, const kubeletplugin::ClaimEngine::Options& options);
    kubeletplugin::RecordStore records;
    cdi::Store cdi_store;
    kubeletplugin::ClaimEngine engine;
  };
  // One more that is the caller's own, not started. Thread-safe.
  std::unique_ptr<Instance> MakeInstance() { return std::make_unique<Instance>(*this, options); }

  // --- What lies on the disk ---
  std::string CdiPath(const std::string& uid) const;
  std::string RecordPath(const std::string& uid) const;
  bool HasCdi(const std::string& uid) const;
  bool HasRecord(const std::string& uid) const;
  // Names in a directory; empty if there is none.
  static std::vector<std::string> Names(const std::string& directory);
  // UIDs of the claims that have a lock file.
  std::vector<std::string> ClaimLocks() const;
  // As tmpfs after a reboot, or a cleaner: whether or not the directory itself goes.
  void EmptyCdiDirectory(bool with_directory);

  SlowClient client;
  const kubeletplugin::Paths& paths() const { return paths_; }

 private:
  void SetInventory(int chip, bool listed, const std::string& uuid);

  const TempDir dir_ = TempDir::InMemory();
  const kubeletplugin::Paths paths_;
  kubeletplugin::FakeHost host_;
  mutable Mutex mutex_;
  std::shared_ptr<const vnpu::Inventory> inventory_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Instance>> instances_;
};

}  // namespace ascend::soak

#endif  // ASCEND_DRA_TEST_SOAK_CLAIMS_NODE_H_
