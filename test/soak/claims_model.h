// What a claim engine must do, said a second time, without files, locks or hardware: the API's
// claims, the chips and the prepared claims as plain values. A test applies each operation to both
// and compares. Not thread-safe.
#ifndef ASCEND_DRA_TEST_SOAK_CLAIMS_MODEL_H_
#define ASCEND_DRA_TEST_SOAK_CLAIMS_MODEL_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kubeletplugin/claims/engine.h"
#include "kubeletplugin/kube/resource_claim.h"

namespace ascend::soak {

struct ModelChip {
  bool listed = true;  // by the library
  bool node = true;    // its device node is there
  std::string uuid;
};

// A reason why a Prepare must fail: the error's code, and what its message has to say.
struct Refusal {
  absl::StatusCode code;
  std::string text;
};

struct Outcome {
  // Empty: it must succeed with `answer`. Else it must fail for one of these reasons.
  std::vector<Refusal> refusals;
  std::vector<kubeletplugin::PreparedDevice> answer;
};

struct PreparedModelClaim {
  kubeletplugin::ClaimReference reference;
  std::vector<kube::DeviceResult> results;  // ours
  std::map<int, std::string> uuids;         // of its chips when it was prepared
};

class ClaimsModel {
 public:
  explicit ClaimsModel(int chips);

  std::map<std::string, kube::ResourceClaim> claims;   // as the API server has them, by name
  std::vector<ModelChip> chips;                        // by physical id
  std::map<std::string, PreparedModelClaim> prepared;  // by UID

  // What Prepare has to answer if the API server's answer was `claim` (nothing: there is none) and
  // everything else is as it is now.
  Outcome ExpectPrepare(const kubeletplugin::ClaimReference& reference,
                        const std::optional<kube::ResourceClaim>& claim) const;
  // Takes over that it was prepared; no change if it was prepared before.
  void Prepare(const kubeletplugin::ClaimReference& reference, const kube::ResourceClaim& claim);

  // Whether a lost CDI file of the claim can be made anew now: its chips are the same hardware, as
  // far as that is known, and their nodes are there.
  bool CanRestore(const PreparedModelClaim& claim) const;

  // Our results, in the order and grouping of an answer.
  static std::vector<kubeletplugin::PreparedDevice> Answer(
      const std::string& uid, const std::vector<kube::DeviceResult>& results);
  static std::vector<kube::DeviceResult> Ours(const kube::ResourceClaim& claim);

 private:
  void AddHolders(const std::string& uid, const std::vector<kube::DeviceResult>& results,
                  std::vector<Refusal>* refusals) const;
  void AddHardware(const std::vector<kube::DeviceResult>& results, const PreparedModelClaim* known,
                   std::vector<Refusal>* refusals) const;
};

// The chip of "npu-<n>"; -1 for other names.
int ChipOf(const std::string& device);

// Whether two results of different claims cannot hold at the same time.
bool Conflict(const kube::DeviceResult& a, const kube::DeviceResult& b);

}  // namespace ascend::soak

#endif  // ASCEND_DRA_TEST_SOAK_CLAIMS_MODEL_H_
