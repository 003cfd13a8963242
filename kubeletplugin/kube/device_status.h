// resource.k8s.io/v1 AllocatedDeviceStatus: what a driver says of a device of a claim, in the
// claim's status.devices.
#ifndef ASCEND_DRA_KUBELETPLUGIN_KUBE_DEVICE_STATUS_H_
#define ASCEND_DRA_KUBELETPLUGIN_KUBE_DEVICE_STATUS_H_

#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace ascend::kube {

enum class ConditionStatus { kTrue, kFalse, kUnknown };

struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::kTrue;
  std::string reason;  // CamelCase
  std::string message;
  std::string last_transition_time;  // RFC 3339
  friend bool operator==(const Condition&, const Condition&) = default;
};

struct DeviceStatus {
  std::string driver;
  std::string pool;
  std::string device;
  std::string share_id;               // empty = none
  std::vector<Condition> conditions;  // at most 8
  std::string data_json;              // an object of at most 10 KiB; empty = none
  std::vector<std::string> ips;       // CIDR; at most 16
  friend bool operator==(const DeviceStatus&, const DeviceStatus&) = default;
};

nlohmann::json ToJson(const DeviceStatus& status);

}  // namespace ascend::kube

#endif  // ASCEND_DRA_KUBELETPLUGIN_KUBE_DEVICE_STATUS_H_
