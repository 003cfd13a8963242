// Allocated claims by the thousand, without a scheduler.
#ifndef ASCEND_DRA_TEST_BENCH_CLAIMS_H_
#define ASCEND_DRA_TEST_BENCH_CLAIMS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "test/sim/api_server.h"
#include "test/sim/claim_ref.h"

namespace ascend::bench {

// Claims like one that the simulated scheduler allocated, with names and UIDs of their own, for the
// same devices whoever holds them. Not thread-safe.
class ClaimSource {
 public:
  // `devices` are names in the node's slices.
  static absl::StatusOr<ClaimSource> Create(sim::ApiServer& server, std::string prefix,
                                            const std::vector<std::string>& devices);
  absl::StatusOr<sim::ClaimRef> Make();
  // Takes all claims made so far off the server.
  absl::Status DeleteAll();

 private:
  ClaimSource(sim::ApiServer& server, std::string prefix)
      : server_(&server), prefix_(std::move(prefix)) {}

  sim::ApiServer* server_;
  std::string prefix_;
  std::vector<std::string> devices_;
  nlohmann::json pattern_;
  int made_ = 0;
  std::vector<std::string> names_;
};

}  // namespace ascend::bench

#endif  // ASCEND_DRA_TEST_BENCH_CLAIMS_H_
