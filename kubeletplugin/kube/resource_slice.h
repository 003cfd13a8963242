// resource.k8s.io/v1 ResourceSlice: the parts this driver publishes.
#ifndef ASCEND_DRA_KUBELETPLUGIN_KUBE_RESOURCE_SLICE_H_
#define ASCEND_DRA_KUBELETPLUGIN_KUBE_RESOURCE_SLICE_H_

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

namespace ascend::kube {

struct Version {  // strict semver 2.0.0
  std::string value;
  friend bool operator==(const Version&, const Version&) = default;
};
using AttributeValue = std::variant<int64_t, bool, std::string, Version>;

struct DeviceTaint {
  std::string key;
  std::string value;
  std::string effect;      // "None", "NoSchedule", "NoExecute"
  std::string time_added;  // RFC 3339, whole seconds; empty = the server sets it
  friend bool operator==(const DeviceTaint&, const DeviceTaint&) = default;
};

// Counter name -> canonical quantity.
using CounterValues = std::map<std::string, std::string>;

// What the devices of one chip share: the scheduler allocates no more of it than there is.
struct CounterSet {
  std::string name;
  CounterValues counters;
  friend bool operator==(const CounterSet&, const CounterSet&) = default;
};

struct SliceDevice {
  std::string name;
  std::map<std::string, AttributeValue> attributes;  // "name" or "domain/name"
  std::map<std::string, std::string> capacity;       // name -> canonical quantity
  std::vector<CounterSet> consumes_counters;         // by the name of the pool's counter set
  std::vector<DeviceTaint> taints;
  friend bool operator==(const SliceDevice&, const SliceDevice&) = default;
};

struct ResourceSlice {
  // metadata
  std::string name;
  std::string uid;               // set by the server
  std::string resource_version;  // set by the server
  struct {
    std::string name;  // the Node; empty = no owner reference
    std::string uid;
  } owner_node;
  // spec
  std::string driver;
  std::string node_name;
  std::string pool_name;
  int64_t pool_generation = 0;
  int64_t pool_slice_count = 1;
  // Since 1.35 a slice has one of the two; a device consumes sets of its whole pool.
  std::vector<CounterSet> shared_counters;
  std::vector<SliceDevice> devices;
};

nlohmann::json ToJson(const ResourceSlice& slice);
nlohmann::json ToJson(const SliceDevice& device);
nlohmann::json ToJson(const AttributeValue& value);
// Tolerates unknown fields (they are dropped). Wrong types:
// kInvalidArgument naming the member.
absl::StatusOr<ResourceSlice> ParseResourceSlice(const nlohmann::json& object);
absl::StatusOr<SliceDevice> ParseSliceDevice(const nlohmann::json& object);

}  // namespace ascend::kube

#endif  // ASCEND_DRA_KUBELETPLUGIN_KUBE_RESOURCE_SLICE_H_
