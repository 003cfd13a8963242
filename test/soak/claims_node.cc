#include "test/soak/claims_node.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/core/file.h"

namespace ascend::soak {

using kubeletplugin::ClaimEngine;
using kubeletplugin::FakeHost;
using kubeletplugin::Paths;

bool CanMakeNodes() { return FakeHost::CanMakeNodes(); }

void SlowClient::DuringNextGet(std::function<void()> happens) {
  MutexLock lock(&mutex_);
  happens_ = std::move(happens);
}

absl::StatusOr<kube::ResourceClaim> SlowClient::GetResourceClaim(const std::string& namespace_name,
                                                                 const std::string& name,
                                                                 absl::Duration timeout) {
  absl::StatusOr<kube::ResourceClaim> answer =
      FakeClient::GetResourceClaim(namespace_name, name, timeout);
  std::function<void()> happens;
  {
    MutexLock lock(&mutex_);
    happens = std::exchange(happens_, nullptr);
  }
  if (happens) happens();
  return answer;
}

ClaimsNode::Instance::Instance(ClaimsNode& node, const ClaimEngine::Options& options)
    : records(node.paths_.claims_directory()),
      cdi_store({.directory = node.paths_.cdi_root()}),
      engine(options, node.paths_, node.client, records, cdi_store, node.host_.injector(), [&node] {
        MutexLock lock(&node.mutex_);
        return node.inventory_;
      }) {}

ClaimsNode::ClaimsNode(int chips)
    : paths_(Paths::Create({.kubelet_root = dir_.File("kubelet"),
                            .cdi_root = dir_.File("cdi"),
                            .driver_name = kDriver,
                            .pod_uid = ""})
                 .value()),
      host_(dir_.File("host")) {
  options.node_name = kNode;
  options.boot_id = "boot-0";
  options.restore_retry = absl::Milliseconds(2);
  host_.InstallDriver();
  vnpu::Inventory inventory;
  inventory.library = vnpu::LibraryState::kReady;
  inventory.driver_version = "25.5.1";
  inventory_ = std::make_shared<const vnpu::Inventory>(inventory);
  for (int chip = 0; chip < chips; ++chip) SetChip(chip, true, absl::StrCat("uuid-", chip), true);
}

void ClaimsNode::SetChip(int id, bool listed, const std::string& uuid, bool node) {
  // A node is only ever there for a chip whose identity is known: engines look meanwhile.
  if (!node) host_.Remove(absl::StrCat("/dev/davinci", id));
  SetInventory(id, listed, uuid);
  if (node) host_.Chip(id, id);
}

void ClaimsNode::SetInventory(int id, bool listed, const std::string& uuid) {
  MutexLock lock(&mutex_);
  vnpu::Inventory changed = *inventory_;
  std::erase_if(changed.chips, [&](const vnpu::Chip& chip) { return chip.physical_id == id; });
  if (listed) {
    vnpu::Chip chip;
    chip.physical_id = chip.logic_id = chip.card_id = chip.node_number = id;
    chip.device_id = 0;
    chip.family = vnpu::Family::k910B;
    chip.model = "910B3";
    chip.uuid = uuid;
    chip.pci_bus_id = absl::StrCat("0000:", id + 10, ":00.0");
    chip.roce_address = absl::StrCat("10.0.0.", id + 1);
    const auto place =
        std::find_if(changed.chips.begin(), changed.chips.end(),
                     [&](const vnpu::Chip& other) { return other.physical_id > id; });
    changed.chips.insert(place, chip);
  }
  ++changed.revision;
  inventory_ = std::make_shared<const vnpu::Inventory>(std::move(changed));
}

absl::Status ClaimsNode::StartEngine() {
  instances_.push_back(MakeInstance());
  return instances_.back()->engine.Start();
}

void ClaimsNode::StopEngine(size_t index) {
  instances_.erase(instances_.begin() + static_cast<std::ptrdiff_t>(index));
}

void ClaimsNode::StopEngines() { instances_.clear(); }

void ClaimsNode::NotifyChange() {
  for (const auto& instance : instances_) instance->engine.NotifyChange();
}

std::string ClaimsNode::CdiPath(const std::string& uid) const {
  return JoinPath(paths_.cdi_root(), paths_.cdi_file(uid));
}

std::string ClaimsNode::RecordPath(const std::string& uid) const {
  return JoinPath(paths_.claims_directory(), uid);
}

bool ClaimsNode::HasCdi(const std::string& uid) const {
  return ::access(CdiPath(uid).c_str(), F_OK) == 0;
}

bool ClaimsNode::HasRecord(const std::string& uid) const {
  return ::access(RecordPath(uid).c_str(), F_OK) == 0;
}

std::vector<std::string> ClaimsNode::Names(const std::string& directory) {
  return ListDirectory(directory).value_or(std::vector<std::string>());
}

std::vector<std::string> ClaimsNode::ClaimLocks() const {
  std::vector<std::string> uids;
  for (const std::string& name : Names(paths_.locks_directory())) {
    if (std::string uid = Paths::claim_of_lock(name); !uid.empty()) uids.push_back(std::move(uid));
  }
  return uids;
}

void ClaimsNode::EmptyCdiDirectory(bool with_directory) {
  // Engines put files back meanwhile: whatever is found is removed, once.
  for (const std::string& name : Names(paths_.cdi_root())) {
    ::unlink(JoinPath(paths_.cdi_root(), name).c_str());
  }
  std::error_code ignored;
  if (with_directory) std::filesystem::remove_all(paths_.cdi_root(), ignored);
}

}  // namespace ascend::soak
