// Every path and file name of the plugin is built here, and nowhere else.
//
//   <kubelet root>/plugins_registry/<driver>[-<pod UID>]-reg.sock   registration, kubelet watches
//   it <kubelet root>/plugins/<driver>/
//     dra[-<pod UID>].sock      the DRA service
//     claims/<claim UID>        a record per prepared claim (claims/record.h)
//     locks/claim-<claim UID>   gate of a claim, also its generation (claims/claim_gate.h)
//     locks/chip-<physical id>  held while a chip changes hands
//     locks/resets              held by the instance that resets chips
//     device-metadata/<claim UID>_<request>.json   mounted into containers (device_metadata.h)
//     publisher/                who writes the ResourceSlices (slices/publisher_role.h)
//     inventory.json            the last inventory of this boot, for a start without an agent
//     health.json               what is remembered of the chips' health (health/health_file.h)
//     resets.json               the last resets of chips (health/resets_file.h)
//     orders/                   an operator's orders about chips (health/chip_orders.h)
//   <kubelet root>/pod-resources/kubelet.sock
//   <cdi root>/k8s.<driver>-claim_<claim UID>.json
//
// Several instances of the plugin share all of this during an upgrade; only the two sockets are an
// instance's own, by the UID of its pod.
#ifndef ASCEND_DRA_KUBELETPLUGIN_PATHS_H_
#define ASCEND_DRA_KUBELETPLUGIN_PATHS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ascend::kubeletplugin {

// A unix socket's path takes 107 bytes and a NUL.
inline constexpr size_t kMaxSocketPath = 107;

class Paths {
 public:
  struct Options {
    std::string kubelet_root = "/var/lib/kubelet";
    std::string cdi_root = "/var/run/cdi";
    std::string driver_name = "npu.huawei.com";
    std::string pod_uid;  // empty: one instance only, sockets without a UID
  };
  // kInvalidArgument if a path is not absolute, the driver name is no DNS subdomain of at most 63
  // characters, or a socket's path would be too long; the message gives the length and the remedy.
  static absl::StatusOr<Paths> Create(Options options);

  const std::string& driver_name() const { return options_.driver_name; }
  const std::string& registration_socket() const { return registration_socket_; }
  const std::string& service_socket() const { return service_socket_; }
  const std::string& cdi_root() const { return options_.cdi_root; }
  std::string registry_directory() const;
  std::string plugin_directory() const;
  std::string claims_directory() const;
  std::string locks_directory() const;
  std::string claim_lock(absl::string_view claim_uid) const;
  // The claim UID in the file name of such a lock; empty if it is none.
  static std::string claim_of_lock(absl::string_view file_name);
  std::string chip_lock(int physical_id) const;
  std::string device_metadata_directory() const;
  // A file's name in there, and what all names of a claim begin with.
  static std::string device_metadata_file(absl::string_view claim_uid, absl::string_view request);
  static std::string device_metadata_prefix(absl::string_view claim_uid);
  // The claim UID in such a name; empty if it is none.
  static std::string claim_of_device_metadata(absl::string_view file_name);
  std::string publisher_directory() const;
  std::string inventory_file() const;
  std::string health_file() const;
  std::string resets_file() const;
  std::string resets_lock() const;
  std::string chip_orders_directory() const;
  std::string pod_resources_socket() const;

  // "k8s.<driver>/claim"
  std::string cdi_kind() const;
  // File name in cdi_root; names of all our claim files begin with cdi_file_prefix().
  std::string cdi_file(absl::string_view claim_uid) const;
  std::string cdi_file_prefix() const;
  // The claim UID in a name that cdi_file() made; empty if it made no such name.
  std::string claim_of_cdi_file(absl::string_view file_name) const;
  std::string cdi_device_name(absl::string_view claim_uid, absl::string_view device,
                              absl::string_view share_id) const;
  // The CDI device that mounts the metadata of a request.
  std::string cdi_metadata_device_name(absl::string_view claim_uid,
                                       absl::string_view request) const;
  // "<kind>=<device name>"
  std::string cdi_device_id(absl::string_view device_name) const;

 private:
  explicit Paths(Options options);
  Options options_;
  std::string registration_socket_;
  std::string service_socket_;
};

// Whether a claim's UID is safe as part of a file name: letters, digits, '-' and '.', at most 64
// characters, letter or digit at both ends.
bool IsSafeClaimUid(absl::string_view uid);
// The same for names of Kubernetes objects: at most 253 characters.
bool IsSafePathPart(absl::string_view name);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_PATHS_H_
