#include "kubeletplugin/testing/fake_host.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/core/temp_dir.h"

namespace ascend::kubeletplugin {
namespace {

void DieUnless(bool ok, const std::string& what) {
  if (ok) return;
  std::perror(what.c_str());
  std::abort();
}

}  // namespace

FakeHost::FakeHost(std::string root) : root_(std::move(root)) {
  std::filesystem::create_directories(root_);
  ProcDevices(
      "Character devices:\n  1 mem\n236 devdrv-cdev\n237 hisi_davinci_intf\n\nBlock devices:\n"
      "  8 sd\n");
}

bool FakeHost::CanMakeNodes() {
  TempDir dir;
  return ::mknod(dir.File("node").c_str(), S_IFCHR | 0600, makedev(kMajor, 0)) == 0;
}

std::string FakeHost::Place(const std::string& path) {
  const std::string real = root_ + path;
  std::filesystem::create_directories(std::filesystem::path(real).parent_path());
  std::filesystem::remove_all(real);
  return real;
}

void FakeHost::Node(const std::string& path, unsigned major, unsigned minor) {
  DieUnless(::mknod(Place(path).c_str(), S_IFCHR | 0600, makedev(major, minor)) == 0, path);
}

void FakeHost::File(const std::string& path, const std::string& content) {
  std::ofstream(Place(path)) << content;
}

void FakeHost::Directory(const std::string& path) {
  std::filesystem::create_directories(Place(path));
}

void FakeHost::Link(const std::string& path, const std::string& target) {
  DieUnless(::symlink(target.c_str(), Place(path).c_str()) == 0, path);
}

void FakeHost::Remove(const std::string& path) { std::filesystem::remove_all(root_ + path); }

void FakeHost::InstallDriver() {
  Node("/dev/davinci_manager", kControlMajor, 0);
  Node("/dev/devmm_svm", kControlMajor, 1);
  Node("/dev/hisi_hdc", kControlMajor, 2);
  File("/usr/local/Ascend/driver/lib64/driver/libdcmi.so");
  Directory("/usr/local/Ascend/driver/include");
  File("/usr/local/Ascend/driver/version.info", "Version=25.5.1\n");
  Directory("/usr/local/dcmi");
  File("/usr/local/bin/npu-smi");
}

void FakeHost::ProcDevices(const std::string& text) { std::ofstream(proc_devices()) << text; }

}  // namespace ascend::kubeletplugin
