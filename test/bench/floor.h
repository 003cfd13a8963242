// What no driver can be faster than: the same API request by the same client, the same durable
// record, the same CDI file and an empty call over the same socket, one after the other and with
// nothing in between.
#ifndef ASCEND_DRA_TEST_BENCH_FLOOR_H_
#define ASCEND_DRA_TEST_BENCH_FLOOR_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cdi/store.h"
#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/kube/client.h"
#include "kubeletplugin/paths.h"
#include "test/sim/claim_ref.h"
#include "test/sim/driver_stack.h"

namespace ascend::bench {

// Record and CDI file of one claim, as the plugin wrote them.
struct FloorWork {
  kubeletplugin::ClaimRecord record;
  cdi::Spec spec;
};

// Thread-safe for different claims.
class Floor {
 public:
  // Files go into new directories beside those of the plugin, on the same file systems. `stack`
  // must have been started and must outlive the floor.
  static absl::StatusOr<std::unique_ptr<Floor>> Create(sim::DriverStack& stack);

  // Reads what the plugin wrote for a claim that is prepared at the moment.
  absl::StatusOr<FloorWork> Learn(const sim::ClaimRef& claim);

  // With the claim's own name and UID instead of those that `work` was learnt from.
  absl::Status Prepare(const sim::ClaimRef& claim, const FloorWork& work);
  absl::Status Unprepare(const sim::ClaimRef& claim);

  const std::string& records_directory() const { return records_.directory(); }
  const std::string& cdi_directory() const { return cdi_store_.directory(); }

 private:
  Floor(sim::DriverStack& stack, kubeletplugin::Paths paths, std::unique_ptr<kube::Client> client,
        const std::string& records_directory, const std::string& cdi_directory);

  sim::DriverStack& stack_;
  const kubeletplugin::Paths paths_;  // the plugin's
  const std::unique_ptr<kube::Client> client_;
  kubeletplugin::RecordStore records_;
  cdi::Store cdi_store_;
};

}  // namespace ascend::bench

#endif  // ASCEND_DRA_TEST_BENCH_FLOOR_H_
