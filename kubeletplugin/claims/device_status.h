// Says in the claims' status.devices what was prepared and how it is: conditions Ready and Healthy,
// the chips' identities, and the network address of each chip (for rank tables). Information for
// people and programs only: nothing waits for it, and Prepare succeeds without it.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_DEVICE_STATUS_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_DEVICE_STATUS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "kubeletplugin/claims/record.h"
#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/health/device_verdict.h"
#include "kubeletplugin/kube/client.h"
#include "kubeletplugin/kube/device_status.h"

namespace ascend::kubeletplugin {

// The chips' RoCE addresses as networks of one address each ("10.0.0.1/32").
std::vector<std::string> RoceNetworks(const RecordedDevice& device);

// One entry per device of the record. Pure.
std::vector<kube::DeviceStatus> DeviceStatusesOf(const ClaimRecord& record,
                                                 const std::string& driver,
                                                 const ChipVerdicts& health);

// Follows the records and the chips' health, and writes the status of each claim when it changes,
// on a thread of its own. What is transient
// is tried again for as long as the record lives; what is not is logged once and left.
class DeviceStatusWriter {
 public:
  struct Options {
    std::string driver;
    // From a change of the records until it is looked at. The kubelet's answer goes first, and what
    // comes meanwhile is taken in.
    absl::Duration settle = absl::Milliseconds(500);
    absl::Duration min_backoff = absl::Seconds(1);
    absl::Duration max_backoff = absl::Minutes(1);
  };
  using Health = std::function<std::shared_ptr<const ChipVerdicts>()>;  // never null

  // Both must outlive it. Writes those of all present records first: the instance before may have
  // ended in between.
  DeviceStatusWriter(Options options, RecordStore& records, kube::Client& client, Health health);
  // Waits for a request under way: shut the client down before.
  ~DeviceStatusWriter();
  // Records or health changed: look soon. Thread-safe, never blocks on the API server.
  void Wake();

 private:
  void Run();
  // Whether nothing is left to write.
  bool WriteAll();

  const Options options_;
  RecordStore& records_;
  kube::Client& client_;
  const Health health_;

  Mutex mutex_;
  CondVar changed_;
  bool wake_ ABSL_GUARDED_BY(mutex_) = true;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;

  // The thread's own: what was written, or given up, by claim UID.
  std::map<std::string, std::vector<kube::DeviceStatus>> done_;
  absl::Status last_error_;  // keeps the log quiet about what it said already
  std::thread thread_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_DEVICE_STATUS_H_
