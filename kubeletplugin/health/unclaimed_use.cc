#include "kubeletplugin/health/unclaimed_use.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/runtime/logging.h"

namespace ascend::kubeletplugin {
namespace {

// "pids 123, 456"; a process outside the agent's pid namespace has none to tell.
std::string ProcessesOf(const vnpu::Inventory* inventory, int physical_id) {
  std::vector<std::string> pids;
  for (const vnpu::Chip& chip :
       inventory == nullptr ? std::vector<vnpu::Chip>() : inventory->chips) {
    if (chip.physical_id != physical_id || !chip.busy) continue;
    for (const int pid : *chip.busy) {
      if (pid > 0) pids.push_back(absl::StrCat(pid));
    }
  }
  if (pids.empty()) return "processes that the driver cannot see";
  return absl::StrCat(pids.size() == 1 ? "pid " : "pids ", absl::StrJoin(pids, ", "));
}

}  // namespace

void UnclaimedUse::Busy(const std::set<int>& chips, const vnpu::Inventory* inventory) {
  for (const int id : chips) {
    if (busy_.count(id) != 0) continue;
    const std::string who = ProcessesOf(inventory, id);
    LogWarning("a chip that no claim holds is in use", {{"chip", id}, {"processes", who}});
    events_.Post({.regarding = events_.node(),
                  .reason = "NpuBusy",
                  .message = absl::StrCat("NPU chip ", id, " is in use by ", who,
                                          " although no claim holds it: it is kept from new pods "
                                          "until they end")});
  }
  for (const int id : busy_) {
    if (chips.count(id) == 0) LogInfo("a chip is no longer in use without a claim", {{"chip", id}});
  }
  busy_ = chips;
}

void UnclaimedUse::ForeignVnpus(const std::map<int, std::vector<vnpu::Vnpu>>& vnpus) {
  for (const auto& [id, list] : vnpus) {
    const auto known = foreign_.find(id);
    if (known != foreign_.end() && known->second == list) continue;
    const std::string names = absl::StrJoin(list, ", ", [](std::string* out, const auto& vnpu) {
      absl::StrAppend(out, vnpu.id, " (", vnpu.template_name, ")");
    });
    LogWarning("vNPUs that no claim has are on a chip", {{"chip", id}, {"vnpus", names}});
    events_.Post({.regarding = events_.node(),
                  .reason = "ForeignVnpus",
                  .message = absl::StrCat("NPU chip ", id, " has vNPUs that no claim has: ", names,
                                          "; what they take is not offered. The driver does not "
                                          "destroy them")});
  }
  for (const auto& [id, list] : foreign_) {
    if (vnpus.count(id) == 0) LogInfo("a chip has only our vNPUs again", {{"chip", id}});
  }
  foreign_ = vnpus;
}

}  // namespace ascend::kubeletplugin
