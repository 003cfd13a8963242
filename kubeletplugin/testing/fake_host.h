// A host's file system as far as claims look at it, below a directory of a test: device nodes, the
// driver's files, /proc/devices.
#ifndef ASCEND_DRA_KUBELETPLUGIN_TESTING_FAKE_HOST_H_
#define ASCEND_DRA_KUBELETPLUGIN_TESTING_FAKE_HOST_H_

#include <string>

#include "kubeletplugin/claims/injection.h"

namespace ascend::kubeletplugin {

class FakeHost {
 public:
  static constexpr unsigned kMajor = 236;         // of devdrv-cdev
  static constexpr unsigned kControlMajor = 237;  // of the control nodes

  // An empty host whose kernel driver is loaded.
  explicit FakeHost(std::string root);

  // Device nodes can be made by root only. Tests skip where this says no.
  static bool CanMakeNodes();

  // All paths are the host's ("/dev/davinci0"). Missing parents are made; what is there is
  // replaced.
  void Node(const std::string& path, unsigned major, unsigned minor);
  void Chip(int node_number, int physical_id) {
    Node("/dev/davinci" + std::to_string(node_number), kMajor, static_cast<unsigned>(physical_id));
  }
  void File(const std::string& path, const std::string& content = "x");
  void Directory(const std::string& path);
  void Link(const std::string& path, const std::string& target);
  void Remove(const std::string& path);

  // davinci_manager, devmm_svm, hisi_hdc and what the driver's installer puts below /usr/local.
  void InstallDriver();
  // The text of /proc/devices.
  void ProcDevices(const std::string& text);

  const std::string& root() const { return root_; }
  std::string proc_devices() const { return root_ + "/proc-devices"; }
  InjectionOptions options() const {
    InjectionOptions options;
    options.proc_devices = proc_devices();
    return options;
  }
  Injector injector() const { return Injector(HostFiles(root_), options()); }

 private:
  // The real path, with its parents made and nothing at its end.
  std::string Place(const std::string& path);
  const std::string root_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_TESTING_FAKE_HOST_H_
