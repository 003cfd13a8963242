// The Container Device Interface's specification, version 1.1.0, as plain values.
#ifndef ASCEND_DRA_CDI_SPEC_H_
#define ASCEND_DRA_CDI_SPEC_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ascend::cdi {

struct DeviceNode {
  std::string path;       // in the container; required
  std::string host_path;  // empty = path
  std::string type;       // "", "b", "c", "u" or "p"; empty = as on the host
  int64_t major = 0;
  int64_t minor = 0;
  std::optional<uint32_t> file_mode;  // permission bits
  std::string permissions;            // cgroup access: letters of "rwm", or "none"; empty = rwm
  std::optional<uint32_t> uid;        // absent = the process's user
  std::optional<uint32_t> gid;
  friend bool operator==(const DeviceNode&, const DeviceNode&) = default;
};

struct Mount {
  std::string host_path;
  std::string container_path;
  std::vector<std::string> options;
  std::string type;
  friend bool operator==(const Mount&, const Mount&) = default;
};

struct Hook {
  std::string hook_name;
  std::string path;
  std::vector<std::string> args;
  std::vector<std::string> env;
  std::optional<int64_t> timeout;  // seconds
  friend bool operator==(const Hook&, const Hook&) = default;
};

struct IntelRdt {
  std::string clos_id;
  std::string l3_cache_schema;
  std::string mem_bw_schema;
  std::optional<std::vector<std::string>> schemata;
  bool enable_monitoring = false;
  friend bool operator==(const IntelRdt&, const IntelRdt&) = default;
};

struct NetDevice {
  std::string host_interface_name;
  std::string name;
  friend bool operator==(const NetDevice&, const NetDevice&) = default;
};

struct ContainerEdits {
  std::vector<std::string> env;  // KEY=value; replaces a variable of the container
  std::vector<DeviceNode> device_nodes;
  std::vector<NetDevice> net_devices;
  std::vector<Hook> hooks;
  std::vector<Mount> mounts;
  std::optional<IntelRdt> intel_rdt;
  std::vector<uint32_t> additional_gids;

  bool empty() const;
  friend bool operator==(const ContainerEdits&, const ContainerEdits&) = default;
};

struct Device {
  std::string name;
  std::map<std::string, std::string> annotations;
  ContainerEdits container_edits;
  friend bool operator==(const Device&, const Device&) = default;
};

struct Spec {
  std::string version;  // "cdiVersion" of the file; ignored by the writer, which computes it
  std::string kind;     // "vendor/class"
  std::map<std::string, std::string> annotations;
  std::vector<Device> devices;
  ContainerEdits container_edits;  // for every device of the file, once per container
  friend bool operator==(const Spec&, const Spec&) = default;
};

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_SPEC_H_
