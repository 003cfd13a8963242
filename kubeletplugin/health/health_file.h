// What the plugin remembers of the chips' health, over restarts and reboots; also what
// `ascend-dra chips` shows.
#ifndef ASCEND_DRA_KUBELETPLUGIN_HEALTH_HEALTH_FILE_H_
#define ASCEND_DRA_KUBELETPLUGIN_HEALTH_HEALTH_FILE_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kubeletplugin/health/device_verdict.h"

namespace ascend::kubeletplugin {

struct HealthFile {
  std::string policy;     // HealthPolicy::Save()
  ChipVerdicts verdicts;  // without their causes
  // By physical id: ChipOrder::at of the last order about the chip that was carried out.
  std::map<int, absl::Time> orders_done;
};

absl::Status WriteHealthFile(const std::string& path, const HealthFile& file);
// kNotFound if there is none, kDataLoss with what is wrong.
absl::StatusOr<HealthFile> ReadHealthFile(const std::string& path);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_HEALTH_HEALTH_FILE_H_
