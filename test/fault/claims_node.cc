#include "test/fault/claims_node.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "kubeletplugin/claims/host_files.h"
#include "kubeletplugin/claims/injection.h"
#include "test/fault/control.h"
#include "vnpu/chip.h"

namespace ascend::fault {
namespace {

using kubeletplugin::ClaimEngine;
using kubeletplugin::ClaimReference;
using kubeletplugin::Paths;
using kubeletplugin::RecordStore;

constexpr char kDriver[] = "npu.huawei.com";
constexpr char kNodeName[] = "node-1";
constexpr int kChips = 8;
constexpr char kTempSuffix[] = ".tmp";
constexpr char kSomeTemp[] = ".0123456789abcdef.tmp";

std::string NameOf(const std::string& uid) { return absl::StrCat("claim-", uid); }

ClaimReference Reference(const std::string& uid) {
  return {.namespace_name = "default", .name = NameOf(uid), .uid = uid};
}

kube::DeviceResult Device(int chip, const std::string& share_id = "") {
  return {.request = "npu",
          .driver = kDriver,
          .pool = kNodeName,
          .device = absl::StrCat("npu-", chip),
          .share_id = share_id};
}

std::vector<kube::DeviceResult> ResultsOf(const std::string& uid) {
  if (uid == "pair") return {Device(1), Device(2)};
  if (uid == "shares") {
    return {Device(3, "aaaaaaaa-0000-4000-8000-000000000000"),
            Device(3, "bbbbbbbb-0000-4000-8000-000000000000")};
  }
  if (uid == "never") return {Device(4)};
  if (uid == "part") {
    kube::DeviceResult part = Device(5);
    part.device += "-vir05-1c-8g-0";
    return {part};
  }
  kube::DeviceResult result = Device(0);
  result.admin_access = uid == "admin";
  return {result};
}

vnpu::Inventory EightChips() {
  vnpu::Inventory inventory;
  inventory.library = vnpu::LibraryState::kReady;
  inventory.driver_version = "25.5.1";
  for (int i = 0; i < kChips; ++i) {
    vnpu::Chip chip;
    chip.physical_id = chip.logic_id = chip.card_id = chip.node_number = i;
    chip.device_id = 0;
    chip.family = vnpu::Family::k910B;
    chip.model = "910B3";
    chip.uuid = absl::StrCat("uuid-", i);
    chip.pci_bus_id = absl::StrCat("0000:0", i, ":00.0");
    if (i == 5) {
      chip.board_id = 0x33;
      chip.aicore_count = 20;
      chip.memory_mib = 32768;
      chip.partitioning.emplace();
    }
    inventory.chips.push_back(chip);
  }
  return inventory;
}

Paths PathsBelow(const std::string& state) {
  return Paths::Create({.kubelet_root = JoinPath(state, "kubelet"),
                        .cdi_root = JoinPath(state, "cdi"),
                        .driver_name = kDriver,
                        .pod_uid = ""})
      .value();
}

kubeletplugin::Injector InjectorOf(const std::string& host) {
  kubeletplugin::InjectionOptions options;
  options.proc_devices = JoinPath(host, "proc-devices");
  return kubeletplugin::Injector(kubeletplugin::HostFiles(host), options);
}

absl::Status MakeOld(const std::string& path) {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  const int64_t age = absl::ToInt64Seconds(RecordStore::kStaleTempFileAge) + 60;
  const timespec old = {.tv_sec = now.tv_sec - age, .tv_nsec = 0};
  const timespec times[] = {old, old};
  if (::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0) {
    const int error = errno;
    return ErrnoToStatus(error, path);
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<std::string>& ClaimUids() {
  static const auto* const uids =
      new std::vector<std::string>{"one", "pair", "admin", "shares", "thief", "never", "part"};
  return *uids;
}

struct ClaimsNode::Plugin {
  explicit Plugin(ClaimsNode& node)
      : records(node.paths_.claims_directory()),
        cdi_store({.directory = node.paths_.cdi_root()}),
        engine(node.options_, node.paths_, node.client_, records, cdi_store, InjectorOf(node.host_),
               [inventory = node.inventory_] { return inventory; }) {
    engine.SetVnpuCalls(node.hardware_.calls());
  }

  RecordStore records;
  cdi::Store cdi_store;
  ClaimEngine engine;
};

ClaimsNode::ClaimsNode(const std::string& state, const std::string& host,
                       const std::string& boot_id)
    : state_(state),
      host_(host),
      paths_(PathsBelow(state)),
      hardware_(JoinPath(state, "hardware"), boot_id),
      inventory_(std::make_shared<const vnpu::Inventory>(EightChips())) {
  options_.node_name = kNodeName;
  options_.boot_id = boot_id;
  options_.devices.vnpu_mode = kubeletplugin::VnpuMode::kDynamic;
  options_.holder_wait = absl::ZeroDuration();
  options_.restore_retry = absl::Milliseconds(5);
  for (const std::string& uid : ClaimUids()) {
    kube::ResourceClaim claim;
    claim.namespace_name = "default";
    claim.name = NameOf(uid);
    claim.uid = uid;
    claim.allocation.emplace();
    claim.allocation->results = ResultsOf(uid);
    client_.SetClaim(claim);
  }
}

ClaimsNode::~ClaimsNode() = default;

void ClaimsNode::FailNextGet() { client_.FailGets(absl::UnavailableError("no API server")); }

absl::Status ClaimsNode::Start() {
  plugin_.reset();
  plugin_ = std::make_unique<Plugin>(*this);
  const BackgroundThreads background;
  return plugin_->engine.Start();
}

absl::StatusOr<std::string> ClaimsNode::Prepare(const std::string& uid) {
  ASCEND_ASSIGN_OR_RETURN(const auto devices, plugin_->engine.Prepare(Reference(uid)));
  std::vector<std::string> parts;
  for (const kubeletplugin::PreparedDevice& device : devices) {
    parts.push_back(absl::StrCat(absl::StrJoin(device.requests, "+"), " ", device.pool, "/",
                                 device.device, "/", device.share_id, " ",
                                 absl::StrJoin(device.cdi_device_ids, "+")));
  }
  return absl::StrJoin(parts, "; ");
}

absl::Status ClaimsNode::Unprepare(const std::string& uid) {
  return plugin_->engine.Unprepare(Reference(uid));
}

absl::Status ClaimsNode::Damage() {
  const std::string cdi = paths_.cdi_root();
  const std::string of_one = JoinPath(cdi, paths_.cdi_file("one"));
  ASCEND_ASSIGN_OR_RETURN(const std::string text, ReadFile(of_one));
  ASCEND_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(cdi, paths_.cdi_file("orphan")), text));
  if (::unlink(of_one.c_str()) != 0) return ErrnoToStatus(errno, of_one);
  for (const std::string& path :
       {JoinPath(cdi, absl::StrCat(".", paths_.cdi_file("old"), kSomeTemp)),
        JoinPath(paths_.claims_directory(), absl::StrCat(".old", kSomeTemp)),
        paths_.claim_lock("old")}) {
    ASCEND_RETURN_IF_ERROR(WriteFileAtomically(path, "{"));
    ASCEND_RETURN_IF_ERROR(MakeOld(path));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ClaimsNode::Temporaries() const {
  std::vector<std::string> paths;
  for (const std::string& directory : {paths_.claims_directory(), paths_.cdi_root()}) {
    const absl::StatusOr<std::vector<std::string>> names = ListDirectory(directory);
    if (absl::IsNotFound(names.status())) continue;  // killed before it was made
    ASCEND_RETURN_IF_ERROR(names.status());
    for (const std::string& name : *names) {
      if (absl::EndsWith(name, kTempSuffix)) paths.push_back(JoinPath(directory, name));
    }
  }
  return paths;
}

absl::StatusOr<std::vector<std::string>> ClaimsNode::ClaimLocks() const {
  std::vector<std::string> uids;
  ASCEND_ASSIGN_OR_RETURN(const auto names, ListDirectory(paths_.locks_directory()));
  for (const std::string& name : names) {
    if (std::string uid = Paths::claim_of_lock(name); !uid.empty()) uids.push_back(std::move(uid));
  }
  return uids;
}

absl::StatusOr<std::vector<std::string>> ClaimsNode::CdiFiles() const {
  std::vector<std::string> files;
  ASCEND_ASSIGN_OR_RETURN(const auto names, ListDirectory(paths_.cdi_root()));
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, kTempSuffix)) files.push_back(name);
  }
  return files;
}

absl::StatusOr<RecordStore::Contents> ClaimsNode::Records() {
  // Not the plugin's own: it may remember.
  return RecordStore(paths_.claims_directory()).ReadAll();
}

absl::Status ClaimsNode::MakeLeftoversOld() {
  ASCEND_ASSIGN_OR_RETURN(const std::vector<std::string> temporaries, Temporaries());
  for (const std::string& path : temporaries) ASCEND_RETURN_IF_ERROR(MakeOld(path));
  ASCEND_ASSIGN_OR_RETURN(const std::vector<std::string> uids, ClaimLocks());
  for (const std::string& uid : uids) {
    ASCEND_RETURN_IF_ERROR(MakeOld(paths_.claim_lock(uid)));
  }
  return absl::OkStatus();
}

}  // namespace ascend::fault
