// What a container needs to use chips: device nodes, driver files and a few variables, per product.
// The one place that knows; sources of the lists: Huawei's own container runtime and device plugin.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_INJECTION_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_INJECTION_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cdi/spec.h"
#include "kubeletplugin/claims/device_metadata.h"
#include "kubeletplugin/claims/host_files.h"
#include "kubeletplugin/claims/record.h"

namespace ascend::kubeletplugin {

// The physical ids of the chips that a claim's CDI file injects, from its contents alone.
std::set<int> InjectedChips(const cdi::Spec& spec);

struct InjectionOptions {
  // ASCEND_VISIBLE_DEVICES=void keeps an `ascend` default runtime from injecting again what an
  // image or a user asks for. Off only where Huawei's exporter must read that variable.
  bool ascend_visible_devices_void = true;
  std::vector<std::string> extra_mounts;  // host paths, mounted read-only at the same place
  std::string proc_devices = "/proc/devices";
};

class Injector {
 public:
  Injector(HostFiles host, InjectionOptions options);

  // Looks at the host's device nodes of the record's chips and vNPUs, now: each must be a character
  // device of the driver's major with the minor of its chip or vNPU. Errors name the path, what is
  // wrong and what to do.
  absl::Status CheckNodes(const ClaimRecord& record) const;
  // Waits until the kernel has made the nodes of the record's vNPUs, which it does some time after
  // the vNPUs themselves, but not longer than `timeout`. CheckNodes() tells what is there then.
  void WaitForVnpuNodes(const ClaimRecord& record, absl::Duration timeout) const;

  // The claim's CDI file. Common edits (control nodes, driver files) appear once per file, outside
  // the devices. Looks at the host for what exists now; kFailedPrecondition if something without
  // which no chip works is missing.
  absl::StatusOr<cdi::Spec> BuildSpec(const std::string& kind, const ClaimRecord& record,
                                      const std::vector<MetadataFile>& metadata) const;

 private:
  absl::StatusOr<cdi::ContainerEdits> CommonEdits(vnpu::Family family) const;
  cdi::ContainerEdits DeviceEdits(const RecordedDevice& device) const;
  // Where the driver lies on the host: "/usr/local/Ascend/driver" unless its installer says else.
  static std::string DriverRoot(const HostFiles& host);
  absl::StatusOr<std::set<unsigned>> DriverMajors() const;
  absl::Status CheckNode(const HostFiles& host, const std::string& path, unsigned expected_minor,
                         absl::string_view whose, const std::set<unsigned>& majors) const;

  const HostFiles host_;
  const InjectionOptions options_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_INJECTION_H_
