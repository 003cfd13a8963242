// The vNPUs of a node as the engine sees them through the agent, with their device nodes on a fake
// host; misbehaves as a test asks for.
#ifndef ASCEND_DRA_KUBELETPLUGIN_TESTING_FAKE_VNPUS_H_
#define ASCEND_DRA_KUBELETPLUGIN_TESTING_FAKE_VNPUS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/core/mutex.h"
#include "kubeletplugin/claims/claim_vnpus.h"
#include "kubeletplugin/testing/fake_host.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

// Thread-safe, apart from `host`.
class FakeVnpus {
 public:
  // `host` may be null: then there are no nodes. It must outlive this.
  explicit FakeVnpus(FakeHost* host) : host_(host) {}
  VnpuCalls calls();

  // What somebody else does on the node.
  int Make(int physical_id, const std::string& template_name, int id = -1);
  void Destroy(int id);
  // "0:vir05_1c_8g:100", by id.
  std::vector<std::string> Listed() const;
  std::vector<vnpu::Vnpu> On(int physical_id) const;
  // All go; those whose `template_name` and chip are given come back under ids one higher.
  void Reboot(bool recovery);

  // Each call answers with this instead of working, or after it has worked; OK = neither.
  void FailCreate(absl::Status status, bool after_work = false);
  void FailDestroy(absl::Status status, bool after_work = false);
  void FailList(absl::Status status);
  void MakeNodes(bool make);
  int creates() const;
  int destroys() const;

 private:
  struct Failure {
    absl::Status status;
    bool after_work = false;
  };
  absl::StatusOr<vnpu::Vnpu> Create(const agent::VnpuRequest& request);
  int MakeLocked(int physical_id, const std::string& template_name, int id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  FakeHost* const host_;
  mutable Mutex mutex_;
  struct Entry {
    int physical_id;
    vnpu::Vnpu vnpu;
  };
  std::map<int, Entry> vnpus_ ABSL_GUARDED_BY(mutex_);  // by id
  Failure create_ ABSL_GUARDED_BY(mutex_), destroy_ ABSL_GUARDED_BY(mutex_);
  absl::Status list_ ABSL_GUARDED_BY(mutex_);
  bool make_nodes_ ABSL_GUARDED_BY(mutex_) = true;
  int creates_ ABSL_GUARDED_BY(mutex_) = 0, destroys_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_TESTING_FAKE_VNPUS_H_
