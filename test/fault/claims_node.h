// A node as far as claims go: eight chips, the claims of the scenario, and a plugin that can be
// started again over what the last one left on disk.
#ifndef ASCEND_DRA_TEST_FAULT_CLAIMS_NODE_H_
#define ASCEND_DRA_TEST_FAULT_CLAIMS_NODE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cdi/store.h"
#include "kubeletplugin/claims/engine.h"
#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/paths.h"
#include "kubeletplugin/testing/fake_kube_client.h"
#include "test/fault/hardware.h"

namespace ascend::fault {

// The UIDs of all claims of the scenario:
//   one     chip 0                pair    chips 1 and 2
//   admin   chip 0, adminAccess   shares  two shares of chip 3
//   thief   chip 0, while `one` holds it; later in its place
//   never   chip 4; only ever unprepared
//   part    a quarter of chip 5, a vNPU that is made for it
const std::vector<std::string>& ClaimUids();

class ClaimsNode {
 public:
  // `state` gets the directories "kubelet", "cdi" and "hardware"; `host` is a FakeHost's, and only
  // read.
  ClaimsNode(const std::string& state, const std::string& host, const std::string& boot_id);

  ~ClaimsNode();

  // From the next start on: a Prepare waits so long for a chip that is held. Nobody lets go of one
  // of the scenario meanwhile.
  void set_holder_wait(absl::Duration wait) { options_.holder_wait = wait; }
  // The next question to the API server gets no answer and has to be asked again after a pause.
  void FailNextGet();

  // A new plugin process, as it were.
  absl::Status Start();

  // What is answered, as text. A claim's reference is made of its UID.
  absl::StatusOr<std::string> Prepare(const std::string& uid);
  absl::Status Unprepare(const std::string& uid);

  // What a crash, an operator and time may leave behind for the next start: the CDI file of `one`
  // gone, one that belongs to no claim, and an old lock and old temporaries.
  absl::Status Damage();

  // Makes every temporary and lock look as old as those of a long dead process.
  absl::Status MakeLeftoversOld();

  // Temporary files that are there, by path.
  absl::StatusOr<std::vector<std::string>> Temporaries() const;
  // UIDs for which there is a claim lock.
  absl::StatusOr<std::vector<std::string>> ClaimLocks() const;
  // Names in the CDI directory, without temporaries.
  absl::StatusOr<std::vector<std::string>> CdiFiles() const;
  absl::StatusOr<kubeletplugin::RecordStore::Contents> Records();
  // "5:vir05_1c_8g:180" of each vNPU there is.
  std::vector<std::string> Vnpus() const { return hardware_.Listed(); }

  const kubeletplugin::Paths& paths() const { return paths_; }
  const std::string& state() const { return state_; }
  const std::string& boot_id() const { return options_.boot_id; }

 private:
  struct Plugin;

  const std::string state_;
  const std::string host_;
  const kubeletplugin::Paths paths_;
  Hardware hardware_;
  kubeletplugin::ClaimEngine::Options options_;
  kube::FakeClient client_;
  std::shared_ptr<const vnpu::Inventory> inventory_;
  std::unique_ptr<Plugin> plugin_;
};

}  // namespace ascend::fault

#endif  // ASCEND_DRA_TEST_FAULT_CLAIMS_NODE_H_
