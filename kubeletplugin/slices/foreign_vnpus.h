// Which vNPUs on the node are nobody's of ours: made by an administrator or by other software.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SLICES_FOREIGN_VNPUS_H_
#define ASCEND_DRA_KUBELETPLUGIN_SLICES_FOREIGN_VNPUS_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "kubeletplugin/claims/record.h"
#include "vnpu/chip.h"

namespace ascend::kubeletplugin {

// Not thread-safe.
class ForeignVnpus {
 public:
  // So long a vNPU has to be there without an owner before it counts: the agent's look may be older
  // than the record of a claim that was just unprepared. Those of the first look count at once.
  static constexpr absl::Duration kSettle = absl::Seconds(3);

  explicit ForeignVnpus(std::string boot_id) : boot_id_(std::move(boot_id)) {}

  // By physical id, those that count at `now`, a time of the monotonic clock that never goes back
  // from call to call. A chip that cannot be asked keeps what it had. A null inventory has none.
  std::map<int, std::vector<vnpu::Vnpu>> Update(
      const vnpu::Inventory* inventory,
      const std::vector<std::shared_ptr<const ClaimRecord>>& records, absl::Duration now);
  // After the last Update: how long until the next one counts if nothing changes before.
  std::optional<absl::Duration> next_change() const { return next_change_; }

 private:
  const std::string boot_id_;
  bool first_ = true;
  std::map<std::pair<int, int>, absl::Duration> since_;  // by chip and id
  std::map<int, std::vector<vnpu::Vnpu>> last_;
  std::optional<absl::Duration> next_change_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SLICES_FOREIGN_VNPUS_H_
